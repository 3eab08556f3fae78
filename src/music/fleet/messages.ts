/**
 * Messages between the processes of a fleet, on one Redis channel. A schema validates them, since other clients of the
 * Redis can publish there too.
 */
import { z } from "zod";

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
  /** A gateway changed the record of a task, or removed it. */
  z.object({ type: z.literal("updated"), id }),
  /** Asks the worker that runs the task to abort it. */
  z.object({ type: z.literal("cancel"), id }),
  /** The list of workers has changed. */
  z.object({ type: z.literal("workers") }),
]);

type FleetMessage = z.output<typeof messageSchema>;
export type FleetEvent = Exclude<FleetMessage, { type: "workers" }>;

/** Parses a message; undefined if it is not a message of the fleet. */
export function readMessage(text: string): FleetMessage | undefined {
  return messageSchema.safeParse(parseJson(text)).data;
}

/** Parses JSON; undefined for other text. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
