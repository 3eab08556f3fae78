/** Whether a building stands at the water, as pumps and outlets must. */

import type { GroundPoint } from "../../game.js";
import { CELL_METERS } from "../../geometry.js";
import type { Terrain } from "../state/terrain.js";

const SHORE_METERS = 24;
const DIRECTIONS = 8;

/** Water within 24 m of the footprint's edge, seen in eight directions from its centre. */
export function isAtShore(
  terrain: Terrain,
  building: {
    readonly position: GroundPoint;
    readonly prefab: { readonly width: number; readonly length: number };
  },
): boolean {
  const { x, z } = building.position;
  const reach = (Math.max(building.prefab.width, building.prefab.length) / 2) * CELL_METERS + SHORE_METERS;
  if (terrain.isWater(x, z)) return true;
  return Array.from({ length: DIRECTIONS }, (_, i) => (2 * Math.PI * i) / DIRECTIONS).some((angle) =>
    terrain.isWater(x + reach * Math.cos(angle), z + reach * Math.sin(angle)),
  );
}
