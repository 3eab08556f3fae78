/** Errors of model downloads. */
export type PullErrorCode =
  /** Neither a public model nor `owner/repository`. */
  | "UNKNOWN_MODEL"
  /** No such repository or file on the hub. */
  | "NOT_FOUND"
  /** Token missing or not authorised. */
  | "UNAUTHORIZED"
  /** No connection to the hub. */
  | "UNREACHABLE"
  /** The hub is temporarily unavailable, or the address is not a hub. */
  | "HUB"
  /** The connection ended early. */
  | "CONNECTION_LOST"
  /** The content differs from the hub's listing. */
  | "CHECKSUM"
  | "DISK_FULL"
  /** The repository has no model that the engine loads. */
  | "NOT_A_MODEL";

/** Download error: a message for people and a code for programs. */
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
