/** Distances and overlaps on the ground plane. */
import type { GroundPoint } from "../../game.js";

/** Edge of a zoning cell and of a footprint cell. */
export const CELL_METERS = 8;

export function distance(a: GroundPoint, b: GroundPoint): number {
  return Math.hypot(a.x - b.x, a.z - b.z);
}

export function distanceToSegment(point: GroundPoint, start: GroundPoint, end: GroundPoint): number {
  const dx = end.x - start.x;
  const dz = end.z - start.z;
  const along = ((point.x - start.x) * dx + (point.z - start.z) * dz) / (dx * dx + dz * dz || 1);
  const t = Math.min(Math.max(along, 0), 1);
  return Math.hypot(point.x - start.x - t * dx, point.z - start.z - t * dz);
}

/** A rectangle that a building covers. */
export interface Footprint {
  readonly position: GroundPoint;
  readonly angleDegrees: number;
  readonly prefab: { readonly width: number; readonly length: number };
}

/** Half the diagonal of a footprint. */
export function footprintRadius(footprint: Footprint): number {
  return (Math.hypot(footprint.prefab.width, footprint.prefab.length) * CELL_METERS) / 2;
}

/** Whether a point lies inside a footprint shrunk on every side. */
export function insideFootprint(point: GroundPoint, footprint: Footprint, shrink: number): boolean {
  const angle = (footprint.angleDegrees * Math.PI) / 180;
  const dx = point.x - footprint.position.x;
  const dz = point.z - footprint.position.z;
  const right = dx * Math.cos(angle) + dz * Math.sin(angle);
  const front = -dx * Math.sin(angle) + dz * Math.cos(angle);
  return (
    Math.abs(right) <= (footprint.prefab.width * CELL_METERS) / 2 - shrink &&
    Math.abs(front) <= (footprint.prefab.length * CELL_METERS) / 2 - shrink
  );
}
