/** Painting of zone blocks, shared by the zoning and repair commands. */
import { CELL_METERS } from "../geometry.js";
import { RefusedError } from "../refusal.js";
import { BUILDING_PREFABS } from "../simulation/catalogue/building-prefabs.js";
import { setCells } from "../simulation/fabric/zone-blocks.js";
import { SquareGrid } from "../simulation/state/collections.js";
import type { ZoneBlock } from "../simulation/state/entities.js";
import type { World } from "../simulation/state/world.js";
import { PAINTABLE_ZONES, ZONES, type Zone, zoneOf } from "../terms.js";

export const MAX_PAINT_RADIUS_METERS = 256;
/** Distance from a building's centre to its blocks, at most: this number plus half of the building's longer side. */
const BLOCK_NEIGHBOURHOOD_METERS = 38;
const LARGEST_GROWABLE_CELLS = Math.max(
  ...BUILDING_PREFABS.filter(({ growable }) => growable).flatMap(({ width, length }) => [width, length]),
);
/**
 * A block is ambiguous if growables of two zones are about equally near: their squared distances to the block
 * differ by less than this number of square metres.
 */
const AMBIGUOUS_SQUARE_METERS = 100;

/** @throws RefusedError unless the zone may be painted */
export function requireZone(requested: string): Zone {
  const zone = PAINTABLE_ZONES.find((name) => name === requested);
  if (zone) return zone;
  throw new RefusedError(`Unknown zone "${requested}"; it must be one of ${PAINTABLE_ZONES.join(", ")}`);
}

/** Largest distance from a building's centre to the stored position of a block that it belongs to. */
export function buildingReachMeters(...sidesInCells: readonly number[]): number {
  return (Math.max(...sidesInCells) / 2) * CELL_METERS + BLOCK_NEIGHBOURHOOD_METERS;
}

/** @returns number of paintable cells that change, or would change in a dry run */
export function paintBlock(
  world: World,
  block: ZoneBlock,
  zone: Zone,
  mayPaint: (cell: number, index: number) => boolean,
  dryRun = false,
): number {
  const value = ZONES.indexOf(zone);
  if (block.commonZone === value) return 0;
  const isWrong = (cell: number, index: number) => cell !== value && mayPaint(cell, index);
  const wrong = block.cells.filter(isWrong).length;
  const painted = () => block.cells.map((cell, index) => (isWrong(cell, index) ? value : cell));
  if (!dryRun && wrong > 0) setCells(world, block, painted());
  return wrong;
}

type ExpectedZone = Zone | "ambiguous" | null;
const NONE = -1;
const AMBIGUOUS = -2;

/**
 * Returns the expected zone of each block: the zone of the nearest growable, or null if none is near. Visits
 * the growables in id order. If a growable of another zone is about as near as the nearest growable so far,
 * the block becomes ambiguous.
 */
export function expectedZones(world: World): (block: ZoneBlock) => ExpectedZone {
  const grid = new SquareGrid(world.blocks.all(), buildingReachMeters(LARGEST_GROWABLE_CELLS));
  const count = world.blocks.size;
  const zones = new Int8Array(count).fill(NONE);
  const nearest = new Float64Array(count).fill(Number.POSITIVE_INFINITY);
  for (const { prefab, position } of world.buildings.all()) {
    if (!prefab.growable) continue;
    const [own, reach] = [
      ZONES.indexOf(zoneOf(prefab)),
      buildingReachMeters(prefab.width, prefab.length) ** 2,
    ];
    grid.visitAround(position, (at, squared) => {
      if (squared > reach || zones[at] === AMBIGUOUS) return;
      if (squared < (nearest[at] as number)) {
        zones[at] = own;
        nearest[at] = squared;
      } else if (own !== zones[at] && squared - (nearest[at] as number) < AMBIGUOUS_SQUARE_METERS) {
        zones[at] = AMBIGUOUS;
      }
    });
  }
  return ({ id }) => {
    const zone = zones[grid.indexOf(id)] as number;
    if (zone === AMBIGUOUS) return "ambiguous";
    return zone === NONE ? null : (ZONES[zone] as Zone);
  };
}
