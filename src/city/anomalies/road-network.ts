/** Detects unintended roads: stubs, dead ends, and pairs of roads that conflict. */

import {
  boxAround,
  cosineBetween,
  crossingOf,
  distanceToLine,
  lengthOf,
  SAME_HEIGHT_METERS,
  squareAround,
} from "../geometry.js";
import type { NetNode, NetSegment } from "../simulation/state/entities.js";
import type { World } from "../simulation/state/world.js";
import type { Anomaly } from "../views/listing.js";
import { roadsAt, roadsNear, roadsOf, segmentEnds } from "./roads.js";

const FIRST_SEARCH_METERS = 32;

/** Short segments that have a dead end, in id order. */
export function findShortStubs(world: World, shortSegmentLength: number): Anomaly[] {
  return roadsOf(world).flatMap((segment): Anomaly[] => {
    const length = lengthOf(segment);
    if (length > shortSegmentLength) return [];
    const startConnections = roadsAt(world, segment.startNodeId).length;
    const endConnections = roadsAt(world, segment.endNodeId).length;
    if (startConnections > 1 && endConnections > 1) return [];
    const row = {
      type: "shortRoadStub",
      segmentId: segment.id,
      prefab: segment.prefab.name,
      length,
      startConnections,
      endConnections,
      start: segment.start,
      end: segment.end,
    };
    return [row];
  });
}

/**
 * Dead-end nodes, in id order. The type is `deadEndNearRoad` if another road is near without joining the
 * node, else `deadEndRoad`. Nodes at the map edge are not dead ends.
 */
export function findDeadEnds(world: World, nearMissDistance: number, includeDeadEnds: boolean): Anomaly[] {
  return world.nodes.all().flatMap((node): Anomaly[] => {
    const [own, ...others] = roadsAt(world, node.id);
    if (own === undefined || others.length > 0 || node.outside) return [];
    const miss = nearestForeignRoad(world, node, nearMissDistance);
    if (!miss && !includeDeadEnds) return [];
    const type = miss ? "deadEndNearRoad" : "deadEndRoad";
    return [{ type, nodeId: node.id, ownSegmentId: own.id, ...miss, position: node.position }];
  });
}

/** Widens the search step by step, so that the cost depends on the distance of the result, not on the maximum radius. */
function nearestForeignRoad(world: World, node: NetNode, reach: number) {
  for (let radius = Math.min(FIRST_SEARCH_METERS, reach); ; radius = Math.min(radius * 4, reach)) {
    const nearest = nearestWithin(world, node, radius);
    if (nearest) return nearest;
    if (radius >= reach) return null;
  }
}

function nearestWithin(world: World, node: NetNode, radius: number) {
  let nearest: { nearestSegmentId: number; distance: number } | null = null;
  for (const segment of roadsNear(world, squareAround(node.position, radius))) {
    if (segment.startNodeId === node.id || segment.endNodeId === node.id) continue;
    const distance = distanceToLine(node.position, segment);
    if (distance > radius || (nearest && distance >= nearest.distance)) continue;
    nearest = { nearestSegmentId: segment.id, distance };
  }
  return nearest;
}

const PAIR_REACH_METERS = 3;
/** Roads within about 9.9 degrees of each other run in the same direction. */
const SAME_DIRECTION_COSINE = 0.985;
const MIN_OVERLAP_METERS = 18;

/** Pairs of roads that duplicate, cross or overlap each other without a shared node. Sorted by segment ids. */
export function findConflictingRoads(world: World): Anomaly[] {
  return roadsOf(world).flatMap((a) => {
    const candidates = roadsNear(world, boxAround(a, PAIR_REACH_METERS)).filter(({ id }) => id > a.id);
    return candidates.map((b) => judgePair(a, b)).filter((anomaly) => anomaly !== null);
  });
}

function judgePair(a: NetSegment, b: NetSegment): Anomaly | null {
  const shared = [a.startNodeId, a.endNodeId].filter((id) => id === b.startNodeId || id === b.endNodeId);
  if (shared.length === 2) return { type: "duplicateRoadSegments", ...namesOf(a, b), ...endsOf(a, b) };
  if (shared.length === 1) return null;
  return crossing(a, b) ?? overlap(a, b);
}

function crossing(a: NetSegment, b: NetSegment): Anomaly | null {
  const meeting = crossingOf(a, b);
  if (!meeting) return null;
  const { onA, onB } = meeting;
  return {
    type: "roadCrossingWithoutNode",
    ...namesOf(a, b),
    heightDifference: Math.abs(onA.y - onB.y),
    position: { x: onA.x, y: (onA.y + onB.y) / 2, z: onA.z },
    ...endsOf(a, b),
  };
}

/** Reports nearly parallel roads that are close over MIN_OVERLAP_METERS or more. */
function overlap(a: NetSegment, b: NetSegment): Anomaly | null {
  const distance = Math.min(
    distanceToLine(a.start, b),
    distanceToLine(a.end, b),
    distanceToLine(b.start, a),
    distanceToLine(b.end, a),
  );
  if (distance > PAIR_REACH_METERS) return null;
  if (Math.abs(cosineBetween(a, b)) < SAME_DIRECTION_COSINE) return null;
  const length = lengthOf(a);
  const ux = (a.end.x - a.start.x) / length;
  const uz = (a.end.z - a.start.z) / length;
  const along = [b.start, b.end].map(({ x, z }) => (x - a.start.x) * ux + (z - a.start.z) * uz);
  const overlapLength = Math.min(length, Math.max(...along)) - Math.max(0, Math.min(...along));
  if (overlapLength < MIN_OVERLAP_METERS) return null;
  const heightDifference = Math.max(Math.abs(a.start.y - b.start.y), Math.abs(a.end.y - b.end.y));
  if (heightDifference > SAME_HEIGHT_METERS) return null;
  return { type: "overlappingRoadSegments", ...namesOf(a, b), distance, overlapLength, ...endsOf(a, b) };
}

function namesOf(a: NetSegment, b: NetSegment) {
  return { segmentAId: a.id, segmentBId: b.id, prefabA: a.prefab.name, prefabB: b.prefab.name };
}

function endsOf(a: NetSegment, b: NetSegment) {
  return { segmentA: segmentEnds(a), segmentB: segmentEnds(b) };
}
