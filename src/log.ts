import { type Logger, pino } from "pino";

export type { Logger };

/** Lines of JSON on stderr; stdout stays free for what a command prints. Secrets are never passed in. */
export function createLogger(level: string): Logger {
  return pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, pino.destination(2));
}
