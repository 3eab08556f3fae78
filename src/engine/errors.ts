/** Errors of the engine. Errors of the native addon: `NativeErrorCode` in addon.ts. */
import { AdvisedError } from "../system/config-error.js";
import type { NativeErrorCode } from "./addon.js";

export type EngineErrorCode =
  /** The native addon is not built, or libtorch cannot be loaded. */
  | "ADDON_MISSING"
  /** A checkpoint or a part of it was not found. */
  | "MODEL_NOT_FOUND"
  /** The file contains no supported model; the message identifies its content. */
  | "UNSUPPORTED_MODEL"
  /** The requested model slot is not configured. */
  | "SLOT_UNAVAILABLE"
  /** Tokenizer files are missing, damaged or lack a required token. */
  | "TOKENIZER"
  /** Prompt and output exceed the language model's context. */
  | "PROMPT_TOO_LONG"
  /** The adapter name is taken or unknown, or the adapters cannot be combined. */
  | "ADAPTER"
  /** The latents are in a different latent space from the model's. */
  | "OTHER_LATENTS"
  /** The language model's output is unusable. */
  | "LM_OUTPUT"
  | "CLOSED";

export class EngineError extends AdvisedError {
  constructor(
    readonly code: EngineErrorCode,
    fault: string,
    options?: ErrorOptions & { advice?: string | undefined },
  ) {
    super(fault, options);
    this.name = "EngineError";
  }
}

/** Whether the native addon threw an error with this code. */
export function hasCode(error: unknown, code: NativeErrorCode): error is Error {
  return error instanceof Error && "code" in error && error.code === code;
}
