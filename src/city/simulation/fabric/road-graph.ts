/**
 * The roads as a graph, and the quickest ways on it. Every road is driven in both directions, one-way roads too: there
 * and back together. Crossings without a node are none.
 */
import FlatQueue from "flatqueue";
import { lengthOf } from "../../geometry.js";
import { keptPer } from "../../kept.js";
import type { SimSegment } from "../state/entities.js";
import type { World } from "../state/world.js";

/** Nobody drives for longer. */
export const LONGEST_TRIP_SECONDS = 3_600;
/** As measured on real roads by the American Bureau of Public Roads: `1 + 0.15 (volume / capacity)^4` times as long. */
const DELAY_FACTOR = 0.15;
/** A jam moves this much slower than an empty road at most. */
const LONGEST_DELAY = 15;

/** Seconds to drive along a whole segment among the cars that were last counted on it. */
function secondsAlong(segment: SimSegment): number {
  const { prefab, traffic } = segment;
  return (lengthOf(segment) / (prefab.speedKmh / 3.6)) * delayAt(traffic.volume / prefab.capacityPerHour);
}

/** How many times as long as on an empty road. @param load volume over capacity */
export function delayAt(load: number): number {
  return Math.min(1 + DELAY_FACTOR * load ** 4, LONGEST_DELAY);
}

export interface RoadGraph {
  /** The roads that leave node n stand at `first[n]` to `first[n + 1] - 1`. */
  readonly first: Int32Array;
  readonly segmentIds: Int32Array;
  readonly farNodeIds: Int32Array;
  /** Per segment id, as of the last count. */
  readonly seconds: Float64Array;
}

/** The roads of today. */
export const roadGraph = keptPer("networkRevision", (world: World): RoadGraph => {
  const first = new Int32Array(world.nodes.end + 1);
  const segmentIds: number[] = [];
  const farNodeIds: number[] = [];
  for (let id = 0; id < world.nodes.end; id++) {
    first[id] = segmentIds.length;
    for (const segmentId of world.nodes.get(id)?.segmentIds ?? []) {
      const { prefab, startNodeId, endNodeId } = world.segments.at(segmentId);
      if (prefab.capacityPerHour === 0) continue;
      segmentIds.push(segmentId);
      farNodeIds.push(startNodeId === id ? endNodeId : startNodeId);
    }
  }
  first[world.nodes.end] = segmentIds.length;
  const graph = {
    first,
    segmentIds: Int32Array.from(segmentIds),
    farNodeIds: Int32Array.from(farNodeIds),
    seconds: new Float64Array(world.segments.end),
  };
  timeRoads(world, graph);
  return graph;
});

/** After a count: how long it takes now to drive along each road. */
export function timeRoads(world: World, graph: RoadGraph = roadGraph(world)): void {
  for (const segment of world.segments.values()) {
    if (segment.prefab.capacityPerHour > 0) graph.seconds[segment.id] = secondsAlong(segment);
  }
}

/**
 * The quickest ways from some places to everywhere, up to the longest trip. They are looked for only as far as somebody
 * asks: most trips are short.
 */
export class RoadTree {
  /** Per node id the index of the root its way begins at, -1 for none; sure once a road that ends there was asked for. */
  readonly roots: Int32Array;
  readonly #graph: RoadGraph;
  readonly #seconds: Float64Array;
  /** Per node id its place in the order in which they were reached, from 1; 0 for not yet. */
  readonly #place: Int32Array;
  readonly #arrivedBy: Int32Array;
  readonly #cameFrom: Int32Array;
  /** In the order of their distance. */
  readonly #reached: number[] = [];
  readonly #queue = new FlatQueue<number>();

  /** @param roots in either of the two nodes of the roads where the places are, or at nodes */
  constructor(
    graph: RoadGraph,
    roots: readonly { readonly nodeId: number; readonly seconds: number; readonly root: number }[],
  ) {
    this.#graph = graph;
    const nodes = graph.first.length - 1;
    this.#seconds = new Float64Array(nodes).fill(Number.POSITIVE_INFINITY);
    this.roots = new Int32Array(nodes).fill(-1);
    this.#place = new Int32Array(nodes);
    this.#arrivedBy = new Int32Array(nodes);
    this.#cameFrom = new Int32Array(nodes);
    for (const { nodeId, seconds, root } of roots) {
      if (seconds >= (this.#seconds[nodeId] as number)) continue;
      this.#seconds[nodeId] = seconds;
      this.roots[nodeId] = root;
      this.#queue.push(nodeId, seconds);
    }
  }

  /** The end of a road that is reached first. */
  nearEnd({ startNodeId, endNodeId }: SimSegment): number {
    while (this.#place[startNodeId] === 0 && this.#place[endNodeId] === 0 && this.#reachNext());
    const [start, end] = [this.#seconds[startNodeId], this.#seconds[endNodeId]] as [number, number];
    const near = start <= end ? startNodeId : endNodeId;
    while (this.#place[near] === 0 && this.#reachNext());
    return near;
  }

  /** Seconds to the middle of a road; Infinity for one that is out of reach. */
  secondsTo(road: SimSegment): number {
    const half = (this.#graph.seconds[road.id] as number) / 2;
    return (this.#seconds[this.nearEnd(road)] as number) + half;
  }

  /**
   * Walks from node to node, the nearest first, and meets each road at its nearer end.
   * @param goOn told the seconds to the next node; whether to go there
   */
  walk(goOn: (seconds: number) => boolean, meet: (segmentId: number, seconds: number) => void): void {
    const { first, segmentIds, farNodeIds } = this.#graph;
    for (let place = 1; place <= this.#reached.length || this.#reachNext(); place++) {
      const nodeId = this.#reached[place - 1] as number;
      const seconds = this.#seconds[nodeId] as number;
      if (!goOn(seconds)) return;
      const last = first[nodeId + 1] as number;
      for (let i = first[nodeId] as number; i < last; i++) {
        const farPlace = this.#place[farNodeIds[i] as number] as number;
        if (farPlace === 0 || farPlace > place) meet(segmentIds[i] as number, seconds);
      }
    }
  }

  /**
   * Sends vehicles over the quickest ways.
   * @param bound vehicles per hour that end at each node
   * @param pass told how many drive along a segment
   */
  send(bound: Float64Array, pass: (segmentId: number, vehicles: number) => void): void {
    for (let i = this.#reached.length - 1; i >= 0; i--) {
      const nodeId = this.#reached[i] as number;
      const vehicles = bound[nodeId] as number;
      const segmentId = this.#arrivedBy[nodeId] as number;
      if (vehicles === 0 || segmentId === 0) continue;
      pass(segmentId, vehicles);
      const from = this.#cameFrom[nodeId] as number;
      bound[from] = (bound[from] as number) + vehicles;
    }
  }

  /** Settles the way to one more node; false when there is none. */
  #reachNext(): boolean {
    const at = this.#queue.peekValue();
    if (at === undefined) return false;
    const nodeId = this.#queue.pop() as number;
    if (at > (this.#seconds[nodeId] as number)) return this.#reachNext();
    this.#place[nodeId] = this.#reached.push(nodeId);
    this.#spreadFrom(nodeId, at);
    return true;
  }

  #spreadFrom(nodeId: number, at: number): void {
    const { first, segmentIds, farNodeIds, seconds: along } = this.#graph;
    const last = first[nodeId + 1] as number;
    for (let i = first[nodeId] as number; i < last; i++) {
      const segmentId = segmentIds[i] as number;
      const far = farNodeIds[i] as number;
      const then = at + (along[segmentId] as number);
      if (then >= (this.#seconds[far] as number) || then > LONGEST_TRIP_SECONDS) continue;
      this.#seconds[far] = then;
      this.roots[far] = this.roots[nodeId] as number;
      this.#arrivedBy[far] = segmentId;
      this.#cameFrom[far] = nodeId;
      this.#queue.push(far, then);
    }
  }
}

/** Both ends of a road, as roots of a tree from its middle. */
export function rootsOn(graph: RoadGraph, { id, startNodeId, endNodeId }: SimSegment, root: number) {
  const seconds = (graph.seconds[id] as number) / 2;
  return [
    { nodeId: startNodeId, seconds, root },
    { nodeId: endNodeId, seconds, root },
  ];
}
