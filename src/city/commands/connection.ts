/** Links a planned place to the nearest node of an existing network. */
import { distance, type GroundPoint } from "../geometry.js";
import { RefusedError } from "../refusal.js";
import type { NetworkPrefab } from "../simulation/catalogue/network-prefabs.js";
import { connectedComponents } from "../simulation/fabric/reach.js";
import type { NetNode } from "../simulation/state/entities.js";
import type { World } from "../simulation/state/world.js";
import { nearestNode, type PlannedLink, pointOfEnd, type SegmentEnd } from "./network-plan.js";

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
export function connectToService(
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
