/** What a failure means to a client of the bridge: a status and one line, always `{"ok":false,"error":"..."}`. */
import { CommandRefusedError } from "./game.js";

export class BridgeError extends Error {
  constructor(
    readonly status: number,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.name = "BridgeError";
  }
}

/** A field that the bridge cannot use; refusals have status 500 as those of the game have. */
export class FieldError extends BridgeError {
  constructor(message: string) {
    super(500, message);
    this.name = "FieldError";
  }
}

/** Anything thrown, as the client gets it. What nobody foresaw keeps the name of its type in front. */
export function toBridgeError(error: unknown): BridgeError {
  if (error instanceof BridgeError) return error;
  if (error instanceof CommandRefusedError) return new BridgeError(500, error.message);
  if (!(error instanceof Error)) return new BridgeError(500, String(error), { cause: error });
  return new BridgeError(500, `${error.name}: ${error.message}`, { cause: error });
}
