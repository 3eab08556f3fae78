/** What an endpoint of the bridge is: a path, the line that the overlay shows for it, and the work. */
import type { z } from "zod";
import type { City, Game } from "./game.js";
import type { JsonObject } from "./wire/answers.js";
import { type Body, type Query, unknownFields } from "./wire/requests.js";

export interface ReadContext {
  readonly game: Game;
  readonly city: City;
  readonly query: Query;
  /** What stands for `:id` in the path; NaN where nothing does. */
  readonly id: number;
}

/** GET: what the city is. Whatever it reads before its first await is one consistent state. */
export interface ReadRoute {
  readonly path: string;
  readonly label: string;
  /** @throws BridgeError 404 for an id that nothing has */
  readonly read: (context: ReadContext) => JsonObject | Promise<JsonObject>;
}

/** POST: one change, made in one turn of the event loop, so commands never interleave. */
export interface CommandRoute {
  readonly path: string;
  /** Told of the body as sent, which may be anything. */
  readonly label: (body: Body) => string;
  /** What the body may hold. */
  readonly fields: z.ZodObject;
  /** @throws CommandRefusedError, FieldError */
  readonly run: (city: City, body: Body) => JsonObject;
}

/** Runs a command; fields that it does not know are named in `warnings`, because it did not do what they ask. */
export function runCommand({ fields, run }: CommandRoute, city: City, body: Body): JsonObject {
  const result = run(city, body);
  const unknown = unknownFields(fields, body);
  if (unknown.length === 0) return result;
  const known = Array.isArray(result.warnings) ? result.warnings : [];
  return { ...result, warnings: [...known, ...unknown.map((name) => `Unknown field ${name} was ignored`)] };
}
