/** Errors of model downloads. */
export type PullErrorCode =
  /** The name is neither a public model nor `owner/repository`. */
  | "UNKNOWN_MODEL"
  /** Hugging Face has no such repository or file. */
  | "NOT_FOUND"
  /** The access token is missing or not authorised. */
  | "UNAUTHORIZED"
  /** No connection to Hugging Face or its mirror. */
  | "UNREACHABLE"
  /** Hugging Face is temporarily unavailable, or HF_ENDPOINT is not a mirror of it. */
  | "HUB"
  /** The connection ended early. */
  | "CONNECTION_LOST"
  /** The content does not match the checksum listed for the file. */
  | "CHECKSUM"
  | "DISK_FULL"
  /** The repository has no model that the engine loads. */
  | "NOT_A_MODEL";

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
