/** Work on many samples: one that cannot be done is reported, and the others go on. */
import { DecodeError } from "../decode.js";
import { UnsafePathError } from "../permitted-root.js";

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
