/** Geometry on the ground plane. Units: metres; degrees where a name does not say radians. */

/** A place on the ground plane: x to the east, z to the north. */
export type GroundPoint = { readonly x: number; readonly z: number };

/** A place in space; `y` is the height. */
export type Position = { readonly x: number; readonly y: number; readonly z: number };

/** Edge length of a zoning cell and of a footprint cell. */
export const CELL_METERS = 8;

/** Depth of a zone block in cells. */
export const BLOCK_COLUMNS = 4;

export interface Line {
  readonly start: GroundPoint;
  readonly end: GroundPoint;
}

/** A straight line in space. */
export interface Span {
  readonly start: Position;
  readonly end: Position;
}

export type Box = {
  readonly minX: number;
  readonly minZ: number;
  readonly maxX: number;
  readonly maxZ: number;
};

/** Rectangle that a building covers; width and length in cells. */
export interface Footprint {
  readonly position: GroundPoint;
  readonly angleDegrees: number;
  readonly prefab: { readonly width: number; readonly length: number };
}

export function middle({ start, end }: Span): Position {
  return { x: (start.x + end.x) / 2, y: (start.y + end.y) / 2, z: (start.z + end.z) / 2 };
}

/** @param share 0 for the start, 1 for the end */
export function pointAlong({ start, end }: Span, share: number): Position {
  const at = (axis: "x" | "y" | "z") => start[axis] + (end[axis] - start[axis]) * share;
  return { x: at("x"), y: at("y"), z: at("z") };
}

export function meanOf(places: readonly Position[]): Position {
  const mean = (axis: "x" | "y" | "z") => places.reduce((sum, at) => sum + at[axis], 0) / places.length;
  return { x: mean("x"), y: mean("y"), z: mean("z") };
}

export function distance(a: GroundPoint, b: GroundPoint): number {
  return Math.hypot(a.x - b.x, a.z - b.z);
}

export function lengthOf({ start, end }: Line): number {
  return distance(start, end);
}

/** Cosine of the angle between two directions. */
export function cosineBetween(a: Line, b: Line): number {
  const x = (a.end.x - a.start.x) * (b.end.x - b.start.x);
  const z = (a.end.z - a.start.z) * (b.end.z - b.start.z);
  return (x + z) / (lengthOf(a) * lengthOf(b));
}

/** Distance from a point to a line segment. */
export function distanceToLine(point: GroundPoint, { start, end }: Line): number {
  const dx = end.x - start.x;
  const dz = end.z - start.z;
  const along = ((point.x - start.x) * dx + (point.z - start.z) * dz) / (dx * dx + dz * dz || 1);
  const t = Math.min(Math.max(along, 0), 1);
  return Math.hypot(point.x - start.x - t * dx, point.z - start.z - t * dz);
}

const PARALLEL_DETERMINANT = 1e-4;
/** A crossing this close to an end, as a share of the line's length, counts as a junction and not as a crossing. */
const CROSSING_MARGIN = 0.04;
/** Maximum height difference of lines that cross. If it is larger, one line passes over the other. */
export const SAME_HEIGHT_METERS = 5;

/** Crossing point on each of two lines, well inside both and at nearly the same height; null if there is none. */
export function crossingOf(a: Span, b: Span): { readonly onA: Position; readonly onB: Position } | null {
  const meeting = intersectionOf(a, b);
  if (!meeting || !isWellInside(meeting.alongA) || !isWellInside(meeting.alongB)) return null;
  const [onA, onB] = [pointAlong(a, meeting.alongA), pointAlong(b, meeting.alongB)];
  return Math.abs(onA.y - onB.y) > SAME_HEIGHT_METERS ? null : { onA, onB };
}

/** Crossing point of two lines, as a share of each line's length; null for parallel lines. */
export function intersectionOf(a: Line, b: Line): { alongA: number; alongB: number } | null {
  const ax = a.end.x - a.start.x;
  const az = a.end.z - a.start.z;
  const bx = b.end.x - b.start.x;
  const bz = b.end.z - b.start.z;
  const determinant = ax * bz - az * bx;
  if (Math.abs(determinant) < PARALLEL_DETERMINANT) return null;
  const dx = b.start.x - a.start.x;
  const dz = b.start.z - a.start.z;
  return { alongA: (dx * bz - dz * bx) / determinant, alongB: (dx * az - dz * ax) / determinant };
}

function isWellInside(along: number): boolean {
  return along > CROSSING_MARGIN && along < 1 - CROSSING_MARGIN;
}

export function boundsOf(places: readonly GroundPoint[]): Box {
  const [xs, zs] = [places.map(({ x }) => x), places.map(({ z }) => z)];
  return { minX: Math.min(...xs), maxX: Math.max(...xs), minZ: Math.min(...zs), maxZ: Math.max(...zs) };
}

/** Bounding box of a line, extended by `margin` on every side. */
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

/** Half the diagonal of a footprint. */
export function footprintRadius({ prefab: { width, length } }: Footprint): number {
  return (Math.hypot(width, length) * CELL_METERS) / 2;
}

/** Converts points to a footprint's coordinates: origin at the centre, x along the width, z along the length. */
export function toFootprintCoordinates({
  position: center,
  angleDegrees,
}: Omit<Footprint, "prefab">): (at: GroundPoint) => GroundPoint {
  const angle = (angleDegrees * Math.PI) / 180;
  const cos = Math.cos(angle);
  const sin = Math.sin(angle);
  return (at) => {
    const dx = at.x - center.x;
    const dz = at.z - center.z;
    return { x: dx * cos + dz * sin, z: -dx * sin + dz * cos };
  };
}

/** Whether two footprints overlap by more than `toleranceMeters` on every side. */
export function footprintsOverlap(a: Footprint, b: Footprint, toleranceMeters: number): boolean {
  return [a, b].every((own) => {
    const other = own === a ? b : a;
    const seen = cornersOf(other).map(toFootprintCoordinates(own));
    return (["x", "z"] as const).every((axis) => {
      const { width, length } = own.prefab;
      const half = ((axis === "x" ? width : length) * CELL_METERS) / 2 - toleranceMeters;
      return seen.some((at) => at[axis] < half) && seen.some((at) => at[axis] > -half);
    });
  });
}

/** Corners in order around the footprint. */
export function cornersOf({ position: { x, z }, angleDegrees, prefab }: Footprint): GroundPoint[] {
  const angle = (angleDegrees * Math.PI) / 180;
  const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
  const [halfWidth, halfLength] = [(prefab.width * CELL_METERS) / 2, (prefab.length * CELL_METERS) / 2];
  const corner = (w: number, l: number) => ({ x: x + w * cos - l * sin, z: z + w * sin + l * cos });
  return [
    corner(-halfWidth, -halfLength),
    corner(-halfWidth, halfLength),
    corner(halfWidth, halfLength),
    corner(halfWidth, -halfLength),
  ];
}

/** Converts a place in a zone block, in cells from the block's stored position, to a point on the map. */
export function pointInBlock(
  { position: { x, z }, angleRadians }: { readonly position: GroundPoint; readonly angleRadians: number },
  depthCells: number,
  alongCells: number,
): GroundPoint {
  const [depth, along] = [CELL_METERS * depthCells, CELL_METERS * alongCells];
  const [cos, sin] = [Math.cos(angleRadians), Math.sin(angleRadians)];
  return { x: x + depth * cos + along * sin, z: z + depth * sin - along * cos };
}

/** Grid index of a coordinate along one axis. */
export function gridIndexOf(meters: number, gridSize: number): number {
  return Math.floor((meters + gridSize / 2) / gridSize);
}

/** The keys of two neighbouring columns differ by this number. No map has as many rows, so keys are unique. */
const SQUARE_KEY_STEP = 2 ** 20;

/** Map key of a grid square. */
export function squareKey(column: number, row: number): number {
  return column * SQUARE_KEY_STEP + row;
}
