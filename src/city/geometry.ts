/** Geometry on the ground plane: x to the east, z to the north. */
import type { GroundPoint, Position, ZoneBlock } from "./game.js";

/** Edge of a zoning cell and of a footprint cell. */
export const CELL_METERS = 8;

/** How deep zone blocks are. */
export const BLOCK_COLUMNS = 4;

export interface Line {
  readonly start: GroundPoint;
  readonly end: GroundPoint;
}

/** A line at its heights. */
export interface Span {
  readonly start: Position;
  readonly end: Position;
}

export interface Box {
  readonly minX: number;
  readonly minZ: number;
  readonly maxX: number;
  readonly maxZ: number;
}

/** The rectangle that a building covers: width and length in cells. */
export interface Footprint {
  readonly position: GroundPoint;
  readonly angleDegrees: number;
  readonly prefab: { readonly width: number; readonly length: number };
}

/** The coordinates alone. */
export function position({ x, y, z }: Position) {
  return { x, y, z };
}

export function middle({ start, end }: Span): Position {
  return { x: (start.x + end.x) / 2, y: (start.y + end.y) / 2, z: (start.z + end.z) / 2 };
}

/** @param share of the length, from the start */
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

/** Of the angle between two directions. */
export function cosineBetween(a: Line, b: Line): number {
  const x = (a.end.x - a.start.x) * (b.end.x - b.start.x);
  const z = (a.end.z - a.start.z) * (b.end.z - b.start.z);
  return (x + z) / (lengthOf(a) * lengthOf(b));
}

/** From a point to the nearest point of a line. */
export function distanceToLine(point: GroundPoint, { start, end }: Line): number {
  const dx = end.x - start.x;
  const dz = end.z - start.z;
  const along = ((point.x - start.x) * dx + (point.z - start.z) * dz) / (dx * dx + dz * dz || 1);
  const t = Math.min(Math.max(along, 0), 1);
  return Math.hypot(point.x - start.x - t * dx, point.z - start.z - t * dz);
}

const PARALLEL_DETERMINANT = 1e-4;
/** A crossing this close to an end, as a share of the length, is a junction that was meant. */
const CROSSING_MARGIN = 0.04;
/** What crosses at a greater distance in height passes over or under. */
export const SAME_HEIGHT_METERS = 5;

/** The points on two lines where they cross: well inside both, at nearly the same height; null where they do not. */
export function crossingOf(a: Span, b: Span): { readonly onA: Position; readonly onB: Position } | null {
  const meeting = intersectionOf(a, b);
  if (!meeting || !isWellInside(meeting.alongA) || !isWellInside(meeting.alongB)) return null;
  const [onA, onB] = [pointAlong(a, meeting.alongA), pointAlong(b, meeting.alongB)];
  return Math.abs(onA.y - onB.y) > SAME_HEIGHT_METERS ? null : { onA, onB };
}

/** How far along each of two lines they meet, as a share of its length; null for parallels. */
function intersectionOf(a: Line, b: Line): { alongA: number; alongB: number } | null {
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

/** The box of a line, grown on every side. */
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

/** Tells where a point lies seen from a footprint: x along its width, z along its length, from its centre. */
export function intoFootprint({
  position: center,
  angleDegrees,
}: Footprint): (at: GroundPoint) => GroundPoint {
  const angle = (angleDegrees * Math.PI) / 180;
  const cos = Math.cos(angle);
  const sin = Math.sin(angle);
  return (at) => {
    const dx = at.x - center.x;
    const dz = at.z - center.z;
    return { x: dx * cos + dz * sin, z: -dx * sin + dz * cos };
  };
}

/** Whether two footprints cover common ground; so little as `toleranceMeters` on any side does not count. */
export function footprintsOverlap(a: Footprint, b: Footprint, toleranceMeters: number): boolean {
  return [a, b].every((own) => {
    const other = own === a ? b : a;
    const seen = cornersOf(other).map(intoFootprint(own));
    return (["x", "z"] as const).every((axis) => {
      const { width, length } = own.prefab;
      const half = ((axis === "x" ? width : length) * CELL_METERS) / 2 - toleranceMeters;
      return seen.some((at) => at[axis] < half) && seen.some((at) => at[axis] > -half);
    });
  });
}

/** In order around the footprint. */
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

/** A place in a zone block, so many cells from its stored position along its depth and along its road. */
export function placeInBlock(
  { position: { x, z }, angleRadians }: Pick<ZoneBlock, "position" | "angleRadians">,
  depthCells: number,
  alongCells: number,
): GroundPoint {
  const [depth, along] = [CELL_METERS * depthCells, CELL_METERS * alongCells];
  const [cos, sin] = [Math.cos(angleRadians), Math.sin(angleRadians)];
  return { x: x + depth * cos + along * sin, z: z + depth * sin - along * cos };
}

/** The square that a coordinate lies in, along one axis. */
export function squareOf(meters: number, gridSize: number): number {
  return Math.floor((meters + gridSize / 2) / gridSize);
}

/** More than twice the squares from edge to edge of any map. */
const SQUARE_KEY_STEP = 2 ** 20;

/** One number for a square of a grid over the map. */
export function squareKey(column: number, row: number): number {
  return column * SQUARE_KEY_STEP + row;
}
