export type RefusalCode =
  | "unknown-prefab"
  | "blocked-prefab"
  | "unknown-id"
  | "unknown-entity-type"
  | "unknown-zone"
  | "bad-value"
  | "too-short"
  | "limit-reached"
  | "nothing-matched"
  | "not-enough-money"
  | "unknown-lender"
  | "bad-save-name"
  | "save-in-progress"
  | "unusable-save"
  | "save-failed"
  | "busy";

/** The city refused a command. The message contains the invalid value and is safe to send to the client. */
export class CommandRefusedError extends Error {
  constructor(
    readonly code: RefusalCode,
    message: string,
  ) {
    super(message);
    this.name = "CommandRefusedError";
  }
}
