/** Access of buildings to roads, pipes and open water, updated with every new or removed segment. */
import {
  boxAround,
  CELL_METERS,
  distanceToLine,
  type Footprint,
  type GroundPoint,
  squareAround,
} from "../../geometry.js";
import { cachedByRevision } from "../../revision-cache.js";
import { LARGEST_FOOTPRINT_CELLS } from "../catalogue/building-prefabs.js";
import type { NetworkPrefab } from "../catalogue/network-prefabs.js";
import { DisjointSets } from "../state/collections.js";
import type { Building, NetSegment } from "../state/entities.js";
import type { Terrain } from "../state/terrain.js";
import type { World } from "../state/world.js";

/** A pipe serves buildings up to this far away. */
export const PIPE_REACH_METERS = 100;
/** Maximum gap between a footprint and its road. */
const DRIVEWAY_METERS = 16;
const WIDEST_ROAD_METERS = 32;

/** Updates which road and which pipes serve a building. */
export function updateAccess(world: World, building: Building): void {
  building.waterPipeIds = [];
  building.heatPipeIds = [];
  for (const segment of world.segments.near(squareAround(building.position, PIPE_REACH_METERS))) {
    const { id, prefab } = segment;
    const away = distanceToLine(building.position, segment);
    if (prefab.carries === "water" && away <= PIPE_REACH_METERS) building.waterPipeIds.push(id);
    else if (prefab.carries === "heat" && away <= PIPE_REACH_METERS) building.heatPipeIds.push(id);
  }
  world.setAccessRoad(building, findAccessRoadId(world, building));
}

/** Whether a water or heating pipe serves a place. */
export function hasPipe(world: World, place: GroundPoint, carries: "water" | "heat"): boolean {
  return world.segments
    .near(squareAround(place, PIPE_REACH_METERS))
    .some((pipe) => pipe.prefab.carries === carries && distanceToLine(place, pipe) <= PIPE_REACH_METERS);
}

/** Nearest road of the given area that buildings can connect to, with its distance. The lowest id wins a tie. */
export function nearestRoad(
  world: World,
  place: GroundPoint,
  areaMeters: number,
  isInReach: (road: NetSegment, meters: number) => boolean = () => true,
) {
  let nearest: { readonly id: number; readonly meters: number } | null = null;
  for (const road of world.segments.near(squareAround(place, areaMeters))) {
    if (!road.prefab.frontage) continue;
    const meters = distanceToLine(place, road);
    if (meters < (nearest?.meters ?? Number.POSITIVE_INFINITY) && isInReach(road, meters))
      nearest = { id: road.id, meters };
  }
  return nearest;
}

/** Id of the nearest road that could give access to a building on this site; 0 if there is none. */
export function findAccessRoadId(world: World, site: Pick<Footprint, "position" | "prefab">): number {
  const reach = halfExtentOf(site) + DRIVEWAY_METERS;
  return (
    nearestRoad(world, site.position, reach + WIDEST_ROAD_METERS / 2, ({ prefab }, meters) => {
      return meters <= prefab.widthMeters / 2 + reach;
    })?.id ?? 0
  );
}

/** Updates the access of all buildings near added or removed segments. */
export function updateAccessNear(world: World, segments: readonly NetSegment[]): void {
  const largest = (LARGEST_FOOTPRINT_CELLS / 2) * CELL_METERS;
  const grow = Math.max(PIPE_REACH_METERS, largest + DRIVEWAY_METERS + WIDEST_ROAD_METERS / 2);
  const concerned = new Set(segments.flatMap((segment) => world.buildings.near(boxAround(segment, grow))));
  for (const building of concerned) updateAccess(world, building);
}

function halfExtentOf(building: Pick<Footprint, "prefab">): number {
  return (Math.max(building.prefab.width, building.prefab.length) / 2) * CELL_METERS;
}

/** Whether the building's road leads to the map edge. */
export function isConnectedOutside(world: World, building: Building): boolean {
  return building.roadId !== 0 && leadsOutside(world, world.segments.at(building.roadId).startNodeId);
}

/** Whether one can drive from the node to the map edge. */
export function leadsOutside(world: World, nodeId: number): boolean {
  return leadOutside(world)[nodeId] === 1;
}

/** Per node id: 1 if its roads lead outside. */
const leadOutside = cachedByRevision("networkRevision", (world: World): Uint8Array => {
  const component = connectedComponents(world, "traffic");
  const leadsOut = new Uint8Array(component.length);
  for (const node of world.nodes.all()) {
    const root = component[node.id] as number;
    if (node.outside && root !== 0) leadsOut[root] = 1;
  }
  return Uint8Array.from(component, (root) => leadsOut[root] as number);
});

const SHORE_METERS = 24;
const DIRECTIONS = 8;

/** Whether water lies within 24 m of the footprint's edge, in one of eight directions. */
export function isAtShore(terrain: Terrain, building: Pick<Footprint, "position" | "prefab">): boolean {
  const { x, z } = building.position;
  const reach = halfExtentOf(building) + SHORE_METERS;
  if (terrain.isWater(x, z)) return true;
  return Array.from({ length: DIRECTIONS }, (_, i) => (2 * Math.PI * i) / DIRECTIONS).some((angle) =>
    terrain.isWater(x + reach * Math.cos(angle), z + reach * Math.sin(angle)),
  );
}

/**
 * Connected components of the network that carries traffic or a utility.
 * @returns for each node id the lowest node id of its component; 0 for nodes that are not in the network
 */
export function connectedComponents(world: World, carries: NetworkPrefab["carries"]): Int32Array {
  const joined = new DisjointSets(world.nodes.end);
  for (const { prefab, startNodeId, endNodeId } of world.segments.all()) {
    if (prefab.carries === carries) joined.join(startNodeId, endNodeId);
  }
  return Int32Array.from({ length: world.nodes.end }, (_, id) => Math.max(joined.key(id), 0));
}
