/** The map has 5 x 5 areas. A city begins with the one in the middle and can buy those beside its own. */
import type { World } from "./world.js";

/** Tiles along each side of the map. */
export const TILES_PER_SIDE = 5;
const TILE_METERS = 1920;
export const MAX_AREAS = 9;
/** The price of the next area is this amount times the number of areas that the city already owns. */
const PRICE_STEP_MONEY = 5_000;

export function areasOf(world: World): MapArea[] {
  return Array.from({ length: TILES_PER_SIDE ** 2 }, (_, index) => areaAt(world, index));
}

/** Converts an x in metres to a tile column, or a z in metres to a tile row. */
export function tileCoordinate(meters: number): number {
  return Math.floor(meters / TILE_METERS + TILES_PER_SIDE / 2);
}

export function areaIndex(tileX: number, tileZ: number): number {
  return tileZ * TILES_PER_SIDE + tileX;
}

export type MapArea = ReturnType<typeof areaAt>;

/** Column (0 west to 4), row (0 south to 4), bounds and price (0 if owned) of a tile. */
export function areaAt(world: World, index: number) {
  const [tileX, tileZ] = [index % TILES_PER_SIDE, Math.floor(index / TILES_PER_SIDE)];
  const owned = world.areas.has(index);
  const [minX, minZ] = [
    (tileX - TILES_PER_SIDE / 2) * TILE_METERS,
    (tileZ - TILES_PER_SIDE / 2) * TILE_METERS,
  ];
  return {
    tileX,
    tileZ,
    owned,
    /** Whether the city may buy the tile now. */
    purchasable: !owned && isBesideOwned(world, index) && world.areas.size < MAX_AREAS,
    price: owned ? 0 : PRICE_STEP_MONEY * world.areas.size,
    bounds: { minX, maxX: minX + TILE_METERS, minZ, maxZ: minZ + TILE_METERS },
  };
}

export function isBesideOwned(world: World, index: number): boolean {
  const [x, z] = [index % TILES_PER_SIDE, Math.floor(index / TILES_PER_SIDE)];
  return [...world.areas].some((owned) => {
    return Math.abs((owned % TILES_PER_SIDE) - x) + Math.abs(Math.floor(owned / TILES_PER_SIDE) - z) === 1;
  });
}
