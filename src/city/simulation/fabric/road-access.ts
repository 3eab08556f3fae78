/** Which roads lead out of the city. */
import type { SimBuilding } from "../state/entities.js";
import type { World } from "../state/world.js";
import { components } from "./network.js";

interface OutsideRoads {
  readonly revision: number;
  readonly connected: Uint8Array;
}

const cache = new WeakMap<World, OutsideRoads>();

/** Whether one can drive from a building to a connection at the map edge. */
export function isConnectedOutside(world: World, building: SimBuilding): boolean {
  if (building.roadId === 0) return false;
  return outsideRoads(world).connected[world.segments.at(building.roadId).startNodeId] === 1;
}

/** Per node id 1 where its roads lead outside; worked out once per change of the network. */
function outsideRoads(world: World): OutsideRoads {
  const known = cache.get(world);
  if (known && known.revision === world.networkRevision) return known;
  const component = components(world, (segment) => segment.prefab.carries === "traffic");
  const leadsOut = new Uint8Array(component.length);
  for (const node of world.nodes.all()) {
    const root = component[node.id] as number;
    if (node.outside && root !== 0) leadsOut[root] = 1;
  }
  const connected = new Uint8Array(component.length);
  for (let id = 1; id < component.length; id++) connected[id] = leadsOut[component[id] as number] as number;
  const roads = { revision: world.networkRevision, connected };
  cache.set(world, roads);
  return roads;
}
