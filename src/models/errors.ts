/** What can go wrong while a model is downloaded. */
export type PullErrorCode =
  /** Neither the name of a public model nor `owner/repository`. */
  | "UNKNOWN_MODEL"
  /** The hub has no such repository or file. */
  | "NOT_FOUND"
  /** The hub wants a token, or another one. */
  | "UNAUTHORIZED"
  /** No connection to the hub. */
  | "UNREACHABLE"
  /** The hub refuses for now, or what answers is no hub. */
  | "HUB"
  /** The connection ended before the file did. */
  | "CONNECTION_LOST"
  /** What came is not what the hub lists. */
  | "CHECKSUM"
  | "DISK_FULL"
  /** The repository holds nothing that the engine loads. */
  | "NOT_A_MODEL";

/** A failure with a message a person can act on and a code a program can. */
export class PullError extends Error {
  constructor(
    readonly code: PullErrorCode,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.name = "PullError";
  }
}
