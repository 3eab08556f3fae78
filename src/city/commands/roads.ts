import { z } from "zod";
import { CELL_METERS, distance, type GroundPoint, lengthOf } from "../geometry.js";
import { RefusedError } from "../refusal.js";
import { findNetworkPrefab, type NetworkPrefab } from "../simulation/catalogue/network-prefabs.js";
import { requireRoomForSegment, upgradeSegment } from "../simulation/fabric/network.js";
import { connectedComponents } from "../simulation/fabric/reach.js";
import { requireFunds } from "../simulation/life/finance.js";
import type { NetNode } from "../simulation/state/entities.js";
import type { World } from "../simulation/state/world.js";
import { fieldText, flag, groundPoint, number, optionalNumber, point, text } from "../wire/requests.js";
import { defineCommand } from "./command.js";
import { DEFAULT_SNAP_METERS } from "./grid.js";
import {
  buildPlan,
  buildUnlessDryRun,
  costOf,
  nearestNode,
  type PlannedLink,
  planNetwork,
  planSegmentEnd,
  pointOfEnd,
  type SegmentEnd,
  warningsOf,
} from "./network-plan.js";
import {
  requireId,
  requireMinLength,
  requirePrefab,
  requireSnapDistance,
  requireWithin,
} from "./requirements.js";
import { buildInPieces, planSplitRoad } from "./split-road.js";

export const buildNetwork = defineCommand({
  path: "/commands/build-network",
  summary:
    "Builds one straight segment of any network prefab, or several with `split`. An end near a compatible node uses that node; otherwise a node is created. The heights sent are used only for the length check; the city takes those of the terrain.",
  label: ({ roadPrefab }) => `Build network ${fieldText(roadPrefab, "network")}`,
  fields: z.object({
    dryRun: flag(false),
    roadPrefab: text("Basic Road"),
    start: point,
    end: point,
    name: text("").describe("Empty: a generated name."),
    snapDistance: optionalNumber.describe(
      "An end uses the nearest node within this distance, 0 to 64 m. Null: the node with the lowest id within 2 m.",
    ),
    split: flag(false).describe(
      "Builds the road as the game does: in segments of at most 96 m, joined to the roads that it crosses or that an end lies on (within `snapDistance`, at most 16 m; null: 8 m). Both sides can then be zoned all along. False: one segment, joined only at nodes near its ends.",
    ),
  }),
  act: (world, { dryRun, roadPrefab, start, end, name, snapDistance, split }) => {
    const prefab = requirePrefab(findNetworkPrefab, "network", roadPrefab);
    const from = planSegmentEnd(world, prefab, start, snapDistance);
    const to = planSegmentEnd(world, prefab, end, snapDistance);
    requireMinLength(start, end);
    if (snapDistance !== null) requireSnapDistance(snapDistance);
    requireRoomForSegment(world, from.node, to.node);
    const meters = distance(pointOfEnd(from), pointOfEnd(to));
    const what = `A ${prefab.displayName} of ${meters.toFixed(0)} m`;
    const ends = { roadPrefab, reusedStartNode: from.reused, reusedEndNode: to.reused };
    if (split) {
      const plan = planSplitRoad(world, prefab, [from, to], snapDistance, what);
      return { ...buildInPieces(world, plan, dryRun, name), ...ends };
    }
    const link = { prefab, from, to };
    const cost = costOf(link);
    requireFunds(world, cost, what);
    const warnings = warningsOf(world, [link]);
    const plan = { ends: [from, to], links: [link], skippedSegments: 0, cost };
    const [segmentId] = dryRun ? [] : buildPlan(world, plan, name);
    const ids = segmentId && { segmentId, startNodeId: from.node?.id, endNodeId: to.node?.id };
    const message = segmentId ? `Built segment ${segmentId}.` : "The segment can be built.";
    return { message, ...ids, cost, warnings, ...ends };
  },
});

/** Former path of `build-network`, which clients still use. */
export const buildRoad = { ...buildNetwork, path: "/commands/build-road" };

export const connect = defineCommand({
  path: "/commands/connect",
  summary: "Builds a segment from a place to the nearest node of a service that it is not connected to yet.",
  label: ({ toService }) => `Connect to ${fieldText(toService, "Road")}`,
  fields: z.object({
    dryRun: flag(false),
    name: text(""),
    from: groundPoint,
    toService: text("Road"),
    maxDistance: number(200).describe("At most 1000 m."),
    roadPrefab: text("Basic Road"),
    snapDistance: number(DEFAULT_SNAP_METERS),
  }),
  act: (world, { roadPrefab, from, toService, maxDistance, snapDistance, ...fields }) => {
    const prefab = requirePrefab(findNetworkPrefab, "network", roadPrefab);
    requireSnapDistance(snapDistance);
    requireWithin("maxDistance", maxDistance, 1, MAX_CONNECTION_METERS);
    const end = planSegmentEnd(world, prefab, from, snapDistance);
    const connection = connectToService(world, prefab, end, toService, maxDistance);
    const { link } = connection;
    const plan = planNetwork(world, link ? [end] : [], link ? [link] : [], "The connection");
    const built = buildUnlessDryRun(world, plan, fields);
    const { distance, ...joined } = connectionFields(connection, built.segmentIds);
    const message = link ? built.message : `Node ${joined.nodeId} is connected already.`;
    const { createdNodeIds, cost, warnings } = built;
    return { message, roadPrefab, ...joined, createdNodeIds, distance, cost, warnings };
  },
});

export const MAX_CONNECTION_METERS = 1000;

export interface Connection {
  readonly from: SegmentEnd;
  readonly target: NetNode;
  /** Null if `from` is connected to `target` already. */
  readonly link: PlannedLink | null;
}

/** Reply fields of a connection. In a dry run, `nodeId` is 0 if the node would be new. */
export function connectionFields({ from, target, link }: Connection, segmentIds: readonly number[]) {
  const { x, z } = target.position;
  return {
    alreadyConnected: link === null,
    nodeId: from.node?.id ?? 0,
    targetNodeId: target.id,
    targetPosition: { x, z },
    distance: distance(pointOfEnd(from), target.position),
    segmentIds,
  };
}

/**
 * Plans a link from a place to the nearest node of a service. Ignores nodes to which the place is already
 * connected. Plans no link if no other node is near and the place is itself a node of the service.
 * @throws RefusedError when no such node is near
 */
function connectToService(
  world: World,
  prefab: NetworkPrefab,
  from: SegmentEnd,
  service: string,
  maxMeters: number,
): Connection {
  const part = connectedComponents(world, prefab.carries);
  const own = from.node && part[from.node.id];
  const isForeign = (node: NetNode) =>
    node.prefab.service === service &&
    node !== from.node &&
    (own === undefined || own === 0 || part[node.id] !== own);
  const target = nearestNode(world, prefab, pointOfEnd(from), maxMeters, isForeign);
  if (target) return { from, target, link: linkTo(prefab, from, target) };
  if (from.node?.prefab.service === service) return { from, target: from.node, link: null };
  const message = `No ${service} node that a ${prefab.displayName} could end on lies within ${maxMeters} m`;
  throw new RefusedError(message);
}

/**
 * Plans the shortest link from any crossing of a grid to the target. Plans no link if the grid already shares
 * a node with the town.
 * @param target a service (the link ends at its nearest node) or a place (the link ends at the road node that is
 * nearest to the place)
 * @throws RefusedError when no such node is near
 */
export function connectGrid(
  world: World,
  prefab: NetworkPrefab,
  ends: readonly SegmentEnd[],
  target: string | GroundPoint,
  maxMeters: number,
): Connection {
  const shared = ends.find(({ node }) => node && node.segmentIds.length > 0);
  if (shared?.node) return { from: shared, target: shared.node, link: null };
  const isPlace = typeof target === "object";
  const service = isPlace ? "Road" : target;
  const isWanted = (node: NetNode) => node.prefab.service === service;
  const atPlace = isPlace ? nearestNode(world, prefab, target, MAX_CONNECTION_METERS, isWanted) : undefined;
  let best: Connection | null = null;
  let bestMeters = maxMeters;
  for (const from of ends) {
    const node = isPlace ? atPlace : nearestNode(world, prefab, pointOfEnd(from), bestMeters, isWanted);
    const meters = node ? distance(pointOfEnd(from), node.position) : Number.POSITIVE_INFINITY;
    if (!node || meters > bestMeters || (best && meters === bestMeters)) continue;
    best = { from, target: node, link: linkTo(prefab, from, node) };
    bestMeters = meters;
  }
  if (best) return best;
  throw new RefusedError(`No ${service} node to connect to lies within ${maxMeters} m of the neighborhood`);
}

function linkTo(prefab: NetworkPrefab, from: SegmentEnd, target: NetNode): PlannedLink {
  return { prefab, from, to: { point: target.position, node: target, reused: true } };
}

const MAX_SEGMENTS = 200;

const upgradeRoad = defineCommand({
  path: "/commands/upgrade-road",
  summary:
    "Changes the prefab of roads in place. Zones and buildings stay, even if a wider road reaches under them. The city pays the difference in construction cost.",
  label: ({ roadPrefab }) => `Upgrade road to ${fieldText(roadPrefab, "Medium Road")}`,
  fields: z.object({
    dryRun: flag(false),
    id: number(0).describe("A road segment; `ids` for several, all of them or none."),
    ids: z.array(number(0), "must be a list of ids").default([]),
    roadPrefab: text("Medium Road"),
  }),
  act: (world, { dryRun, id, ids, roadPrefab }) => {
    const prefab = requirePrefab(findNetworkPrefab, "network", roadPrefab);
    const wanted = [...new Set(ids.length > 0 ? ids : [id])];
    if (wanted.length > MAX_SEGMENTS) {
      throw new RefusedError(`At most ${MAX_SEGMENTS} roads are upgraded at once, not ${wanted.length}`);
    }
    const segments = wanted.map((each) => {
      requireId(each);
      const segment = world.segments.require(each);
      if (segment.prefab.service === "Road" && prefab.service === "Road") return segment;
      const message = `Segment ${each} is a ${segment.prefab.displayName}; only roads become other roads`;
      throw new RefusedError(message);
    });
    const changed = segments.filter((segment) => segment.prefab !== prefab);
    const cost = changed.reduce((sum, segment) => {
      const difference = Math.max(prefab.costPerCell - segment.prefab.costPerCell, 0);
      return sum + (difference * lengthOf(segment)) / CELL_METERS;
    }, 0);
    requireFunds(world, cost, `Upgrading ${changed.length} roads to ${prefab.displayName}`);
    if (!dryRun) {
      for (const segment of changed) upgradeSegment(world, segment, prefab);
      world.ledger.book("Construction", cost);
    }
    const done = dryRun ? "would be" : "were";
    const message = `${changed.length} roads ${done} upgraded for ${cost.toFixed(2)}.`;
    const segmentIds = changed.map((segment) => segment.id);
    return { message, roadPrefab, segmentIds, skippedSegments: segments.length - changed.length, cost };
  },
});

export const ROAD_COMMANDS = [buildNetwork, buildRoad, connect, upgradeRoad];
