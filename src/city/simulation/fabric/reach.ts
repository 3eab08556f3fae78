/**
 * What a building is within reach of: the road it opens to and where that leads, the pipes that can serve it, the
 * water. A pure function of where things are; roads and pipes are kept up to date when either comes or goes.
 */
import { boxAround, CELL_METERS, distanceToLine, squareAround } from "../../geometry.js";
import { keptPer } from "../../kept.js";
import { LARGEST_FOOTPRINT_CELLS } from "../catalogue/building-prefabs.js";
import type { SimNetworkPrefab } from "../catalogue/network-prefabs.js";
import { DisjointSets } from "../state/collections.js";
import type { SimBuilding, SimSegment } from "../state/entities.js";
import type { Terrain } from "../state/terrain.js";
import type { World } from "../state/world.js";

/** A pipe serves buildings up to this far away. */
const PIPE_REACH_METERS = 100;
/** How far the footprint's edge may be from the edge of its road. */
const DRIVEWAY_METERS = 16;
const WIDEST_ROAD_METERS = 32;

/** Works out a building's road and pipes. */
export function attach(world: World, building: SimBuilding): void {
  const halfExtent = halfExtentOf(building);
  const reach = Math.max(PIPE_REACH_METERS, halfExtent + DRIVEWAY_METERS + WIDEST_ROAD_METERS / 2);
  let roadId = 0;
  building.waterPipeIds = [];
  building.heatPipeIds = [];
  let nearestRoad = Number.POSITIVE_INFINITY;
  for (const segment of world.segments.near(squareAround(building.position, reach))) {
    const { id, prefab } = segment;
    const away = distanceToLine(building.position, segment);
    if (prefab.carries === "water" && away <= PIPE_REACH_METERS) building.waterPipeIds.push(id);
    else if (prefab.carries === "heat" && away <= PIPE_REACH_METERS) building.heatPipeIds.push(id);
    else if (prefab.frontage && away < nearestRoad && away <= roadReach(segment, halfExtent)) {
      nearestRoad = away;
      roadId = id;
    }
  }
  world.openTo(building, roadId);
}

/** After segments came or went: works out anew every building that may be concerned. */
export function reattachNear(world: World, segments: readonly SimSegment[]): void {
  const largest = (LARGEST_FOOTPRINT_CELLS / 2) * CELL_METERS;
  const grow = Math.max(PIPE_REACH_METERS, largest + DRIVEWAY_METERS + WIDEST_ROAD_METERS / 2);
  const concerned = new Set(segments.flatMap((segment) => world.buildings.near(boxAround(segment, grow))));
  for (const building of concerned) attach(world, building);
}

function halfExtentOf(building: SimBuilding): number {
  return (Math.max(building.prefab.width, building.prefab.length) / 2) * CELL_METERS;
}

function roadReach(road: SimSegment, halfExtent: number): number {
  return road.prefab.widthMeters / 2 + halfExtent + DRIVEWAY_METERS;
}

/** Whether one can drive from a building to a connection at the map edge. */
export function isConnectedOutside(world: World, building: SimBuilding): boolean {
  if (building.roadId === 0) return false;
  return leadOutside(world)[world.segments.at(building.roadId).startNodeId] === 1;
}

/** Per node id 1 where its roads lead outside. */
const leadOutside = keptPer("networkRevision", (world: World): Uint8Array => {
  const component = components(world, "traffic");
  const leadsOut = new Uint8Array(component.length);
  for (const node of world.nodes.all()) {
    const root = component[node.id] as number;
    if (node.outside && root !== 0) leadsOut[root] = 1;
  }
  return Uint8Array.from(component, (root) => leadsOut[root] as number);
});

const SHORE_METERS = 24;
const DIRECTIONS = 8;

/** Water within 24 m of the footprint's edge, seen in eight directions from its centre. */
export function isAtShore(terrain: Terrain, building: SimBuilding): boolean {
  const { x, z } = building.position;
  const reach = halfExtentOf(building) + SHORE_METERS;
  if (terrain.isWater(x, z)) return true;
  return Array.from({ length: DIRECTIONS }, (_, i) => (2 * Math.PI * i) / DIRECTIONS).some((angle) =>
    terrain.isWater(x + reach * Math.cos(angle), z + reach * Math.sin(angle)),
  );
}

/**
 * Connected components of the nodes over the segments that carry something.
 * @returns per node id the lowest node id of its component, 0 for nodes on no such segment
 */
export function components(world: World, carries: SimNetworkPrefab["carries"]): Int32Array {
  const joined = new DisjointSets(world.nodes.end);
  for (const { prefab, startNodeId, endNodeId } of world.segments.all()) {
    if (prefab.carries === carries) joined.join(startNodeId, endNodeId);
  }
  return Int32Array.from({ length: world.nodes.end }, (_, id) => Math.max(joined.key(id), 0));
}
