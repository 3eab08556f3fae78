import type { Response } from "express";

/** Fires when the client has hung up, and when all of the answer is sent. Ask for it before anything takes long. */
export function hangUpSignal(response: Response): AbortSignal {
  const gone = new AbortController();
  response.on("close", () => gone.abort());
  return gone.signal;
}
