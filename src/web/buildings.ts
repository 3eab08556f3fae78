/** Buildings as the rectangles they stand on; an inactive one is pale. */
import type { BuildingRow } from "./api.js";

const CELL_METERS = 8;
const SHRINK_METERS = 1.5;
const INACTIVE_OPACITY = 0.5;

/** The context is in metres. */
export function drawBuildings(
  context: CanvasRenderingContext2D,
  buildings: readonly BuildingRow[],
  colorOf: (building: BuildingRow) => string,
  outline: string,
): void {
  context.strokeStyle = outline;
  context.lineWidth = 1;
  for (const building of buildings) {
    const width = building.width * CELL_METERS - SHRINK_METERS;
    const length = building.length * CELL_METERS - SHRINK_METERS;
    context.save();
    context.translate(building.position.x, building.position.z);
    context.rotate((building.angleDegrees * Math.PI) / 180);
    context.globalAlpha = building.active ? 1 : INACTIVE_OPACITY;
    context.fillStyle = colorOf(building);
    context.fillRect(-width / 2, -length / 2, width, length);
    context.strokeRect(-width / 2, -length / 2, width, length);
    context.restore();
  }
}
