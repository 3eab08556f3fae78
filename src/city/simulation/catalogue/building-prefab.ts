/** What the embedded city knows about a kind of building beyond what the interface shows. */
import type { BuildingPrefab } from "../../game.js";
import type { GrowableService, SubService } from "../../terms.js";

export interface SimBuildingPrefab extends BuildingPrefab {
  /** Null unless zones grow it. */
  readonly growable: GrowableClass | null;
  /** Null unless it does something for the city. */
  readonly civic: Civic | null;
  readonly cost: number;
  readonly upkeepPerWeek: number;
}

/** Capacities per level: a building holds `max(floor, cells * k + rnd(0..99)) / 100`, floor 100 homes or 200 jobs. */
export interface GrowableClass {
  readonly service: GrowableService;
  readonly subService: SubService;
  readonly homes: readonly number[];
  readonly jobs: readonly number[];
  readonly visitors: readonly number[];
  readonly highDensity: boolean;
}

/** The services that reach buildings by distance. */
export const COVERAGES = [
  "garbage",
  "health",
  "death",
  "police",
  "fire",
  "elementary",
  "highSchool",
  "university",
  "leisure",
] as const;
export type Coverage = (typeof COVERAGES)[number];

export interface Civic {
  /** Electric output at best. */
  readonly powerKw?: number;
  /** The output follows the wind. */
  readonly wind?: boolean;
  /** Water it pumps per week. */
  readonly waterM3?: number;
  /** Sewage it takes per week. */
  readonly sewageM3?: number;
  /** Heat it feeds into heating pipes. */
  readonly heatKw?: number;
  /** Works only beside or in water. */
  readonly shore?: boolean;
  readonly coverage?: { readonly kind: Coverage; readonly radiusMeters: number; readonly capacity: number };
  /** Ground pollution it spreads, 0 to 100 at its door. */
  readonly pollution?: number;
  /** Works without a road. */
  readonly roadless?: boolean;
  /** Jobs it offers. */
  readonly jobs?: number;
}
