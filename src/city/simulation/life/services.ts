/** Services that reach buildings by distance: the nearest working provider serves, as well as its capacity allows. */

import { distance } from "../../geometry.js";
import type { Coverage } from "../catalogue/building-prefabs.js";
import { isWorking } from "../fabric/buildings.js";
import type { SimBuilding } from "../state/entities.js";
import type { World } from "../state/world.js";

/**
 * Asks for a service on behalf of a building.
 * @param demand how much of the provider's capacity this takes
 * @returns how well it is served, from 0 (not at all) to 1
 */
export function requestService(world: World, building: SimBuilding, kind: Coverage, demand: number): number {
  const provider = nearestProvider(world, building, kind);
  if (!provider) return 0;
  provider.load += demand;
  const capacity = provider.prefab.civic?.coverage?.capacity ?? 0;
  return provider.lastLoad <= capacity ? 1 : capacity / provider.lastLoad;
}

/** At a provider's own turn: what was asked of it since its last turn becomes its load. */
export function rollServiceLoad(building: SimBuilding): void {
  building.lastLoad = building.load;
  building.load = 0;
}

function nearestProvider(world: World, building: SimBuilding, kind: Coverage): SimBuilding | null {
  let nearest: SimBuilding | null = null;
  let nearestAway = Number.POSITIVE_INFINITY;
  for (const provider of world.providers.get(kind)?.items ?? []) {
    const away = distance(provider.position, building.position);
    const radius = provider.prefab.civic?.coverage?.radiusMeters ?? 0;
    if (away <= radius && away < nearestAway && isWorking(provider)) {
      nearest = provider;
      nearestAway = away;
    }
  }
  return nearest;
}
