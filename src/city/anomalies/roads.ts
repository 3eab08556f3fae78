/** The roads of a city: networks of service Road. */

import type { Box } from "../geometry.js";
import { cachedByRevision } from "../revision-cache.js";
import type { NetSegment } from "../simulation/state/entities.js";
import type { World } from "../simulation/state/world.js";

/** All roads, in id order. */
export const roadsOf = cachedByRevision("networkRevision", ({ segments }: World) =>
  segments.all().filter(isRoad),
);

/** Roads that meet at a node. */
export function roadsAt({ nodes, segments }: World, nodeId: number): NetSegment[] {
  return nodes
    .at(nodeId)
    .segmentIds.map((id) => segments.at(id))
    .filter(isRoad);
}

/** Roads whose bounds touch the box, in id order. */
export function roadsNear({ segments }: World, box: Box): NetSegment[] {
  return segments.near(box).filter(isRoad);
}

function isRoad({ prefab }: NetSegment): boolean {
  return prefab.service === "Road";
}

export function segmentEnds({ startNodeId, endNodeId, start, end }: NetSegment) {
  return { startNodeId, endNodeId, start, end };
}

/** Whether a client of the HTTP bridge built the segment, according to the name of the segment. */
export function isBuiltByClient({ name }: NetSegment): boolean {
  return nameContains(name, "agent");
}

/** Whether the road belongs to the town. False for the highway that crosses the map. */
export function isLocalRoad(segment: NetSegment): boolean {
  return isBuiltByClient(segment) || !segment.prefab.name.includes("Highway");
}

/** Whether a name contains a word. Ignores the case of the name. @param word must be in lower case */
export function nameContains(name: string, word: string): boolean {
  return name.toLowerCase().includes(word);
}
