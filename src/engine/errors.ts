/** Errors of the engine. Errors of the native addon: `NativeErrorCode` in addon.ts. */
export type EngineErrorCode =
  /** The native addon is not built, or libtorch cannot be loaded. */
  | "ADDON_MISSING"
  /** Checkpoint or part of it not found. */
  | "MODEL_NOT_FOUND"
  /** The file contains no supported model; the message identifies its content. */
  | "UNSUPPORTED_MODEL"
  /** The slot is not configured. */
  | "SLOT_UNAVAILABLE"
  /** Tokenizer files are missing, damaged or lack a required token. */
  | "TOKENIZER"
  /** Prompt and output exceed the language model's context. */
  | "PROMPT_TOO_LONG"
  /** Adapter name taken or unknown, or adapters cannot be combined. */
  | "ADAPTER"
  /** Latents of another latent space. */
  | "OTHER_LATENTS"
  /** The language model's output is unusable. */
  | "LM_OUTPUT"
  | "CLOSED";

export class EngineError extends Error {
  /** What to do, if the message does not include it. */
  readonly advice: string | undefined;

  constructor(
    readonly code: EngineErrorCode,
    readonly fault: string,
    { advice, ...options }: ErrorOptions & { advice?: string } = {},
  ) {
    super(advice === undefined ? fault : `${fault}. ${advice}`, options);
    this.name = "EngineError";
    this.advice = advice;
  }
}
