/**
 * Messages between the processes of a fleet, on one Redis channel. A schema validates them, since other clients of the
 * Redis can publish there too.
 */
import { z } from "zod";
import type { Logger } from "../../system/log.js";

export const progressSchema = z.object({
  value: z.number().min(0).max(1),
  stage: z.string(),
  text: z.string(),
  previewSeconds: z.number().min(0),
});

const id = z.string().min(1);

const messageSchema = z.discriminatedUnion("type", [
  z.object({ type: z.literal("queued"), id, route: z.string(), position: z.int().optional() }),
  z.object({
    type: z.literal("progress"),
    id,
    progress: progressSchema,
    request: z.string().optional(),
  }),
  z.object({ type: z.literal("ended"), id }),
  /** Asks the worker that runs the task to abort it. */
  z.object({ type: z.literal("cancel"), id }),
  /** The list of workers has changed. */
  z.object({ type: z.literal("workers") }),
]);

export type FleetMessage = z.output<typeof messageSchema>;
export type FleetEvent = Exclude<FleetMessage, { type: "workers" }>;

/** Minimum interval between two log lines about foreign messages. */
const LOG_INTERVAL_MS = 60_000;
/** Maximum number of characters of a foreign message that the log shows. */
const MAX_SHOWN = 100;

export class MessageReader {
  #dropped = 0;
  #loggedAtMs = Number.NEGATIVE_INFINITY;

  constructor(private readonly log: Logger) {}

  /** Parses a message; null if it is not a message of the fleet. */
  read(channel: string, text: string): FleetMessage | null {
    const { data } = messageSchema.safeParse(parseJson(text));
    if (data !== undefined) return data;
    this.#dropped++;
    const nowMs = performance.now();
    if (nowMs - this.#loggedAtMs >= LOG_INTERVAL_MS) {
      const shown = { channel, dropped: this.#dropped, latest: text.slice(0, MAX_SHOWN) };
      this.log.warn(shown, "dropped foreign messages on the fleet's channel");
      this.#loggedAtMs = nowMs;
      this.#dropped = 0;
    }
    return null;
  }
}

/** Parses JSON; undefined for other text. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
