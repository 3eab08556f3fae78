/** Pairs of road segments that should not be as they are. One pair is at most one anomaly. */
import type { NetSegment, Position } from "../game.js";
import { position } from "../places.js";
import type { Anomaly } from "./anomaly.js";
import { boxAround, distanceToLine, lengthOf } from "./plane.js";
import type { RoadIndex } from "./road-index.js";

const PAIR_REACH_METERS = 3;
const SAME_HEIGHT_METERS = 5;
/** A crossing this close to an end, as a share of the length, is a junction that was meant. */
const CROSSING_MARGIN = 0.04;
const PARALLEL_DETERMINANT = 1e-4;
/** About 9.9 degrees. */
const SAME_DIRECTION_COSINE = 0.985;
const MIN_OVERLAP_METERS = 18;

/** By the lower segment id, then by the higher. */
export function findRoadPairs(roads: RoadIndex): Anomaly[] {
  return roads.segments.flatMap((a, i) => {
    const candidates = roads.near(boxAround(a, PAIR_REACH_METERS), (index) => index > i);
    return candidates
      .map((index) => judgePair(a, roads.segments[index] as NetSegment))
      .filter((anomaly) => anomaly !== null);
  });
}

function judgePair(a: NetSegment, b: NetSegment): Anomaly | null {
  const shared = [a.startNodeId, a.endNodeId].filter((id) => id === b.startNodeId || id === b.endNodeId);
  if (shared.length === 2) return { type: "duplicateRoadSegments", ...namesOf(a, b), ...endsOf(a, b) };
  if (shared.length === 1) return null;
  return crossing(a, b) ?? overlap(a, b);
}

/** The lines intersect well inside both, at nearly the same height. */
function crossing(a: NetSegment, b: NetSegment): Anomaly | null {
  const ax = a.end.x - a.start.x;
  const az = a.end.z - a.start.z;
  const bx = b.end.x - b.start.x;
  const bz = b.end.z - b.start.z;
  const determinant = ax * bz - az * bx;
  if (Math.abs(determinant) < PARALLEL_DETERMINANT) return null;
  const dx = b.start.x - a.start.x;
  const dz = b.start.z - a.start.z;
  const t = (dx * bz - dz * bx) / determinant;
  const u = (dx * az - dz * ax) / determinant;
  if (!isInside(t) || !isInside(u)) return null;
  const onA = pointAlong(a, t);
  const onB = pointAlong(b, u);
  const heightDifference = Math.abs(onA.y - onB.y);
  if (heightDifference > SAME_HEIGHT_METERS) return null;
  return {
    type: "roadCrossingWithoutNode",
    ...namesOf(a, b),
    heightDifference,
    position: { x: onA.x, y: (onA.y + onB.y) / 2, z: onA.z },
    ...endsOf(a, b),
  };
}

/** They run in nearly the same direction, nearly on top of each other, over a meaningful distance. */
function overlap(a: NetSegment, b: NetSegment): Anomaly | null {
  const distance = Math.min(
    distanceToLine(a.start, b),
    distanceToLine(a.end, b),
    distanceToLine(b.start, a),
    distanceToLine(b.end, a),
  );
  if (distance > PAIR_REACH_METERS) return null;
  const length = lengthOf(a);
  const ux = (a.end.x - a.start.x) / length;
  const uz = (a.end.z - a.start.z) / length;
  const cosine = ((b.end.x - b.start.x) * ux + (b.end.z - b.start.z) * uz) / lengthOf(b);
  if (Math.abs(cosine) < SAME_DIRECTION_COSINE) return null;
  const along = [b.start, b.end].map(({ x, z }) => (x - a.start.x) * ux + (z - a.start.z) * uz);
  const overlapLength = Math.min(length, Math.max(...along)) - Math.max(0, Math.min(...along));
  if (overlapLength < MIN_OVERLAP_METERS) return null;
  const heightDifference = Math.max(Math.abs(a.start.y - b.start.y), Math.abs(a.end.y - b.end.y));
  if (heightDifference > SAME_HEIGHT_METERS) return null;
  return { type: "overlappingRoadSegments", ...namesOf(a, b), distance, overlapLength, ...endsOf(a, b) };
}

function isInside(parameter: number): boolean {
  return parameter > CROSSING_MARGIN && parameter < 1 - CROSSING_MARGIN;
}

function pointAlong({ start, end }: NetSegment, t: number): Position {
  const at = (axis: "x" | "y" | "z") => start[axis] + (end[axis] - start[axis]) * t;
  return { x: at("x"), y: at("y"), z: at("z") };
}

function namesOf(a: NetSegment, b: NetSegment) {
  return { segmentAId: a.id, segmentBId: b.id, prefabA: a.prefab.name, prefabB: b.prefab.name };
}

function endsOf(a: NetSegment, b: NetSegment) {
  return { segmentA: segmentEnds(a), segmentB: segmentEnds(b) };
}

export function segmentEnds({ startNodeId, endNodeId, start, end }: NetSegment) {
  return { startNodeId, endNodeId, start: position(start), end: position(end) };
}
