/** An error with advice on how to fix it. */
export class AdvisedError extends Error {
  /** How to fix the error, if the message does not say it. */
  readonly advice: string | undefined;

  constructor(
    readonly fault: string,
    { advice, ...options }: ErrorOptions & { advice?: string | undefined } = {},
  ) {
    super(advice === undefined ? fault : `${fault}. ${advice}`, options);
    this.name = "AdvisedError";
    this.advice = advice;
  }
}
