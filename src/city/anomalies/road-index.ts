/** The roads of a city as the detectors look at them: by id, by place, and by how they meet. */
import Flatbush from "flatbush";
import type { City, NetSegment } from "../game.js";
import { type Box, boxAround, position } from "../geometry.js";
import { keptPer } from "../kept.js";

export class RoadIndex {
  /** Segments of service Road, by id. */
  readonly segments: readonly NetSegment[];
  #tree: Flatbush | null = null;
  readonly #attached = new Map<number, NetSegment[]>();

  constructor(city: City) {
    this.segments = city.segments().filter(({ prefab }) => prefab.service === "Road");
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
   * Those whose bounds touch the box, by id.
   * @param passes told the position in `segments`
   */
  near({ minX, minZ, maxX, maxZ }: Box, passes?: (index: number) => boolean): NetSegment[] {
    // Flatbush refuses to be empty.
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

export const roadsOf = keptPer("networkRevision", (city: City) => new RoadIndex(city));

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
  return { startNodeId, endNodeId, start: position(start), end: position(end) };
}

/** Built through the bridge, as far as a segment can tell: its name says so. */
export function isAgentNamed({ name }: NetSegment): boolean {
  return nameHas(name, "agent");
}

/** Part of the town rather than of the highway through the map. */
export function isLocalRoad(segment: NetSegment): boolean {
  return isAgentNamed(segment) || !segment.prefab.name.includes("Highway");
}

/** @param word in lower case */
export function nameHas(name: string, word: string): boolean {
  return name.toLowerCase().includes(word);
}
