/**
 * Several segments as one command: planned and checked as a whole, then built as a whole. A plan changes nothing; what
 * it passes can be built.
 */
import type { BuiltNetwork } from "../../composites.js";
import { CommandRefusedError, type GroundPoint, type Position } from "../../game.js";
import { boxAround, CELL_METERS, crossingOf, distance, squareAround } from "../../geometry.js";
import type { SimNetworkPrefab } from "../catalogue/network-prefabs.js";
import { createNode, createSegments, isCompatible, MAX_SEGMENTS_PER_NODE } from "../fabric/network.js";
import { requireFunds } from "../life/finance.js";
import { reportFirstRoad } from "../life/messages.js";
import type { SimNode, SimSegment } from "../state/entities.js";
import type { World } from "../state/world.js";
import { requireLength, requireOnMap } from "./requirements.js";

/** Where a segment begins or ends: on a node that there is, or on one to be created. */
export interface PlannedEnd {
  readonly point: GroundPoint;
  node: SimNode | undefined;
  /** Existing node was there before the plan. */
  readonly reused: boolean;
}

export interface PlannedLink {
  readonly prefab: SimNetworkPrefab;
  readonly from: PlannedEnd;
  readonly to: PlannedEnd;
}

export interface NetworkPlan {
  readonly ends: readonly PlannedEnd[];
  readonly links: readonly PlannedLink[];
  readonly skippedSegments: number;
  readonly cost: number;
}

/** The nearest node within reach that a segment of this prefab could end on; the lowest id of equals. */
export function nearestNode(
  world: World,
  prefab: SimNetworkPrefab,
  point: GroundPoint,
  reach: number,
  isWanted: (node: SimNode) => boolean = () => true,
): SimNode | undefined {
  let nearest: SimNode | undefined;
  for (const node of world.nodes.near(squareAround(point, reach))) {
    const away = distance(node.position, point);
    if (away > reach || !isCompatible(node.prefab, prefab) || !isWanted(node)) continue;
    if (!nearest || away < distance(nearest.position, point)) nearest = node;
  }
  return nearest;
}

export function planEnd(
  world: World,
  prefab: SimNetworkPrefab,
  point: GroundPoint,
  snap: number,
): PlannedEnd {
  requireOnMap(point);
  const node = nearestNode(world, prefab, point, snap);
  return { point, node, reused: node !== undefined };
}

/**
 * @param wanted links, of which those that a segment of the same service makes already are left out
 * @throws CommandRefusedError naming the limit that the whole would break, or cost and balance
 */
export function planNetwork(
  world: World,
  ends: readonly PlannedEnd[],
  wanted: readonly PlannedLink[],
  what: string,
): NetworkPlan {
  requireDistinct(ends);
  const links = wanted.filter((link) => !isJoined(world, link));
  for (const { from, to } of links) requireLength({ ...placeOf(from), y: 0 }, { ...placeOf(to), y: 0 });
  requireRoomAtNodes(links);
  world.nodes.requireRoomFor(ends.filter(({ node }) => !node).length);
  world.segments.requireRoomFor(links.length);
  const cost = links.reduce((sum, link) => sum + costOf(link), 0);
  requireFunds(world, cost, what);
  return { ends, links, skippedSegments: wanted.length - links.length, cost };
}

/** Builds what a plan holds: nodes, then segments. */
export function buildPlan(world: World, { ends, links, cost }: NetworkPlan, name: string): readonly number[] {
  const hadStreets = world.blocks.size > 0;
  const prefab = links[0]?.prefab;
  for (const end of ends) {
    const { x, z } = end.point;
    if (prefab) end.node ??= createNode(world, prefab, { x, y: world.terrain.surfaceHeight(x, z), z }, false);
  }
  const segments = createSegments(
    world,
    links.map(({ prefab, from, to }) => ({
      prefab,
      start: from.node as SimNode,
      end: to.node as SimNode,
      name,
    })),
  );
  world.ledger.book("Construction", cost);
  const [first] = segments;
  if (first?.prefab.zoning && !hadStreets) reportFirstRoad(world, first.name);
  return segments.map(({ id }) => id);
}

/** Carries a plan out, unless it is only tried, and tells of it. */
export function carryOut(
  world: World,
  plan: NetworkPlan,
  { dryRun, name }: { readonly dryRun: boolean; readonly name: string },
): BuiltNetwork {
  const { ends, links, skippedSegments, cost } = plan;
  const reusedNodes = ends.filter(({ reused }) => reused).length;
  const crossed = links.flatMap((link) => crossedBy(world, link).map(({ id }) => id));
  const segmentIds = dryRun ? [] : buildPlan(world, plan, name);
  const idsOf = (some: readonly PlannedEnd[]) => (dryRun ? [] : some.map(({ node }) => node?.id ?? 0));
  return {
    nodeIds: idsOf(ends),
    createdNodeIds: idsOf(ends.filter(({ reused }) => !reused)),
    segmentIds,
    reusedNodes,
    skippedSegments,
    plannedNodes: ends.length - reusedNodes,
    plannedSegments: links.length,
    cost,
    crossedSegmentIds: [...new Set(crossed)],
  };
}

/** Where an end will be: a node that is used again stays where it is. */
export function placeOf({ point, node }: PlannedEnd): GroundPoint {
  return node?.position ?? point;
}

/** Segments carrying the same that a new one would cross, with no node where they do. */
export function crossedBy(world: World, { prefab, from, to }: PlannedLink): SimSegment[] {
  const positionOf = ({ point: { x, z }, node }: PlannedEnd): Position =>
    node?.position ?? { x, y: world.terrain.surfaceHeight(x, z), z };
  const span = { start: positionOf(from), end: positionOf(to) };
  return world.segments.near(boxAround(span, 0)).filter((other) => {
    const isAlike = prefab.carries !== "other" && other.prefab.carries === prefab.carries;
    return isAlike && crossingOf(span, other) !== null;
  });
}

export function costOf({ prefab, from, to }: PlannedLink): number {
  return (prefab.costPerCell * distance(placeOf(from), placeOf(to))) / CELL_METERS;
}

function requireDistinct(ends: readonly PlannedEnd[]): void {
  const seen = new Set<SimNode>();
  for (const { node } of ends) {
    if (!node) continue;
    if (seen.has(node)) {
      const message = `Two places fall on node ${node.id}; a smaller snapDistance keeps them apart`;
      throw new CommandRefusedError("too-short", message);
    }
    seen.add(node);
  }
}

function isJoined(world: World, { prefab, from, to }: PlannedLink): boolean {
  const [start, end] = [from.node, to.node];
  if (!start || !end) return false;
  return start.segmentIds.some((id) => {
    const segment = world.segments.at(id);
    const joins = segment.startNodeId === end.id || segment.endNodeId === end.id;
    return joins && segment.prefab.service === prefab.service;
  });
}

function requireRoomAtNodes(links: readonly PlannedLink[]): void {
  const planned = new Map<SimNode, number>();
  for (const { node } of links.flatMap(({ from, to }) => [from, to])) {
    if (!node) continue;
    const count = (planned.get(node) ?? node.segmentIds.length) + 1;
    planned.set(node, count);
    if (count > MAX_SEGMENTS_PER_NODE) {
      const message = `Node ${node.id} would have more than ${MAX_SEGMENTS_PER_NODE} segments, the most a node can have`;
      throw new CommandRefusedError("limit-reached", message);
    }
  }
}
