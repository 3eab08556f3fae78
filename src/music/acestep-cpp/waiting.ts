/**
 * The interface of acestep.cpp before it had jobs, which the page of acestep.vst3 uses: an answer is the result. A base
 * address with `?wait=1` selects it.
 */
import type { Request } from "express";
import { isObject } from "../../parameters.js";

export function waits({ query }: Request): boolean {
  return query.wait === "1";
}

/** Translates what has changed since: the number of songs that `/lm` plans, and `?wav=1`. */
export function currentRequest(sent: unknown, request: Request): unknown {
  if (Array.isArray(sent)) return sent.map((one) => currentRequest(one, request));
  if (!isObject(sent)) return sent;
  const format = request.query.wav === "1" && { output_format: "wav16" };
  return { lm_batch_size: sent.batch_size, ...sent, ...format };
}
