/** Automatic labels: the language model describes music from its audio codes. */
import { appendFile } from "node:fs/promises";
import type { z } from "zod";
import { UNKNOWN_LANGUAGE, UNKNOWN_METADATA } from "../../engine/metadata.js";
import { INSTRUMENTAL_LYRICS, isInstrumentalTag } from "../../engine/prompts.js";
import type { MusicEngine, SongSheet } from "../../engine/types.js";
import type { Logger } from "../../system/log.js";
import { RequestError } from "../errors.js";
import { ensureLanguageModel } from "../models/models.js";
import type { labeledDataSet } from "../openapi/answers.js";
import type { LabelRequest } from "../request/data-set-bodies.js";
import { drawSeed } from "../song/seeds.js";
import type { PermittedRoot } from "../storage/permitted-root.js";
import { type DataSetSample, type SampleSummary, sampleSummary } from "./data-set.js";
import type { DataSetEditor } from "./editor.js";
import {
  BackgroundTasks,
  failureOf,
  readSampleAudio,
  type SampleFailure,
  type StartedTask,
  withFailures,
} from "./sample-work.js";

const SLOT = 1;
const LISTENING = { temperature: 0.7, topK: 0, topP: 1, minP: 0, repetitionPenalty: 1, constrained: true };
const FORMATTING = { ...LISTENING, temperature: 0.85 };

type LabelResult = z.output<typeof labeledDataSet>;

interface LabelDetails {
  save_path: string | null;
  last_updated_index: number | null;
  last_updated_sample: SampleSummary | null;
}

export class LabelTasks extends BackgroundTasks<LabelResult, LabelDetails> {
  constructor(
    private readonly engine: MusicEngine,
    private readonly root: PermittedRoot,
    private readonly editor: DataSetEditor,
    log: Logger,
  ) {
    super("Labeling", log);
  }

  /**
   * Starts labeling the samples of the current data set. Each sample changes as soon as its label is written.
   * @throws RequestError if labeling cannot start
   */
  async start(request: LabelRequest): Promise<StartedTask<LabelResult>> {
    const { savePath } = request;
    const { samples } = this.editor.current;
    const file = savePath === null ? null : await this.editor.resolveSavePath(savePath);
    const ids = samples
      .filter(({ labeled, caption }) => !request.onlyUnlabeled || !labeled || caption === "")
      .map(({ id }) => id);
    const details = { save_path: savePath, last_updated_index: null, last_updated_sample: null };
    return this.begin(ids.length, details, async ({ signal, report }) => {
      if (ids.length > 0)
        await ensureLanguageModel(this.engine.catalog, this.engine.planner, { signal }, request.lmModelPath);
      const failures: SampleFailure[] = [];
      for (const [done, id] of ids.entries()) {
        signal.throwIfAborted();
        const outcome = await this.#label(id, request, file, signal);
        if (outcome === null) continue;
        if ("reason" in outcome) failures.push(outcome);
        const isLabeled = "index" in outcome;
        report(
          done + 1,
          isLabeled ? { last_updated_index: outcome.index, last_updated_sample: outcome } : {},
        );
      }
      return this.#result(ids.length, failures);
    });
  }

  /** Labels a sample and returns it, or the fault; null if the sample has been removed from the data set. */
  async #label(
    id: string,
    request: LabelRequest,
    file: string | null,
    signal: AbortSignal,
  ): Promise<SampleSummary | SampleFailure | null> {
    const sample = this.editor.find(id);
    if (sample === undefined) return null;
    try {
      const { labeled, fault } = await labelSample(this.engine, this.root, sample, request, signal);
      const index = this.editor.replace(labeled);
      if (index === null) return null;
      const summary = sampleSummary(labeled, index);
      if (file !== null) await this.#save(file, summary);
      return fault === null ? summary : { filename: sample.filename, reason: fault };
    } catch (error) {
      signal.throwIfAborted();
      return failureOf(error, sample.filename);
    }
  }

  /** Saves the data set, and appends the label to a JSON Lines log beside the file. */
  async #save(file: string, summary: SampleSummary): Promise<void> {
    await this.editor.write(file);
    const status = summary.labeled ? "labeled" : "unlabeled";
    const line = { ts: new Date().toISOString(), index: summary.index, status, sample: summary };
    await appendFile(`${file}.autolabel.jsonl`, `${JSON.stringify(line)}\n`);
  }

  #result(total: number, failures: SampleFailure[]): LabelResult {
    const { samples } = this.editor.current;
    if (total > 0 && failures.length === total) {
      const [first] = failures as [SampleFailure];
      throw new RequestError(`No sample could be labeled; ${first.filename}: ${first.reason}`);
    }
    const message =
      total === 0
        ? "✅ All samples already labeled"
        : withFailures(`✅ Labeled ${total - failures.length}/${total} samples`, failures);
    return {
      message,
      labeled_count: samples.filter(({ labeled }) => labeled).length,
      samples: samples.map(sampleSummary),
    };
  }
}

/**
 * Adds a caption and missing metadata to a sample; existing tempo, key, metre and language stay. `fault`: why the sample
 * still has no caption.
 */
async function labelSample(
  engine: MusicEngine,
  root: PermittedRoot,
  sample: DataSetSample,
  { lmModelPath, skipMetas, formatLyrics, transcribeLyrics }: LabelRequest,
  signal: AbortSignal,
): Promise<{ labeled: DataSetSample; fault: string | null }> {
  const own = ownLyrics(sample);
  const rewrites = formatLyrics && own !== "";
  const sheet = rewrites
    ? await rewrite(engine, own, lmModelPath, signal)
    : await listen(engine, root, sample, lmModelPath, signal);
  const caption = sheet.caption.trim() || sample.caption;
  const labeled = {
    ...sample,
    caption,
    ...(skipMetas
      ? {}
      : {
          bpm: sample.bpm ?? sheet.bpm,
          keyScale: sample.keyScale || sheet.keyScale,
          timeSignature: sample.timeSignature || sheet.timeSignature,
        }),
    ...wordsOf(sample, sheet, { own, keepsOwn: own !== "" && !rewrites && !transcribeLyrics }),
    labeled: caption !== "" || sample.labeled,
  };
  const [fault = "the language model wrote no caption"] = sheet.warnings;
  return { labeled, fault: caption === "" ? fault : null };
}

/** Lyrics that a person wrote; "" for none. */
function ownLyrics({ rawLyrics, formattedLyrics, lyrics, isInstrumental }: DataSetSample): string {
  const isOwn = lyrics !== formattedLyrics && !isInstrumentalTag(lyrics);
  return isInstrumental ? "" : rawLyrics.trim() || (isOwn ? lyrics.trim() : "");
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
  if (sample.isInstrumental) return { lyrics: INSTRUMENTAL_LYRICS, formattedLyrics: "" };
  if (keepsOwn) return { lyrics: own, language, formattedLyrics: "" };
  return { lyrics: sheet.lyrics || own || INSTRUMENTAL_LYRICS, language, formattedLyrics: sheet.lyrics };
}
