import { isFacility } from "../building-kinds.js";
import type { Building, City, NetSegment } from "../game.js";
import { position } from "../places.js";
import type { Anomaly } from "./anomaly.js";
import { squareAround, touchesRectangle } from "./plane.js";
import type { RoadIndex } from "./road-index.js";

const CELL_METERS = 8;
/** A footprint may come this near to a road before the two count as overlapping. */
const TOLERANCE_METERS = 1.5;

/** Service buildings that stand on a road, by building id, each with the lowest road segment under it. */
export function findBuildingOverlaps(city: City, roads: RoadIndex): Anomaly[] {
  return city
    .buildings()
    .filter(isFacility)
    .flatMap((building): Anomaly[] => {
      const segment = roadUnder(building, roads);
      if (!segment) return [];
      const { name, displayName, service } = building.prefab;
      const ids = { buildingId: building.id, segmentId: segment.id };
      const row = { type: "buildingRoadOverlap", ...ids, prefab: name, displayName, service };
      return [{ ...row, position: position(building.position) }];
    });
}

/** Heights do not count: a bridge over a building is reported too. */
function roadUnder(
  { prefab, position: at, angleDegrees }: Building,
  roads: RoadIndex,
): NetSegment | undefined {
  const halfWidth = halfExtent(prefab.width);
  const halfLength = halfExtent(prefab.length);
  const angle = (angleDegrees * Math.PI) / 180;
  const cos = Math.cos(angle);
  const sin = Math.sin(angle);
  const toFootprint = ({ x, z }: { x: number; z: number }) => {
    const dx = x - at.x;
    const dz = z - at.z;
    return { x: dx * cos + dz * sin, z: -dx * sin + dz * cos };
  };
  return roads
    .near(squareAround(at, Math.hypot(halfWidth, halfLength)))
    .map((index) => roads.segments[index] as NetSegment)
    .find(({ start, end }) => {
      const line = { start: toFootprint(start), end: toFootprint(end) };
      return touchesRectangle(line, halfWidth, halfLength);
    });
}

function halfExtent(cells: number): number {
  return Math.max(1, (cells * CELL_METERS) / 2 - TOLERANCE_METERS);
}
