/** Work on the samples of a data set: their audio, and what becomes of one that cannot be done. */
import { type PlanarAudio, SAMPLE_RATE } from "../../engine/types.js";
import { DecodeError, decodeAudio } from "../audio/decode.js";
import { type PermittedRoot, UnsafePathError } from "../permitted-root.js";
import type { DataSetSample } from "./data-set.js";

/** Longer music is cut, as everywhere in this ecosystem. */
const MAX_SECONDS = 240;
const CHANNELS = 2;

/** @throws DecodeError, UnsafePathError, or the signal's reason */
export async function sampleAudio(
  root: PermittedRoot,
  { audioPath, filename }: DataSetSample,
  signal: AbortSignal,
): Promise<{ audio: PlanarAudio; durationSeconds: number }> {
  const audio = await decodeAudio({
    path: await root.resolve(audioPath),
    name: filename,
    maxSeconds: MAX_SECONDS,
    beyondMaximum: "cut",
    signal,
  });
  return { audio, durationSeconds: Math.floor(audio.length / CHANNELS / SAMPLE_RATE) };
}

export interface SampleFailure {
  filename: string;
  reason: string;
}

/** What is the sample's own fault. All else, such as a full disk or a model that is not there, would stop every one. */
const SAMPLE_CODES = ["BAD_ARGUMENT", "LM_OUTPUT", "NOT_FINITE", "OUT_OF_MEMORY", "PROMPT_TOO_LONG"];

/** @throws the error itself where it is not the sample's fault */
export function failureOf(error: unknown, filename: string): SampleFailure {
  const { code, message } = error as Error & { code?: string };
  const isSamplesFault =
    error instanceof UnsafePathError ||
    (error instanceof DecodeError ? error.isFilesFault : SAMPLE_CODES.includes(code ?? ""));
  if (!isSamplesFault) throw error;
  return { filename, reason: message.split("\n", 1)[0] as string };
}

/** A line for each failure under the message. */
export function withFailures(message: string, failures: readonly SampleFailure[]): string {
  return [message, ...failures.map(({ filename, reason }) => `⚠️ ${filename}: ${reason}`)].join("\n");
}
