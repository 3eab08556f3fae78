/** The whole building catalogue in load order, and finding a prefab in it. */
import type { SimBuildingPrefab } from "./building-prefab.js";
import { CIVIC_PREFABS } from "./civic-prefabs.js";
import { GROWABLE_PREFABS } from "./growable-prefabs.js";

export const BUILDING_PREFABS: readonly SimBuildingPrefab[] = [...CIVIC_PREFABS, ...GROWABLE_PREFABS];

const BY_NAME = new Map(BUILDING_PREFABS.map((prefab) => [prefab.name, prefab]));

export function findBuildingPrefab(name: string): SimBuildingPrefab | undefined {
  return BY_NAME.get(name);
}
