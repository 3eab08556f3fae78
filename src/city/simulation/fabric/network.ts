/** Creates and removes nodes and segments. */
import {
  boxAround,
  cosineBetween,
  crossingOf,
  distance,
  type GroundPoint,
  middle,
  type Position,
  type Span,
  squareAround,
} from "../../geometry.js";
import { RefusedError } from "../../refusal.js";
import type { NetworkPrefab } from "../catalogue/network-prefabs.js";
import { type NetNode, type NetSegment, NO_PROBLEMS, newTraffic, type Problems } from "../state/entities.js";
import { pick } from "../state/random.js";
import type { World } from "../state/world.js";
import { updateAccessNear } from "./reach.js";
import {
  createBlocks,
  invalidateUsableCells,
  moveBlocks,
  removeBlocks,
  zonedCells,
  zoneLike,
} from "./zone-blocks.js";

/** A segment that ends this close to a compatible node reuses the node. */
const NODE_REUSE_METERS = 2;
export const MAX_SEGMENTS_PER_NODE = 8;
/** A new road takes the name of an adjoining street if the cosine of the angle between both is at least this. */
const STREET_CONTINUES_COSINE = 0.9;

const FLOODED_ROAD: Problems = { names: ["Flood"], severity: "warning" };

const STREET_NAMES = (
  "Elm Oak Maple Cedar Birch Willow Aspen Linden Hazel Rowan Juniper Poplar Chestnut Alder Mill Bridge Station " +
  "Market Garden Harbour Chapel Meadow Orchard Quarry Ferry Canal Hill Valley North South Lantern Copper Saddler " +
  "Weaver Cooper Fisher Heron Swallow Falcon Badger"
).split(" ");
const STREET_KINDS = ["Street", "Road", "Avenue", "Lane", "Way", "Drive"];

/** Whether a segment of one prefab may end at a node that a segment of another prefab created. */
export function isCompatible(own: NetworkPrefab, other: NetworkPrefab): boolean {
  return own === other || (own.service === "Road" && other.service === "Road");
}

/** Segments for the same use that the span crosses without a shared node, so without a connection. */
export function crossedSegments(world: World, prefab: NetworkPrefab, span: Span): NetSegment[] {
  return world.segments.near(boxAround(span, 0)).filter((other) => {
    const isAlike = prefab.carries !== "other" && other.prefab.carries === prefab.carries;
    return isAlike && crossingOf(span, other) !== null;
  });
}

/** The node that a new segment shares if it ends at `point`: the one with the lowest id in reach. */
export function findReusableNode(
  world: World,
  prefab: NetworkPrefab,
  point: GroundPoint,
): NetNode | undefined {
  for (const node of world.nodes.near(squareAround(point, NODE_REUSE_METERS))) {
    if (isCompatible(node.prefab, prefab) && distance(node.position, point) <= NODE_REUSE_METERS) return node;
  }
  return undefined;
}

/** @throws RefusedError if a segment between these ends would exceed a limit of the network */
export function requireRoomForSegment(world: World, start: NetNode | undefined, end: NetNode | undefined) {
  if (start && start === end) {
    throw new RefusedError(`Both ends are at node ${start.id}; the segment would have no length`);
  }
  for (const node of [start, end]) {
    if (node && node.segmentIds.length >= MAX_SEGMENTS_PER_NODE) {
      const message = `Node ${node.id} already has ${MAX_SEGMENTS_PER_NODE} segments, the most a node can have`;
      throw new RefusedError(message);
    }
  }
  const newNodes = (start ? 0 : 1) + (end ? 0 : 1);
  world.nodes.requireRoomFor(newNodes);
  world.segments.requireRoomFor(1);
}

export function createNode(
  world: World,
  prefab: NetworkPrefab,
  position: Position,
  outside: boolean,
): NetNode {
  const node: NetNode = {
    id: world.nodes.nextId(),
    prefab,
    position,
    outside,
    problems: NO_PROBLEMS,
    segmentIds: [],
  };
  world.nodes.put(node);
  world.buildIndex += 1;
  return node;
}

export interface SegmentPlan {
  readonly prefab: NetworkPrefab;
  readonly start: NetNode;
  readonly end: NetNode;
  /** Name of the segment. If the name is empty, the city chooses one. */
  readonly name: string;
}

/** Creates segments. Updates nearby buildings once for all of these segments. */
export function createSegments(world: World, plans: readonly SegmentPlan[]): NetSegment[] {
  for (const { prefab, start, end } of plans) {
    invalidateUsableCells(world, { prefab, start: start.position, end: end.position });
  }
  const segments = plans.map((plan) => addSegment(world, plan));
  updateAccessNear(world, segments);
  return segments;
}

function addSegment(world: World, plan: SegmentPlan): NetSegment {
  const { prefab, start, end, name } = plan;
  const id = world.segments.nextId();
  const segment: NetSegment = {
    id,
    prefab,
    name: name || (prefab.service === "Road" ? continuedStreetName(world, id, plan) : ""),
    namedByBuilder: name !== "",
    startNodeId: start.id,
    endNodeId: end.id,
    start: start.position,
    end: end.position,
    problems: isUnderWater(world, plan) ? FLOODED_ROAD : NO_PROBLEMS,
    blockIds: [],
    traffic: newTraffic(),
  };
  start.segmentIds.push(id);
  end.segmentIds.push(id);
  world.buildIndex += 2;
  world.segments.put(segment);
  createBlocks(world, segment);
  return segment;
}

/** Replaces a segment by two that meet at a node. Zones stay, and so do buildings. */
export function splitSegment(world: World, segment: NetSegment, node: NetNode): void {
  const { prefab, name, namedByBuilder } = segment;
  const zones = zonedCells(world, segment);
  const ends = [segment.startNodeId, segment.endNodeId].map((id) => world.nodes.at(id)) as [NetNode, NetNode];
  removeSegment(world, segment, true);
  const parts = createSegments(world, [
    { prefab, start: ends[0], end: node, name },
    { prefab, start: node, end: ends[1], name },
  ]);
  for (const part of parts) {
    part.namedByBuilder = namedByBuilder;
    zoneLike(world, part, zones);
  }
}

/** Changes the prefab of a road. The road keeps its id, name, traffic, zones and buildings. */
export function upgradeSegment(world: World, segment: NetSegment, prefab: NetworkPrefab): void {
  invalidateUsableCells(world, segment);
  world.segments.remove(segment.id);
  const [start, end] = [world.nodes.at(segment.startNodeId), world.nodes.at(segment.endNodeId)];
  const problems = isUnderWater(world, { prefab, start, end, name: "" }) ? FLOODED_ROAD : NO_PROBLEMS;
  const upgraded: NetSegment = { ...segment, prefab, problems };
  world.segments.put(upgraded);
  world.buildIndex += 2;
  if (!prefab.zoning) removeBlocks(world, upgraded);
  else if (upgraded.blockIds.length === 0) createBlocks(world, upgraded);
  else moveBlocks(world, upgraded);
  invalidateUsableCells(world, upgraded);
  updateAccessNear(world, [upgraded]);
}

/** Removes a segment, its zone blocks and, unless `keepNodes`, unused end nodes. */
export function removeSegment(world: World, segment: NetSegment, keepNodes: boolean): void {
  removeBlocks(world, segment);
  world.segments.remove(segment.id);
  invalidateUsableCells(world, segment);
  updateAccessNear(world, [segment]);
  for (const nodeId of [segment.startNodeId, segment.endNodeId]) {
    const node = world.nodes.at(nodeId);
    node.segmentIds.splice(node.segmentIds.indexOf(segment.id), 1);
    if (!keepNodes && node.segmentIds.length === 0) world.nodes.remove(node.id);
  }
}

/** Removes a node, its segments, and nodes at their other ends that become unused. */
export function removeNode(world: World, node: NetNode): void {
  const farEnds = new Set<number>();
  for (const id of [...node.segmentIds]) {
    const segment = world.segments.at(id);
    farEnds.add(segment.startNodeId === node.id ? segment.endNodeId : segment.startNodeId);
    removeSegment(world, segment, true);
  }
  for (const id of farEnds) {
    const far = world.nodes.at(id);
    if (far.segmentIds.length === 0) world.nodes.remove(id);
  }
  world.nodes.remove(node.id);
}

/** Whether the segment is a road on the ground, and the middle of the road is under water. */
function isUnderWater(world: World, { prefab, start, end }: SegmentPlan): boolean {
  const { x, z } = middle({ start: start.position, end: end.position });
  return prefab.carries === "traffic" && prefab.elevation === "ground" && world.terrain.isWater(x, z);
}

function continuedStreetName(world: World, id: number, { start, end }: SegmentPlan): string {
  const line = { start: start.position, end: end.position };
  for (const node of [start, end]) {
    for (const neighbourId of node.segmentIds) {
      const neighbour = world.segments.at(neighbourId);
      const isStreet = neighbour.prefab.service === "Road" && !neighbour.namedByBuilder;
      const cosine = Math.abs(cosineBetween(neighbour, line));
      if (isStreet && cosine >= STREET_CONTINUES_COSINE) return neighbour.name;
    }
  }
  return `${pick(STREET_NAMES, world.seed + 13, id, 0)} ${pick(STREET_KINDS, world.seed + 14, id, 0)}`;
}
