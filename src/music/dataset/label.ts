/** Automatic labels: the language model describes music from its audio codes. */
import { appendFile } from "node:fs/promises";
import type { z } from "zod";
import { EngineError } from "../../engine/errors.js";
import { UNKNOWN_LANGUAGE, UNKNOWN_METADATA } from "../../engine/metadata.js";
import { INSTRUMENTAL_LYRICS, isInstrumentalTag } from "../../engine/prompts.js";
import type { MusicEngine, SongSheet } from "../../engine/types.js";
import type { Work } from "../background-work.js";
import { ensureLanguageModel } from "../models/models.js";
import type { labeledDataSet } from "../openapi/answers.js";
import type { LabelRequest } from "../request/training-bodies.js";
import { drawSeed } from "../song/seeds.js";
import type { PermittedRoot } from "../storage/permitted-root.js";
import { type DataSetSample, type SampleSummary, sampleSummary } from "./data-set.js";
import type { DataSetEditor } from "./editor.js";
import { forEachSample, readSampleAudio, type SampleProgress, withFailures } from "./sample-work.js";

const SLOT = 1;
const LISTENING = { temperature: 0.7, topK: 0, topP: 1, minP: 0, repetitionPenalty: 1, constrained: true };
const FORMATTING = { ...LISTENING, temperature: 0.85 };

export type LabelResult = z.output<typeof labeledDataSet>;

export interface LabelProgress extends SampleProgress {
  save_path: string | null;
  last_updated_index: number | null;
  last_updated_sample: SampleSummary | null;
}

/**
 * Labels the samples of the current data set. Each sample changes as soon as its label is written; a sample that was
 * removed meanwhile is left out.
 * @throws RequestError if labeling cannot start
 */
export async function labelingWork(
  engine: MusicEngine,
  root: PermittedRoot,
  editor: DataSetEditor,
  request: LabelRequest,
): Promise<Work<LabelProgress, LabelResult>> {
  const { savePath, languageModel, onlyUnlabeled } = request;
  const chosen = editor.current.samples.filter(
    ({ labeled, caption }) => !onlyUnlabeled || !labeled || caption === "",
  );
  const file = savePath === null ? null : await editor.resolveSavePath(savePath);
  const total = chosen.length;
  const run = async (progress: LabelProgress, signal: AbortSignal): Promise<LabelResult> => {
    if (total > 0) await ensureLanguageModel(engine.catalog, engine.planner, { signal }, languageModel);
    const onNext = (done: number) => {
      progress.done = done;
    };
    const failures = await forEachSample(chosen, "labeled", { signal, onNext }, async ({ id }) => {
      const sample = editor.find(id);
      if (sample === undefined) return;
      const { labeled, fault } = await labelSample(engine, root, sample, request, signal);
      const index = editor.replace(labeled);
      if (index === null) return;
      const summary = sampleSummary(labeled, index);
      if (file !== null) await save(editor, file, summary);
      if (fault !== null) throw new EngineError("LM_OUTPUT", fault);
      progress.last_updated_index = index;
      progress.last_updated_sample = summary;
    });
    progress.done = total;
    const { samples } = editor.current;
    const done = `✅ Labeled ${total - failures.length}/${total} samples`;
    return {
      message: total === 0 ? "✅ All samples already labeled" : withFailures(done, failures),
      labeled_count: samples.filter(({ labeled }) => labeled).length,
      samples: samples.map(sampleSummary),
    };
  };
  const progress = {
    done: 0,
    total,
    save_path: savePath,
    last_updated_index: null,
    last_updated_sample: null,
  };
  return { progress, run };
}

/** Saves the data set, and appends the label to a JSON Lines log beside the file. */
async function save(editor: DataSetEditor, file: string, summary: SampleSummary): Promise<void> {
  await editor.write(file);
  const status = summary.labeled ? "labeled" : "unlabeled";
  const line = { ts: new Date().toISOString(), index: summary.index, status, sample: summary };
  await appendFile(`${file}.autolabel.jsonl`, `${JSON.stringify(line)}\n`);
}

/**
 * Adds a caption and missing metadata to a sample; existing tempo, key, metre and language stay. `fault`: why the sample
 * still has no caption.
 */
async function labelSample(
  engine: MusicEngine,
  root: PermittedRoot,
  sample: DataSetSample,
  { languageModel, skipMetas, formatLyrics, transcribeLyrics }: LabelRequest,
  signal: AbortSignal,
): Promise<{ labeled: DataSetSample; fault: string | null }> {
  const own = ownLyrics(sample);
  const rewrites = formatLyrics && own !== "";
  const sheet = rewrites
    ? await rewrite(engine, own, languageModel, signal)
    : await listen(engine, root, sample, languageModel, signal);
  const caption = sheet.caption.trim() || sample.caption;
  const labeled = {
    ...sample,
    caption,
    ...(skipMetas
      ? {}
      : {
          bpm: sample.bpm ?? sheet.bpm,
          keyscale: sample.keyscale || sheet.keyScale,
          timesignature: sample.timesignature || sheet.timeSignature,
        }),
    ...wordsOf(sample, sheet, { own, keepsOwn: own !== "" && !rewrites && !transcribeLyrics }),
    labeled: caption !== "" || sample.labeled,
  };
  const [fault = "the language model wrote no caption"] = sheet.warnings;
  return { labeled, fault: caption === "" ? fault : null };
}

/** Lyrics that a person wrote; "" for none. */
function ownLyrics({ raw_lyrics, formatted_lyrics, lyrics, is_instrumental }: DataSetSample): string {
  const isOwn = lyrics !== formatted_lyrics && !isInstrumentalTag(lyrics);
  return is_instrumental ? "" : raw_lyrics.trim() || (isOwn ? lyrics.trim() : "");
}

function rewrite(
  engine: MusicEngine,
  lyrics: string,
  languageModel: string | null,
  signal: AbortSignal,
): Promise<SongSheet> {
  const request = {
    languageModel,
    caption: "",
    lyrics,
    language: null,
    metadata: UNKNOWN_METADATA,
  };
  return engine.planner.formatInput({ ...request, sampling: FORMATTING, seed: drawSeed() }, { signal });
}

async function listen(
  engine: MusicEngine,
  root: PermittedRoot,
  sample: DataSetSample,
  languageModel: string | null,
  signal: AbortSignal,
): Promise<SongSheet> {
  const { audio, durationSeconds } = await readSampleAudio(root, sample, signal);
  const audioCodes = await engine.renderer.encodeCodes(SLOT, audio, { signal });
  const metadata = { ...UNKNOWN_METADATA, durationSeconds };
  return engine.planner.understand(
    { languageModel, audioCodes, metadata, sampling: LISTENING, seed: drawSeed() },
    { signal },
  );
}

function wordsOf(
  sample: DataSetSample,
  sheet: SongSheet,
  { own, keepsOwn }: { own: string; keepsOwn: boolean },
) {
  const isKnown = sheet.language !== UNKNOWN_LANGUAGE && (!keepsOwn || sample.language === UNKNOWN_LANGUAGE);
  const language = isKnown ? sheet.language : sample.language;
  if (sample.is_instrumental) return { lyrics: INSTRUMENTAL_LYRICS, formatted_lyrics: "" };
  if (keepsOwn) return { lyrics: own, language, formatted_lyrics: "" };
  return { lyrics: sheet.lyrics || own || INSTRUMENTAL_LYRICS, language, formatted_lyrics: sheet.lyrics };
}
