/** Index of a city's roads for the anomaly detectors. Finds roads by area and by node. */

import Flatbush from "flatbush";
import { type Box, boxAround } from "../geometry.js";
import { cachedByRevision } from "../revision-cache.js";
import type { NetSegment } from "../simulation/state/entities.js";
import type { World } from "../simulation/state/world.js";

export class RoadIndex {
  /** Segments of service Road, in id order. */
  readonly segments: readonly NetSegment[];
  #tree: Flatbush | null = null;
  readonly #attached = new Map<number, NetSegment[]>();

  constructor(world: World) {
    this.segments = world.segments.all().filter(({ prefab }) => prefab.service === "Road");
    for (const segment of this.segments) {
      this.#attach(segment.startNodeId, segment);
      this.#attach(segment.endNodeId, segment);
    }
  }

  /** Road segments that meet at a node. */
  attachedTo(nodeId: number): readonly NetSegment[] {
    return this.#attached.get(nodeId) ?? [];
  }

  /**
   * Roads whose bounds touch the box, sorted by id.
   * @param passes returns whether to include the road with this index into `segments`
   */
  near({ minX, minZ, maxX, maxZ }: Box, passes?: (index: number) => boolean): NetSegment[] {
    // Flatbush does not accept an empty index.
    if (this.segments.length === 0) return [];
    this.#tree ??= treeOf(this.segments);
    const found = this.#tree.search(minX, minZ, maxX, maxZ, passes).sort((a, b) => a - b);
    return found.map((index) => this.segments[index] as NetSegment);
  }

  #attach(nodeId: number, segment: NetSegment): void {
    const segments = this.#attached.get(nodeId);
    if (segments) segments.push(segment);
    else this.#attached.set(nodeId, [segment]);
  }
}

export const roadIndexOf = cachedByRevision("networkRevision", (world: World) => new RoadIndex(world));

function treeOf(segments: readonly NetSegment[]): Flatbush {
  const tree = new Flatbush(segments.length);
  for (const segment of segments) {
    const { minX, minZ, maxX, maxZ } = boxAround(segment, 0);
    tree.add(minX, minZ, maxX, maxZ);
  }
  tree.finish();
  return tree;
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
