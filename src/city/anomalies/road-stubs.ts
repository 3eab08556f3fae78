import type { City, NetNode, NetSegment } from "../game.js";
import { position } from "../places.js";
import type { Anomaly } from "./anomaly.js";
import { distanceToLine, lengthOf, squareAround } from "./plane.js";
import type { RoadIndex } from "./road-index.js";

const FIRST_SEARCH_METERS = 32;

/** Short segments that end in a dead end, by segment id. */
export function findShortStubs(roads: RoadIndex, shortSegmentLength: number): Anomaly[] {
  return roads.segments.flatMap((segment): Anomaly[] => {
    const length = lengthOf(segment);
    const startConnections = roads.attachedTo(segment.startNodeId).length;
    const endConnections = roads.attachedTo(segment.endNodeId).length;
    if (length > shortSegmentLength || (startConnections > 1 && endConnections > 1)) return [];
    const row = {
      type: "shortRoadStub",
      segmentId: segment.id,
      prefab: segment.prefab.name,
      length,
      startConnections,
      endConnections,
      start: position(segment.start),
      end: position(segment.end),
    };
    return [row];
  });
}

export interface DeadEndRules {
  readonly nearMissDistance: number;
  readonly includeDeadEnds: boolean;
}

/**
 * Nodes where a road ends, by node id: beside another road without meeting it, or plainly. A road that leaves the map
 * does not end there.
 */
export function findDeadEnds(city: City, roads: RoadIndex, rules: DeadEndRules): Anomaly[] {
  return city.nodes().flatMap((node): Anomaly[] => {
    const [own, ...others] = roads.attachedTo(node.id);
    if (own === undefined || others.length > 0 || node.outside) return [];
    const miss = nearestForeignRoad(roads, node, rules.nearMissDistance);
    if (!miss && !rules.includeDeadEnds) return [];
    const type = miss ? "deadEndNearRoad" : "deadEndRoad";
    return [{ type, nodeId: node.id, ownSegmentId: own.id, ...miss, position: position(node.position) }];
  });
}

/** The search widens step by step: its cost follows what is near, not how far it may look. */
function nearestForeignRoad(roads: RoadIndex, node: NetNode, reach: number) {
  for (let radius = Math.min(FIRST_SEARCH_METERS, reach); ; radius = Math.min(radius * 4, reach)) {
    const nearest = nearestWithin(roads, node, radius);
    if (nearest) return nearest;
    if (radius >= reach) return null;
  }
}

function nearestWithin(roads: RoadIndex, node: NetNode, radius: number) {
  let nearest: { nearestSegmentId: number; distance: number } | null = null;
  for (const index of roads.near(squareAround(node.position, radius))) {
    const segment = roads.segments[index] as NetSegment;
    if (segment.startNodeId === node.id || segment.endNodeId === node.id) continue;
    const distance = distanceToLine(node.position, segment);
    if (distance > radius || (nearest && distance >= nearest.distance)) continue;
    nearest = { nearestSegmentId: segment.id, distance };
  }
  return nearest;
}
