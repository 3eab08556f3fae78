/** Checks for commands that place or move a building: its id, prefab and position. */
import type { GroundPoint } from "../geometry.js";
import { RefusedError } from "../refusal.js";
import type { BuildingPrefab } from "../simulation/catalogue/building-prefabs.js";
import type { Building } from "../simulation/state/entities.js";
import type { World } from "../simulation/state/world.js";
import { requireId, requireOnMap } from "./requirements.js";

export function requireBuilding(world: World, id: number): Building {
  requireId(id);
  return world.buildings.require(id);
}

/** @throws RefusedError */
export function requirePlaceable(
  world: World,
  prefab: BuildingPrefab,
  position: GroundPoint,
  angleDegrees: number,
): void {
  if (prefab.blocked) {
    throw new RefusedError(`"${prefab.name}" is one of the game's broken assets and cannot be placed`);
  }
  requireOnMap(position);
  if (!Number.isFinite(angleDegrees)) {
    throw new RefusedError(`The angle must be a number of degrees, not ${angleDegrees}`);
  }
  world.buildings.requireRoomFor(1);
}
