/** Geometry on the ground plane. */
import type { GroundPoint } from "../game.js";

export interface Line {
  readonly start: GroundPoint;
  readonly end: GroundPoint;
}

export interface Box {
  readonly minX: number;
  readonly minZ: number;
  readonly maxX: number;
  readonly maxZ: number;
}

export function distance(a: GroundPoint, b: GroundPoint): number {
  return Math.hypot(a.x - b.x, a.z - b.z);
}

export function lengthOf({ start, end }: Line): number {
  return distance(start, end);
}

/** From a point to the nearest point of a line. */
export function distanceToLine(point: GroundPoint, { start, end }: Line): number {
  const dx = end.x - start.x;
  const dz = end.z - start.z;
  const squared = dx * dx + dz * dz;
  const along = squared === 0 ? 0 : ((point.x - start.x) * dx + (point.z - start.z) * dz) / squared;
  const t = Math.min(Math.max(along, 0), 1);
  return Math.hypot(point.x - start.x - t * dx, point.z - start.z - t * dz);
}

export function boxAround({ start, end }: Line, margin: number): Box {
  return {
    minX: Math.min(start.x, end.x) - margin,
    minZ: Math.min(start.z, end.z) - margin,
    maxX: Math.max(start.x, end.x) + margin,
    maxZ: Math.max(start.z, end.z) + margin,
  };
}

export function squareAround({ x, z }: GroundPoint, reach: number): Box {
  return { minX: x - reach, minZ: z - reach, maxX: x + reach, maxZ: z + reach };
}

export function boxesTouch(a: Box, b: Box): boolean {
  return a.minX <= b.maxX && b.minX <= a.maxX && a.minZ <= b.maxZ && b.minZ <= a.maxZ;
}

/** Whether a line touches the rectangle `|x| <= halfWidth`, `|z| <= halfLength`: the line is clipped side by side. */
export function touchesRectangle({ start, end }: Line, halfWidth: number, halfLength: number): boolean {
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
