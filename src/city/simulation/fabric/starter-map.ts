/**
 * The map of a new city: a highway with two carriageways from edge to edge, and nothing else. Each carriageway has a node
 * at a known place near the plain, where the first road of a town can join it.
 */
import { findNetworkPrefab, type NetworkPrefab } from "../catalogue/network-prefabs.js";
import type { NetNode } from "../state/entities.js";
import { MAP_HALF_METERS } from "../state/terrain.js";
import type { World } from "../state/world.js";
import { createNode, createSegments, type SegmentPlan } from "./network.js";

/** Nodes where a town joins the two carriageways. */
const JUNCTIONS = [
  { x: 422.737, z: 522.957, direction: 1 },
  { x: 423.614, z: 554.945, direction: -1 },
] as const;

const PIECE_METERS = 160;

export function layStarterMap(world: World): void {
  for (const { x, z, direction } of JUNCTIONS) {
    const stops = [...stopsBetween(x, -MAP_HALF_METERS).reverse(), x, ...stopsBetween(x, MAP_HALF_METERS)];
    layCarriageway(world, direction === 1 ? stops : stops.reverse(), z);
  }
}

/** Evenly spaced values from one x (exclusive) to another (inclusive). */
function stopsBetween(from: number, to: number): number[] {
  const pieces = Math.ceil(Math.abs(to - from) / PIECE_METERS);
  return Array.from({ length: pieces }, (_, i) => from + ((to - from) * (i + 1)) / pieces);
}

/** Lays a carriageway. On land it follows the ground; over water it is a bridge at the level of the plain. */
function layCarriageway(world: World, stops: readonly number[], z: number): void {
  const { terrain } = world;
  const road = findNetworkPrefab("Highway") as NetworkPrefab;
  const bridge = findNetworkPrefab("Highway Bridge") as NetworkPrefab;
  const deck = terrain.groundHeight(JUNCTIONS[0].x, z);
  const isWet = (x: number) => [-PIECE_METERS, 0, PIECE_METERS].some((dx) => terrain.isWater(x + dx, z));
  const nodes = stops.map((x) => {
    const y = isWet(x) ? deck : terrain.surfaceHeight(x, z);
    return createNode(world, road, { x, y, z }, Math.abs(x) >= MAP_HALF_METERS);
  });
  const pieces = nodes.slice(1).map((end, i): SegmentPlan => {
    const start = nodes[i] as NetNode;
    const wet = isWet(start.position.x) || isWet(end.position.x);
    return { prefab: wet ? bridge : road, start, end, name: "" };
  });
  createSegments(world, pieces);
}
