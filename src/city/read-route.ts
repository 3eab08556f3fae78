/** Type of the bridge's read endpoints, and query parameters that several of them share. */
import { z } from "zod";
import type { EmbeddedGame } from "./simulation/embedded-game.js";
import type { World } from "./simulation/state/world.js";
import type { JsonObject } from "./wire/answers.js";
import type { Query } from "./wire/requests.js";

interface ReadContext {
  readonly game: EmbeddedGame;
  readonly world: World;
  readonly query: Query;
  /** The `:id` of the path; NaN for paths without `:id`. */
  readonly id: number;
}

/** Query parameters that several endpoints share, for the OpenAPI document. */
export const LIST_PARAMETERS = {
  limit: z.int().optional().describe("Maximum number of rows."),
  offset: z.int().default(0).describe("Number of rows to skip."),
};
export const SERVICE_PARAMETER = {
  service: z.string().default("").describe("Only this service, such as Water; empty for all."),
};
export const PLACE_PARAMETERS = { x: z.number().default(0), z: z.number().default(0) };

/** A GET endpoint. Everything that `read` reads before its first await is one consistent state. */
export interface ReadRoute {
  readonly path: string;
  readonly label: string;
  /** Query parameters for the OpenAPI document. Not used to validate requests: routes ignore invalid values. */
  readonly parameters?: Readonly<Record<string, z.ZodType>>;
  /** Returns the response without `ok`. @throws HttpError 404 for an unknown id */
  readonly read: (context: ReadContext) => JsonObject | Promise<JsonObject>;
}
