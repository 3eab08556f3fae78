/** Error with the status and message for the client. */
export class HttpError extends Error {
  constructor(
    readonly status: number,
    /** One line, shown to users. */
    readonly detail: string,
    readonly headers: Readonly<Record<string, string>> = {},
    options?: ErrorOptions,
  ) {
    super(detail, options);
    this.name = "HttpError";
  }
}
