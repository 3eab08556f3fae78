import type { Request, Response } from "express";
import type { Caller } from "../concurrency-limit.js";

/** Fires when the client has hung up, and when all of the answer is sent. Ask for it before anything takes long. */
export function hangUpSignal(response: Response): AbortSignal {
  const gone = new AbortController();
  response.on("close", () => gone.abort());
  return gone.signal;
}

/** Whoever sent the request, gone once it has hung up. Behind a proxy all clients have one address. */
export function callerOf(request: Request, response: Response): Caller {
  return { address: request.socket.remoteAddress ?? "", signal: hangUpSignal(response) };
}
