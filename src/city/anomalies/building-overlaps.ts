import { CELL_METERS, type Line, squareAround, toFootprintCoordinates } from "../geometry.js";
import type { Building, NetSegment } from "../simulation/state/entities.js";
import type { World } from "../simulation/state/world.js";
import { isFacility } from "../views/buildings.js";
import type { Anomaly } from "../views/listing.js";
import { roadsNear } from "./roads.js";

/** Footprints are shrunk on each side, so that buildings right beside a road are not reported. */
const TOLERANCE_METERS = 1.5;

/** Service buildings that overlap roads, in id order. Each row names the overlapped segment with the lowest id. */
export function findBuildingOverlaps(world: World): Anomaly[] {
  return world.buildings
    .all()
    .filter(isFacility)
    .flatMap((building): Anomaly[] => {
      const segment = roadUnder(world, building);
      if (!segment) return [];
      const { name, displayName, service } = building.prefab;
      const ids = { buildingId: building.id, segmentId: segment.id };
      const row = { type: "buildingRoadOverlap", ...ids, prefab: name, displayName, service };
      return [{ ...row, position: building.position }];
    });
}

/** Ignores heights, so a road bridge over a building is reported too. */
function roadUnder(world: World, building: Building): NetSegment | undefined {
  const halfWidth = halfExtent(building.prefab.width);
  const halfLength = halfExtent(building.prefab.length);
  const inside = toFootprintCoordinates(building);
  const bounds = squareAround(building.position, Math.hypot(halfWidth, halfLength));
  return roadsNear(world, bounds).find(({ start, end }) =>
    touchesRectangle({ start: inside(start), end: inside(end) }, halfWidth, halfLength),
  );
}

function halfExtent(cells: number): number {
  return Math.max(1, (cells * CELL_METERS) / 2 - TOLERANCE_METERS);
}

/** Whether a line touches the rectangle `|x| <= halfWidth`, `|z| <= halfLength`, tested by line clipping. */
function touchesRectangle({ start, end }: Line, halfWidth: number, halfLength: number): boolean {
  let entry = 0;
  let exit = 1;
  for (const [from, to, half] of [
    [start.x, end.x, halfWidth],
    [start.z, end.z, halfLength],
  ] as const) {
    const step = to - from;
    if (step === 0) {
      if (Math.abs(from) > half) return false;
      continue;
    }
    const [near, far] = step > 0 ? [-half, half] : [half, -half];
    entry = Math.max(entry, (near - from) / step);
    exit = Math.min(exit, (far - from) / step);
  }
  return entry <= exit;
}
