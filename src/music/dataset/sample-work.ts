/** Work on the samples of a data set, one by one: its status, the audio of a sample, and failures of single samples. */
import { type PlanarAudio, SAMPLE_RATE } from "../../engine/types.js";
import { DecodeError, decodeAudio } from "../audio/decode.js";
import type { BackgroundWork } from "../background-work.js";
import { RequestError } from "../errors.js";
import { type PermittedRoot, UnsafePathError } from "../storage/permitted-root.js";
import type { DataSetSample } from "./data-set.js";

/** Progress of a run; other fields than these are added to the status as they are. */
export interface SampleProgress {
  done: number;
  total: number;
}

/** Status of the run with this id, or of the latest run if `id` is null. @throws HttpError 404 */
export function taskStatus<Progress extends SampleProgress, Result extends { message: string }>(
  work: BackgroundWork<Progress, Result>,
  id: string | null,
) {
  const run = id === null ? work.latest : work.find(id);
  if (run === undefined) return { task_id: null, status: "idle", progress: "", current: 0, total: 0 };
  const { state, result, failure } = run;
  const { done, total, ...details } = run.progress;
  const line = failure ? `❌ ${failure.detail}` : result?.message;
  return {
    task_id: run.id,
    status: state === "cancelled" ? "failed" : state,
    progress: line ?? `${work.name} ${Math.min(done + 1, total)}/${total}`,
    current: done,
    total,
    ...details,
    ...(result && { result }),
    ...(failure && { error: failure.detail }),
  };
}

/**
 * Calls `work` for each sample. A failure that concerns only one sample is returned; others end the work.
 * @param onNext called before each sample with the number of samples done
 * @throws RequestError if every sample fails; the signal's reason
 */
export async function forEachSample<Sample extends { filename: string }>(
  samples: readonly Sample[],
  action: "labeled" | "prepared",
  { signal, onNext }: { signal: AbortSignal; onNext: (done: number, sample: Sample) => void },
  work: (sample: Sample) => Promise<void>,
): Promise<SampleFailure[]> {
  const failures: SampleFailure[] = [];
  for (const [done, sample] of samples.entries()) {
    signal.throwIfAborted();
    onNext(done, sample);
    try {
      await work(sample);
    } catch (error) {
      signal.throwIfAborted();
      failures.push(failureOf(error, sample.filename));
    }
  }
  const [first] = failures;
  if (first !== undefined && failures.length === samples.length) {
    throw new RequestError(`No sample could be ${action}; ${first.filename}: ${first.reason}`);
  }
  return failures;
}

/** Music is cut to this length, as in other trainers. */
const MAX_SECONDS = 240;
const CHANNELS = 2;

/** @throws DecodeError, UnsafePathError, or the signal's reason */
export async function readSampleAudio(
  root: PermittedRoot,
  { audio_path, filename }: DataSetSample,
  signal: AbortSignal,
): Promise<{ audio: PlanarAudio; durationSeconds: number }> {
  const audio = await decodeAudio({
    path: await root.resolve(audio_path),
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

/**
 * Error codes that concern only one sample. Other errors, such as a full disk or a missing model, would affect
 * all.
 */
const SAMPLE_CODES = ["BAD_ARGUMENT", "LM_OUTPUT", "NOT_FINITE", "OUT_OF_MEMORY", "PROMPT_TOO_LONG"];

/** Describes the failure of one sample. @throws `error` itself if it would affect all samples */
function failureOf(error: unknown, filename: string): SampleFailure {
  const { code, message } = error as Error & { code?: string };
  const isSamplesFault =
    error instanceof UnsafePathError || error instanceof DecodeError || SAMPLE_CODES.includes(code ?? "");
  if (!isSamplesFault) throw error;
  return { filename, reason: message.split("\n", 1)[0] as string };
}

export function withFailures(message: string, failures: readonly SampleFailure[]): string {
  return withWarnings(
    message,
    failures.map(({ filename, reason }) => `${filename}: ${reason}`),
  );
}

export function withWarnings(message: string, warnings: readonly string[]): string {
  return [message, ...warnings.map((warning) => `⚠️ ${warning}`)].join("\n");
}
