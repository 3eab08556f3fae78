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

/** Invalid setting; the message names the variable. */
export class ConfigError extends Error {
  constructor(
    readonly variable: string,
    message: string,
  ) {
    super(message);
    this.name = "ConfigError";
  }
}
