/** Read endpoints of the bridge: a path, the line that the overlay shows, and the work. */
import { z } from "zod";
import type { EmbeddedGame } from "./simulation/embedded-game.js";
import type { SimulatedCity } from "./simulation/simulated-city.js";
import type { JsonObject } from "./wire/answers.js";
import type { Query } from "./wire/requests.js";

export interface ReadContext {
  readonly game: EmbeddedGame;
  readonly city: SimulatedCity;
  readonly query: Query;
  /** The `:id` of the path; NaN without one. */
  readonly id: number;
}

/** Parameters of lists, and of reads of one service or place; for the OpenAPI document. */
export const LIST = {
  limit: z.int().optional().describe("Rows at most."),
  offset: z.int().default(0).describe("Rows passed over."),
};
export const SERVICE = {
  service: z.string().default("").describe("Only this service, such as Water; empty for all."),
};
export const PLACE = { x: z.number().default(0), z: z.number().default(0) };

/** GET. Everything it reads before its first await is one consistent state. */
export interface ReadRoute {
  readonly path: string;
  readonly label: string;
  /** Described for clients; the query itself is read leniently. */
  readonly parameters?: Readonly<Record<string, z.ZodType>>;
  /** @throws HttpError 404 for an id that nothing has */
  readonly read: (context: ReadContext) => JsonObject | Promise<JsonObject>;
}
