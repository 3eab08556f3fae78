/**
 * The road graph and its quickest paths. One-way roads can be used in both directions, because each trip includes
 * the way back. Roads that cross without a node are not connected.
 */
import FlatQueue from "flatqueue";
import { lengthOf } from "../../geometry.js";
import { cachedByRevision } from "../../revision-cache.js";
import type { NetSegment } from "../state/entities.js";
import type { World } from "../state/world.js";

/** Maximum trip time. */
export const LONGEST_TRIP_SECONDS = 3_600;
/** BPR function (US Bureau of Public Roads): travel time grows by `1 + 0.15 * (volume / capacity)^4`. */
const DELAY_FACTOR = 0.15;
/** Maximum slow-down factor in a jam. */
const LONGEST_DELAY = 15;

/** Seconds to drive along a segment, with the traffic of the last count. */
function secondsAlong(segment: NetSegment): number {
  const { prefab, traffic } = segment;
  return (
    (lengthOf(segment) / (prefab.speedKmh / 3.6)) * slowdownFactor(traffic.volume / prefab.capacityPerHour)
  );
}

/** Travel time with traffic, as a multiple of the time on an empty road. @param load volume / capacity */
export function slowdownFactor(load: number): number {
  return Math.min(1 + DELAY_FACTOR * load ** 4, LONGEST_DELAY);
}

export interface RoadGraph {
  /** Edges of node n are at `first[n]` to `first[n + 1] - 1`. */
  readonly first: Int32Array;
  readonly segmentIds: Int32Array;
  readonly farNodeIds: Int32Array;
  /** Travel time by segment id, as of the last count. */
  readonly seconds: Float64Array;
}

/** The graph of the current roads. */
export const roadGraph = cachedByRevision("networkRevision", (world: World): RoadGraph => {
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
  updateTravelTimes(world, graph);
  return graph;
});

/** Updates travel times from the last traffic count. */
export function updateTravelTimes(world: World, graph: RoadGraph = roadGraph(world)): void {
  for (const segment of world.segments.values()) {
    if (segment.prefab.capacityPerHour > 0) graph.seconds[segment.id] = secondsAlong(segment);
  }
}

/** Quickest paths from start nodes. The search grows on demand, because most trips are short. */
export class RoadTree {
  /**
   * For each node id: the `root` value of the start node with the quickest path; -1 if no path is known. The
   * value may change until the search reaches the node.
   */
  readonly roots: Int32Array;
  readonly #graph: RoadGraph;
  readonly #seconds: Float64Array;
  /** For each node id: 1 for the node that the search reached first, and so on; 0 if it was not reached yet. */
  readonly #place: Int32Array;
  readonly #arrivedBy: Int32Array;
  readonly #cameFrom: Int32Array;
  /** Nodes reached so far, sorted by travel time. */
  readonly #reached: number[] = [];
  readonly #queue = new FlatQueue<number>();

  /** @param roots start nodes, each with the `seconds` to reach it and a number `root` that identifies it */
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

  /** Id of the end node of a road that is quicker to reach. */
  nearEnd({ startNodeId, endNodeId }: NetSegment): number {
    while (this.#place[startNodeId] === 0 && this.#place[endNodeId] === 0 && this.#reachNext());
    const [start, end] = [this.#seconds[startNodeId], this.#seconds[endNodeId]] as [number, number];
    const near = start <= end ? startNodeId : endNodeId;
    while (this.#place[near] === 0 && this.#reachNext());
    return near;
  }

  /** Seconds to the middle of a road; Infinity if it cannot be reached. */
  secondsTo(road: NetSegment): number {
    const half = (this.#graph.seconds[road.id] as number) / 2;
    return (this.#seconds[this.nearEnd(road)] as number) + half;
  }

  /**
   * Visits roads in order of the travel time to their nearer end.
   * @param shouldContinue called with the seconds to the next node; the walk stops if it returns false
   */
  walk(shouldContinue: (seconds: number) => boolean, visit: (segmentId: number, seconds: number) => void) {
    const { first, segmentIds, farNodeIds } = this.#graph;
    for (let place = 1; place <= this.#reached.length || this.#reachNext(); place++) {
      const nodeId = this.#reached[place - 1] as number;
      const seconds = this.#seconds[nodeId] as number;
      if (!shouldContinue(seconds)) return;
      const last = first[nodeId + 1] as number;
      for (let i = first[nodeId] as number; i < last; i++) {
        const farPlace = this.#place[farNodeIds[i] as number] as number;
        if (farPlace === 0 || farPlace > place) visit(segmentIds[i] as number, seconds);
      }
    }
  }

  /**
   * Sends vehicles along the quickest paths.
   * @param bound by node id: vehicles per hour with this destination; changed by the call
   * @param pass called with the vehicles per hour on each used segment
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

  /** One step of Dijkstra's algorithm; false when no node is left. */
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

/** Start nodes for paths that begin in the middle of a road: its two ends, each half the road's travel time away. */
export function rootsAtRoadEnds(graph: RoadGraph, { id, startNodeId, endNodeId }: NetSegment, root: number) {
  const seconds = (graph.seconds[id] as number) / 2;
  return [
    { nodeId: startNodeId, seconds, root },
    { nodeId: endNodeId, seconds, root },
  ];
}
