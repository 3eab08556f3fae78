/** Endpoints about places on the map: zones, terrain, water, owned areas, data layers and service coverage. */

import { z } from "zod";
import { CELL_METERS, type GroundPoint } from "../geometry.js";
import { LIST_PARAMETERS, PLACE_PARAMETERS, type ReadRoute } from "../read-route.js";
import { RefusedError } from "../refusal.js";
import { usableCellMask } from "../simulation/fabric/zone-blocks.js";
import { coverageAt, layerOf } from "../simulation/life/layers.js";
import { areasOf } from "../simulation/state/areas.js";
import type { ZoneBlock } from "../simulation/state/entities.js";
import { MAP_HALF_METERS } from "../simulation/state/terrain.js";
import type { World } from "../simulation/state/world.js";
import { inSteps } from "../steps.js";
import { LAYERS } from "../terms.js";
import { type JsonObject, JsonText, RowCache, writeJsonPieces } from "../wire/answers.js";
import type { Query } from "../wire/requests.js";
import { tallyCells } from "../zone-tally.js";
import { type LimitRule, NO_LIMIT, paginate } from "./listing.js";

const CELL_SQUARE_METERS = CELL_METERS ** 2;
const SQUARE_METERS_PER_HECTARE = 10_000;

/** GET /state/zones: counts every cell of every block, usable or not; overlapping cells count twice. */
export const zones: ReadRoute = {
  path: "/state/zones",
  label: "Read zoning summary",
  read: ({ world }) => {
    const blocks = world.blocks.all();
    const { counts, cells: totalCells, zonedCells } = tallyCells(blocks);
    return {
      zoneBlockCount: blocks.length,
      cellSizeMeters: CELL_METERS,
      cellAreaSquareMeters: CELL_SQUARE_METERS,
      totalCells,
      zonedCells,
      zonedAreaSquareMeters: zonedCells * CELL_SQUARE_METERS,
      zones: [...counts].map(([zone, cells]) => ({
        zone,
        cells,
        areaSquareMeters: cells * CELL_SQUARE_METERS,
        areaHectares: (cells * CELL_SQUARE_METERS) / SQUARE_METERS_PER_HECTARE,
      })),
    };
  },
};

/** By default a response contains all blocks, because a map with holes would mislead. */
const BLOCK_LIMIT: LimitRule = { fallback: 50_000, max: 50_000 };

/**
 * GET /state/zone-blocks: all zone blocks by ascending id, with the zone of every cell. With `usable=true` also which
 * cells can be built on: dry, not under a road, and not in an older block.
 */
const zoneBlocks: ReadRoute = {
  path: "/state/zone-blocks",
  label: "Read zone blocks",
  parameters: {
    ...LIST_PARAMETERS,
    usable: z.boolean().default(false).describe("Adds `usable` to each block: a 1 or 0 for each cell."),
  },
  read: async ({ world, query }) => {
    const { page, rows } = paginate(world.blocks.all(), query, BLOCK_LIMIT);
    if (!query.flag("usable", false)) return { ...page, blocks: rowCache.write(rows) };
    return { ...page, blocks: await inSteps(usableRows(world, rows)) };
  },
};

function* usableRows(world: World, blocks: readonly ZoneBlock[]): Generator<void, JsonObject[]> {
  const rows: JsonObject[] = [];
  for (const block of blocks) {
    const mask = usableCellMask(world, block);
    const usable = Array.from(block.cells, (_, i) => (mask >>> i) & 1).join("");
    rows.push({ ...row(block), usable });
    yield;
  }
  return rows;
}

const rowCache = new RowCache(row, ({ cells }: ZoneBlock) => [cells]);

function row({ id, segmentId, position: at, angleRadians, rows, cells }: ZoneBlock) {
  return { id, segmentId, position: at, angleRadians, rows, cells: cells.join("") };
}

/** Distance between samples. It is large, because one response contains the whole map. */
const SPACING_METERS = 96;

/** Caches the terrain grid of each city, because the terrain never changes. */
const grids = new WeakMap<World, JsonObject>();

/** GET /state/terrain/grid: heights of the ground and depths of water, row by row from the south-west corner. */
const terrainGrid: ReadRoute = {
  path: "/state/terrain/grid",
  label: "Read terrain grid",
  read: ({ world }) => {
    const grid = grids.get(world) ?? gridOf(world);
    grids.set(world, grid);
    return { ...grid };
  },
};

function gridOf(world: World): JsonObject {
  const halfSizeMeters = MAP_HALF_METERS;
  const samplesPerRow = Math.floor((2 * halfSizeMeters) / SPACING_METERS) + 1;
  const heights: number[] = [];
  const waterDepths: number[] = [];
  for (let row = 0; row < samplesPerRow; row++) {
    for (let column = 0; column < samplesPerRow; column++) {
      const x = column * SPACING_METERS - halfSizeMeters;
      const z = row * SPACING_METERS - halfSizeMeters;
      const ground = world.terrain.groundHeight(x, z);
      heights.push(toDecimeter(ground));
      waterDepths.push(toDecimeter(world.terrain.surfaceHeight(x, z) - ground));
    }
  }
  return {
    halfSizeMeters,
    spacingMeters: SPACING_METERS,
    samplesPerRow,
    heights: new JsonText(writeJsonPieces(heights)),
    waterDepths: new JsonText(writeJsonPieces(waterDepths)),
  };
}

function toDecimeter(meters: number): number {
  return Math.round(meters * 10) / 10;
}

const MAX_POINTS = 64;
const POINTS_PARAMETERS = {
  ...PLACE_PARAMETERS,
  points: z.string().optional().describe("Up to 64 places, as `x1,z1;x2,z2`."),
};
/** Shore search: radius, step and number of directions. */
const SHORE = { farthestMeters: 100, stepMeters: 4, directions: 16 };

/** GET /state/terrain: ground and water at one point (`x`, `z`) or several (`points=x1,z1;x2,z2`). */
export const terrain: ReadRoute = {
  path: "/state/terrain",
  label: "Read terrain",
  parameters: POINTS_PARAMETERS,
  read: ({ world, query }) => {
    const places = placesOf(query);
    return { total: places.length, samples: places.map((place) => sampleAt(world, place)) };
  },
};

/** Places that a query asks for: `points`, or else `x` and `z`. */
function placesOf(query: Query): GroundPoint[] {
  const points = query.text("points");
  if (points === "") return [{ x: query.decimal("x", 0), z: query.decimal("z", 0) }];
  const places = points.split(";").map(pointOf);
  if (places.length <= MAX_POINTS) return places;
  throw new RefusedError(`points must have at most ${MAX_POINTS} places, not ${places.length}`);
}

function pointOf(text: string): GroundPoint {
  const [x, z, ...rest] = text.split(",").map((part) => (part.trim() === "" ? Number.NaN : Number(part)));
  if (x === undefined || z === undefined || rest.length > 0 || !Number.isFinite(x + z)) {
    throw new RefusedError(`points must be a list such as x1,z1;x2,z2, not "${text.slice(0, 40)}"`);
  }
  return { x, z };
}

function sampleAt(world: World, { x, z }: GroundPoint) {
  const terrainHeight = world.terrain.groundHeight(x, z);
  const waterHeight = world.terrain.surfaceHeight(x, z);
  const waterDepth = waterHeight - terrainHeight;
  const shore = shoreNear(world, { x, z });
  return {
    x,
    z,
    terrainHeight,
    waterHeight,
    hasWater: waterDepth > 0,
    waterDepth,
    shoreDistance: shore?.meters ?? null,
    shoreWaterHeight: shore?.waterHeight ?? null,
  };
}

/** Nearest point on the shore line. */
function shoreNear(world: World, { x, z }: GroundPoint): { meters: number; waterHeight: number } | null {
  const isWet = (at: GroundPoint) =>
    world.terrain.surfaceHeight(at.x, at.z) > world.terrain.groundHeight(at.x, at.z);
  const here = { x, z };
  const starts = isWet(here);
  for (let meters = SHORE.stepMeters; meters <= SHORE.farthestMeters; meters += SHORE.stepMeters) {
    for (let direction = 0; direction < SHORE.directions; direction++) {
      const angle = (2 * Math.PI * direction) / SHORE.directions;
      const there = { x: x + meters * Math.cos(angle), z: z + meters * Math.sin(angle) };
      if (isWet(there) === starts) continue;
      const water = starts ? here : there;
      return { meters, waterHeight: world.terrain.surfaceHeight(water.x, water.z) };
    }
  }
  return null;
}

/** GET /state/areas: tiles that a city can own. It may also build on others. */
export const areas: ReadRoute = {
  path: "/state/areas",
  label: "Read map areas",
  parameters: LIST_PARAMETERS,
  read: ({ world, query }) => {
    const all = areasOf(world);
    const { page, rows } = paginate(all, query, NO_LIMIT);
    const ownedAreaCount = all.filter(({ owned }) => owned).length;
    return { ...page, ownedAreaCount, areas: rows };
  },
};

/**
 * GET /state/layer?layer=: values of a layer, each 0 to 100, one for each grid square with growables. The
 * traffic layer has one for each square with roads.
 */
export const layer: ReadRoute = {
  path: "/state/layer",
  label: "Read map layer",
  parameters: { ...LIST_PARAMETERS, layer: z.enum(LAYERS).default("landValue") },
  read: ({ world, query }) => {
    const wanted = query.text("layer") || "landValue";
    const name = LAYERS.find((each) => each === wanted);
    if (!name) {
      throw new RefusedError(
        `Unknown layer "${wanted.slice(0, 40)}"; it must be one of ${LAYERS.join(", ")}`,
      );
    }
    const { cellMeters, isGood, values } = layerOf(world, name);
    const { page, rows } = paginate(values, query, NO_LIMIT);
    const cells = rows.map(({ x, z, value }) => ({ x, z, value: Math.round(value) }));
    return { layer: name, layers: LAYERS, cellMeters, isGood, ...page, cells };
  },
};

/** GET /state/coverage: quality of each service at one place (`x`, `z`) or several (`points=x1,z1;x2,z2`). */
export const coverage: ReadRoute = {
  path: "/state/coverage",
  label: "Read service coverage",
  parameters: POINTS_PARAMETERS,
  read: ({ world, query }) => {
    const places = placesOf(query);
    const samples = places.map(({ x, z }) => ({ x, z, services: coverageAt(world, { x, z }) }));
    return { total: places.length, samples };
  },
};

export const LAND_READS = [areas, coverage, layer, terrain, terrainGrid, zoneBlocks, zones];
