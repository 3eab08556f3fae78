/** Zoned cells. Where blocks overlap, the older one owns the ground, so it is drawn last. */
import type { ZoneBlockRow } from "./api.js";
import { ZONE_COLORS } from "./colors.js";

const CELL_METERS = 8;
const COLUMNS = 4;
/** The stored position of a block lies this many cells from its first cells, both ways. */
const CELLS_TO_ORIGIN = 4;
/** A thin seam shows the single cells. */
const SEAM_METERS = 0.4;

/** @param blocks oldest first */
export function drawZones(context: CanvasRenderingContext2D, blocks: readonly ZoneBlockRow[]): void {
  context.globalAlpha = 0.55;
  for (const { position, angleRadians, rows, cells } of blocks.toReversed()) {
    context.save();
    context.translate(position.x, position.z);
    context.rotate(angleRadians);
    for (let row = 0; row < rows; row++) {
      for (let column = 0; column < COLUMNS; column++) {
        const color = ZONE_COLORS[Number(cells[row * COLUMNS + column])];
        if (!color) continue;
        context.fillStyle = color;
        const depth = (column - CELLS_TO_ORIGIN) * CELL_METERS;
        const along = (CELLS_TO_ORIGIN - row - 1) * CELL_METERS;
        context.fillRect(depth, along, CELL_METERS - SEAM_METERS, CELL_METERS - SEAM_METERS);
      }
    }
    context.restore();
  }
  context.globalAlpha = 1;
}
