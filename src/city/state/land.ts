/** The ground: how it is zoned, how high it lies, and where it is under water. */
import type { ZoneBlock } from "../game.js";
import { CELL_METERS, position } from "../geometry.js";
import type { ReadRoute } from "../route.js";
import { tallyCells } from "../zone-tally.js";
import { type LimitRule, paginate } from "./listing.js";

const CELL_SQUARE_METERS = CELL_METERS ** 2;
const SQUARE_METERS_PER_HECTARE = 10_000;

/** GET /state/zones: every cell of every block counts, usable or not, so overlaps count twice. */
export const zones: ReadRoute = {
  path: "/state/zones",
  label: "Read zoning summary",
  read: ({ city }) => {
    const blocks = city.zoneBlocks();
    const { counts, cells: totalCells, zonedCells } = tallyCells(blocks);
    return {
      ok: true,
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

/** All that a city can have: a map with holes would mislead. */
const BLOCK_LIMIT: LimitRule = { fallback: 50_000, max: 50_000 };

/** GET /state/zone-blocks: the zone of every cell, in ascending id order. */
export const zoneBlocks: ReadRoute = {
  path: "/state/zone-blocks",
  label: "Read zone blocks",
  read: ({ city, query }) => {
    const { page, rows } = paginate(city.zoneBlocks(), query, BLOCK_LIMIT);
    return { ok: true, ...page, blocks: rows.map(row) };
  },
};

function row({ id, segmentId, position: at, angleRadians, rows, cells }: ZoneBlock) {
  return { id, segmentId, position: position(at), angleRadians, rows, cells: cells.join("") };
}

/** Coarse, because the whole map is one answer. */
const SPACING_METERS = 96;

/** GET /state/terrain: heights of the ground and depths of water, row by row from the south-west corner. */
export const terrain: ReadRoute = {
  path: "/state/terrain",
  label: "Read terrain",
  read: ({ city }) => {
    const halfSizeMeters = city.mapHalfMeters;
    const samplesPerRow = Math.floor((2 * halfSizeMeters) / SPACING_METERS) + 1;
    const heights: number[] = [];
    const waterDepths: number[] = [];
    for (let row = 0; row < samplesPerRow; row++) {
      for (let column = 0; column < samplesPerRow; column++) {
        const x = column * SPACING_METERS - halfSizeMeters;
        const z = row * SPACING_METERS - halfSizeMeters;
        const ground = city.groundHeight(x, z);
        heights.push(toDecimeter(ground));
        waterDepths.push(toDecimeter(city.surfaceHeight(x, z) - ground));
      }
    }
    return { ok: true, halfSizeMeters, spacingMeters: SPACING_METERS, samplesPerRow, heights, waterDepths };
  },
};

function toDecimeter(meters: number): number {
  return Math.round(meters * 10) / 10;
}
