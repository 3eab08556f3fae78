/** Describes music by listening to it: the language model reads its audio codes (reference/music-http.md 7.5). */
import type { Metadata, MusicEngine, SongSheet } from "../../engine/types.js";
import { decodeAudio } from "../decode.js";
import type { PermittedRoot } from "../permitted-root.js";
import { drawSeed } from "../seeds.js";
import { type DataSetSample, INSTRUMENTAL } from "./data-set.js";
import { MAX_SECONDS } from "./prepare.js";

const SLOT = 1;
const CHANNELS = 2;
const SAMPLE_RATE = 48_000;
const UNKNOWN: Metadata = { bpm: null, keyScale: "", timeSignature: "", durationSeconds: null };
const LISTENING = { temperature: 0.7, topK: 0, topP: 1, repetitionPenalty: 1, constrained: true };
const FORMATTING = { ...LISTENING, temperature: 0.85 };

export interface LabelOptions {
  /** Null: the default language model. */
  lmModelPath: string | null;
  /** Leave tempo, key and metre as they are. */
  skipMetas: boolean;
  /** Have the lyrics that came with the audio rewritten, and the caption made of them. */
  formatLyrics: boolean;
  /** Write down what is sung, in place of the lyrics that came with the audio. */
  transcribeLyrics: boolean;
}

/**
 * The sample with a caption, and with what else was found; tempo, key and metre that people gave stay.
 * @throws DecodeError, UnsafePathError, what the engine throws, or the signal's reason
 */
export async function labelSample(
  engine: MusicEngine,
  root: PermittedRoot,
  sample: DataSetSample,
  { lmModelPath, skipMetas, formatLyrics, transcribeLyrics }: LabelOptions,
  signal: AbortSignal,
): Promise<DataSetSample> {
  const hasWords = sample.rawLyrics.trim() !== "" && !sample.isInstrumental;
  const rewrites = formatLyrics && hasWords;
  const sheet = rewrites
    ? await rewrite(engine, sample, lmModelPath, signal)
    : await listen(engine, root, sample, lmModelPath, signal);
  return {
    ...sample,
    caption: sheet.caption || sample.caption,
    ...(skipMetas ? {} : metasOf(sample, sheet)),
    ...wordsOf(sample, sheet, { keepsOwn: hasWords && !rewrites && !transcribeLyrics }),
    labeled: true,
  };
}

function rewrite(
  engine: MusicEngine,
  { rawLyrics }: DataSetSample,
  languageModel: string | null,
  signal: AbortSignal,
): Promise<SongSheet> {
  const request = { languageModel, caption: "", lyrics: rawLyrics, language: null, metadata: UNKNOWN };
  return engine.formatInput({ ...request, sampling: FORMATTING, seed: drawSeed() }, { signal });
}

async function listen(
  engine: MusicEngine,
  root: PermittedRoot,
  { audioPath, filename }: DataSetSample,
  languageModel: string | null,
  signal: AbortSignal,
): Promise<SongSheet> {
  const audio = await decodeAudio({
    path: await root.resolve(audioPath),
    name: filename,
    maxSeconds: MAX_SECONDS,
    beyondMaximum: "cut",
    signal,
  });
  const durationSeconds = Math.floor(audio.length / CHANNELS / SAMPLE_RATE);
  const audioCodes = await engine.encodeCodes(SLOT, audio, { signal });
  const metadata = { ...UNKNOWN, durationSeconds };
  return engine.understand(
    { languageModel, audioCodes, metadata, sampling: LISTENING, seed: drawSeed() },
    { signal },
  );
}

function metasOf(sample: DataSetSample, sheet: SongSheet) {
  return {
    bpm: sample.bpm ?? sheet.bpm,
    keyScale: sample.keyScale || sheet.keyScale,
    timeSignature: sample.timeSignature || sheet.timeSignature,
  };
}

function wordsOf(sample: DataSetSample, sheet: SongSheet, { keepsOwn }: { keepsOwn: boolean }) {
  if (sample.isInstrumental) return { lyrics: INSTRUMENTAL, language: "unknown", formattedLyrics: "" };
  if (keepsOwn) return { lyrics: sample.rawLyrics, language: sheet.language, formattedLyrics: "" };
  return {
    lyrics: sheet.lyrics || sample.rawLyrics || INSTRUMENTAL,
    language: sheet.language,
    formattedLyrics: sheet.lyrics,
  };
}
