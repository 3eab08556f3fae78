import { type Logger, pino } from "pino";

export type { Logger };

/** Lines of JSON on stderr; stdout stays free for what a command prints. Secrets are never passed in. */
export function createLogger(level: string): Logger {
  const destination = pino.destination(2);
  // A terminal that was closed takes no lines; what is served goes on, or ends in order, all the same.
  destination.on("error", () => {});
  return pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, destination);
}
