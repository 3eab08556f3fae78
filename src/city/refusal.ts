/** The city refuses a request. The message contains the invalid value and is safe to send to the client. */
export class RefusedError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "RefusedError";
  }
}
