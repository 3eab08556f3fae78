/** Plans network segments. Checks the whole plan before anything is built. */
import { CELL_METERS, distance, type GroundPoint, type Position, squareAround } from "../geometry.js";
import { RefusedError } from "../refusal.js";
import type { NetworkPrefab } from "../simulation/catalogue/network-prefabs.js";
import {
  createNode,
  createSegments,
  crossedSegments,
  findReusableNode,
  isCompatible,
  MAX_SEGMENTS_PER_NODE,
} from "../simulation/fabric/network.js";
import { requireFunds } from "../simulation/life/finance.js";
import { reportFirstRoad } from "../simulation/life/messages.js";
import type { NetNode, NetSegment } from "../simulation/state/entities.js";
import type { World } from "../simulation/state/world.js";
import { recordSegments } from "./journal.js";
import { requireMinLength, requireOnMap } from "./requirements.js";
import { countBuildingsUnder } from "./sites.js";

/** Spacing of water depth samples, equal to the spacing of terrain samples. */
const SOUNDING_METERS = 16;

/** End of a planned segment: an existing node, or a place where the plan creates one. */
export interface SegmentEnd {
  readonly point: GroundPoint;
  node: NetNode | undefined;
  /** Whether the node existed before the plan. */
  readonly reused: boolean;
}

export interface PlannedLink {
  readonly prefab: NetworkPrefab;
  readonly from: SegmentEnd;
  readonly to: SegmentEnd;
}

export interface NetworkPlan {
  readonly ends: readonly SegmentEnd[];
  readonly links: readonly PlannedLink[];
  /** Number of links that the plan skips, because a segment of the same service already exists. */
  readonly skippedSegments: number;
  readonly cost: number;
}

/** Nearest node within `reach` at which a segment of this prefab may end. The lowest id wins a tie. */
export function nearestNode(
  world: World,
  prefab: NetworkPrefab,
  point: GroundPoint,
  reach: number,
  isWanted: (node: NetNode) => boolean = () => true,
): NetNode | undefined {
  let nearest: NetNode | undefined;
  for (const node of world.nodes.near(squareAround(point, reach))) {
    const away = distance(node.position, point);
    if (away > reach || !isCompatible(node.prefab, prefab) || !isWanted(node)) continue;
    if (!nearest || away < distance(nearest.position, point)) nearest = node;
  }
  return nearest;
}

/** @param snap null: the node that the game reuses */
export function planSegmentEnd(
  world: World,
  prefab: NetworkPrefab,
  point: GroundPoint,
  snap: number | null,
): SegmentEnd {
  requireOnMap(point);
  const node =
    snap === null ? findReusableNode(world, prefab, point) : nearestNode(world, prefab, point, snap);
  return { point, node, reused: node !== undefined };
}

/**
 * @param wanted requested links; skips links between nodes that a segment of the same service already joins
 * @throws RefusedError if the plan breaks a limit or costs more than the balance
 */
export function planNetwork(
  world: World,
  ends: readonly SegmentEnd[],
  wanted: readonly PlannedLink[],
  what: string,
): NetworkPlan {
  requireDistinct(ends);
  const links = wanted.filter((link) => !isJoined(world, link));
  for (const { from, to } of links)
    requireMinLength({ ...pointOfEnd(from), y: 0 }, { ...pointOfEnd(to), y: 0 });
  requireRoomAtNodes(links);
  world.nodes.requireRoomFor(ends.filter(({ node }) => !node).length);
  world.segments.requireRoomFor(links.length);
  const cost = links.reduce((sum, link) => sum + costOf(link), 0);
  requireFunds(world, cost, what);
  return { ends, links, skippedSegments: wanted.length - links.length, cost };
}

/** Builds a plan: nodes, then segments. Returns the segment ids. */
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
      start: from.node as NetNode,
      end: to.node as NetNode,
      name,
    })),
  );
  world.ledger.book("Construction", cost);
  recordSegments(world, segments, cost);
  const [first] = segments;
  if (first?.prefab.zoning && !hadStreets) reportFirstRoad(world, first.name);
  return segments.map(({ id }) => id);
}

/**
 * Builds a plan. With `dryRun`, only returns the expected result, without ids.
 * @returns `details` are the fields of the reply to a command that builds a grid
 */
export function buildUnlessDryRun(
  world: World,
  plan: NetworkPlan,
  { dryRun, name }: { readonly dryRun: boolean; readonly name: string },
) {
  const { ends, links, skippedSegments, cost } = plan;
  const created = ends.filter(({ reused }) => !reused);
  const planned = { plannedNodes: created.length, plannedSegments: links.length };
  const reusedNodes = ends.length - created.length;
  const warnings = warningsOf(world, links);
  const segmentIds = dryRun ? [] : buildPlan(world, plan, name);
  const idsOf = (some: readonly SegmentEnd[]) => (dryRun ? [] : some.map(({ node }) => node?.id ?? 0));
  const createdNodeIds = idsOf(created);
  const ids = { nodeIds: idsOf(ends), createdNodeIds, reusedNodes, segmentIds, skippedSegments };
  const counts = dryRun ? { ...planned, reusedNodes, skippedSegments } : ids;
  const done = dryRun ? "would be built" : "were built";
  const message = `${links.length} segments and ${created.length} nodes ${done} for ${cost.toFixed(2)}.`;
  return { message, segmentIds, createdNodeIds, cost, warnings, details: { ...counts, cost, warnings } };
}

/** Position of the end's node, or the planned point if it has none yet. */
export function pointOfEnd({ point, node }: SegmentEnd): GroundPoint {
  return node?.position ?? point;
}

/** Existing segments that a planned segment would cross without a shared node, so without a connection. */
function crossedBy(world: World, link: PlannedLink): NetSegment[] {
  return crossedSegments(world, link.prefab, spanOf(world, link));
}

function spanOf(world: World, { prefab, from, to }: PlannedLink) {
  const positionOf = ({ point: { x, z }, node }: SegmentEnd): Position =>
    node?.position ?? { x, y: world.terrain.surfaceHeight(x, z), z };
  return { prefab, start: positionOf(from), end: positionOf(to) };
}

export function costOf({ prefab, from, to }: PlannedLink): number {
  return (prefab.costPerCell * distance(pointOfEnd(from), pointOfEnd(to))) / CELL_METERS;
}

function requireDistinct(ends: readonly SegmentEnd[]): void {
  const seen = new Set<NetNode>();
  for (const { node } of ends) {
    if (!node) continue;
    if (seen.has(node)) {
      throw new RefusedError(`Two places snap to node ${node.id}; use a smaller snapDistance`);
    }
    seen.add(node);
  }
}

/** Whether a segment of the same service joins both ends already. */
export function isJoined(world: World, { prefab, from, to }: PlannedLink): boolean {
  const [start, end] = [from.node, to.node];
  if (!start || !end) return false;
  return start.segmentIds.some((id) => {
    const segment = world.segments.at(id);
    const joins = segment.startNodeId === end.id || segment.endNodeId === end.id;
    return joins && segment.prefab.service === prefab.service;
  });
}

function requireRoomAtNodes(links: readonly PlannedLink[]): void {
  const planned = new Map<NetNode, number>();
  for (const { node } of links.flatMap(({ from, to }) => [from, to])) {
    if (!node) continue;
    const count = (planned.get(node) ?? node.segmentIds.length) + 1;
    planned.set(node, count);
    if (count > MAX_SEGMENTS_PER_NODE) {
      const message = `Node ${node.id} would have more than ${MAX_SEGMENTS_PER_NODE} segments, the most a node can have`;
      throw new RefusedError(message);
    }
  }
}

/** Warnings about planned segments. They do not prevent the build. */
export function warningsOf(world: World, links: readonly PlannedLink[]): string[] {
  const warnings: string[] = [];
  const [first, ...more] = new Set(links.flatMap((link) => crossedBy(world, link).map(({ id }) => id)));
  if (first !== undefined) {
    const which = more.length === 0 ? `segment ${first}` : `segments ${[first, ...more].join(", ")}`;
    warnings.push(`The new segment crosses ${which} without a node, so they are not connected`);
  }
  const depth = Math.max(0, ...links.map((link) => waterDepthUnder(world, link)));
  const covered = links.reduce((sum, link) => sum + countBuildingsUnder(world, spanOf(world, link)), 0);
  if (covered > 0)
    warnings.push(
      `The road runs over ${covered === 1 ? "a building, which stays" : `${covered} buildings, which stay`}`,
    );
  if (depth > 0)
    warnings.push(`The road runs through water up to ${depth.toFixed(1)} m deep; use its Bridge variant`);
  return warnings;
}

/** Depth in metres of the deepest water that a road on the ground runs through. */
function waterDepthUnder({ terrain }: World, { prefab, from, to }: PlannedLink): number {
  if (prefab.carries !== "traffic" || prefab.elevation !== "ground") return 0;
  const [start, end] = [pointOfEnd(from), pointOfEnd(to)];
  const steps = Math.ceil(distance(start, end) / SOUNDING_METERS);
  let deepest = 0;
  for (let i = 0; i <= steps; i++) {
    const x = start.x + ((end.x - start.x) * i) / steps;
    const z = start.z + ((end.z - start.z) * i) / steps;
    deepest = Math.max(deepest, terrain.surfaceHeight(x, z) - terrain.groundHeight(x, z));
  }
  return deepest;
}
