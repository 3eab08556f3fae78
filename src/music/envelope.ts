/** The wrapper of every successful JSON answer (spec: Response envelope). */
import type { Response } from "express";

export interface Envelope<T> {
  data: T;
  code: 200;
  error: null;
  /** Milliseconds since the epoch. */
  timestamp: number;
  extra: null;
}

export function envelope<T>(data: T): Envelope<T> {
  return { data, code: 200, error: null, timestamp: Date.now(), extra: null };
}

export function sendEnvelope(response: Response, data: unknown): void {
  response.json(envelope(data));
}
