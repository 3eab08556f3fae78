import type { ReadRoute } from "../route.js";
import { tallyCells } from "../zone-tally.js";

const CELL_METERS = 8;
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
