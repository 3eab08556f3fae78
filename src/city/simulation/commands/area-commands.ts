/** The map's areas: 5 x 5 tiles around the middle, of which a city owns the first and buys its neighbours. */
import { CommandRefusedError, type MapArea, type UnlockArea, type UnlockAreaResult } from "../../game.js";
import { requireFunds } from "../life/finance.js";
import { announce } from "../life/messages.js";
import type { World } from "../state/world.js";
import { requireWholeWithin } from "./requirements.js";

const TILES = 5;
const TILE_METERS = 1920;
const MAX_AREAS = 9;
/** Times the areas owned so far: tuning in the manner of the game, where each costs more than the one before. */
const PRICE_STEP_MONEY = 5_000;

export function areasOf(world: World): MapArea[] {
  return Array.from({ length: TILES ** 2 }, (_, index) => areaAt(world, index));
}

/** @throws CommandRefusedError naming why the area cannot be had */
export function unlockArea(world: World, command: UnlockArea): UnlockAreaResult {
  const { dryRun, ignoreMaxAreaCount } = command;
  const tileX = command.tileX ?? tileOf(command.x);
  const tileZ = command.tileZ ?? tileOf(command.z);
  requireWholeWithin("tileX", tileX, 0, TILES - 1);
  requireWholeWithin("tileZ", tileZ, 0, TILES - 1);
  const index = tileZ * TILES + tileX;
  const area = areaAt(world, index);
  if (area.owned) throw refusal(`Area ${tileX}, ${tileZ} is owned already`);
  if (!isBesideOwned(world, index)) throw refusal(`Area ${tileX}, ${tileZ} is not beside one that is owned`);
  if (world.areas.size >= MAX_AREAS && !ignoreMaxAreaCount) {
    throw new CommandRefusedError("limit-reached", `The city owns ${MAX_AREAS} areas, the most it may buy`);
  }
  requireFunds(world, area.price, `Area ${tileX}, ${tileZ}`);
  if (dryRun) return { area, maxAreaCount: MAX_AREAS };
  world.areas.add(index);
  world.ledger.book("Construction", area.price);
  announce(world, "CHIRP_NEW_MAP_TILE", "The city has bought new land.");
  return { area: { ...areaAt(world, index), price: area.price }, maxAreaCount: MAX_AREAS };
}

function refusal(message: string): CommandRefusedError {
  return new CommandRefusedError("bad-value", message);
}

function tileOf(meters: number): number {
  return Math.floor(meters / TILE_METERS + TILES / 2);
}

function areaAt(world: World, index: number): MapArea {
  const [tileX, tileZ] = [index % TILES, Math.floor(index / TILES)];
  const owned = world.areas.has(index);
  const [minX, minZ] = [(tileX - TILES / 2) * TILE_METERS, (tileZ - TILES / 2) * TILE_METERS];
  return {
    tileX,
    tileZ,
    owned,
    purchasable: !owned && isBesideOwned(world, index) && world.areas.size < MAX_AREAS,
    price: owned ? 0 : PRICE_STEP_MONEY * world.areas.size,
    bounds: { minX, maxX: minX + TILE_METERS, minZ, maxZ: minZ + TILE_METERS },
  };
}

function isBesideOwned(world: World, index: number): boolean {
  const [x, z] = [index % TILES, Math.floor(index / TILES)];
  return [...world.areas].some((owned) => {
    return Math.abs((owned % TILES) - x) + Math.abs(Math.floor(owned / TILES) - z) === 1;
  });
}
