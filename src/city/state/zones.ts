import type { ReadRoute } from "../route.js";
import { ZONES } from "../terms.js";

const CELL_METERS = 8;
const CELL_SQUARE_METERS = CELL_METERS ** 2;
const SQUARE_METERS_PER_HECTARE = 10_000;

/** GET /state/zones: every cell of every block counts, usable or not, so overlaps count twice. */
export const zones: ReadRoute = {
  path: "/state/zones",
  label: "Read zoning summary",
  read: ({ city }) => {
    const blocks = city.zoneBlocks();
    const cellsOf = new Map<number, number>();
    for (const { cells } of blocks) {
      for (const zone of cells) cellsOf.set(zone, (cellsOf.get(zone) ?? 0) + 1);
    }
    const totalCells = [...cellsOf.values()].reduce((sum, cells) => sum + cells, 0);
    const zonedCells = totalCells - (cellsOf.get(ZONES.indexOf("Unzoned")) ?? 0);
    return {
      ok: true,
      zoneBlockCount: blocks.length,
      cellSizeMeters: CELL_METERS,
      cellAreaSquareMeters: CELL_SQUARE_METERS,
      totalCells,
      zonedCells,
      zonedAreaSquareMeters: zonedCells * CELL_SQUARE_METERS,
      zones: [...cellsOf].map(([zone, cells]) => ({
        zone: ZONES[zone] as string,
        cells,
        areaSquareMeters: cells * CELL_SQUARE_METERS,
        areaHectares: (cells * CELL_SQUARE_METERS) / SQUARE_METERS_PER_HECTARE,
      })),
    };
  },
};
