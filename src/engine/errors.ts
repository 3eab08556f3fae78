/** What can go wrong above the native addon. Below it, see `NativeErrorCode` in addon.ts. */
export type EngineErrorCode =
  /** The native addon is not built, or libtorch cannot be loaded. */
  | "ADDON_MISSING"
  /** No checkpoint of that name, or a part of it is absent. */
  | "MODEL_NOT_FOUND"
  /** The slot is not configured. */
  | "SLOT_UNAVAILABLE"
  /** Tokenizer files are absent, damaged or lack a token that the prompts need. */
  | "TOKENIZER"
  /** Prompt and requested output exceed the language model's context. */
  | "PROMPT_TOO_LONG"
  /** An adapter's name is in use or no adapter's, its scale is none, or it cannot be beside another. */
  | "ADAPTER"
  /** The language model wrote nothing that can be used. */
  | "LM_OUTPUT"
  /** The engine is closed. */
  | "CLOSED";

/** A failure with a message a person can act on and a code a program can. */
export class EngineError extends Error {
  /** What to do, where the message says it in sentences of its own, after the fault. */
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
