/** Commands that paint zones and put mottled zoning right. */
import {
  CommandRefusedError,
  type RepairZoneClusters,
  type RepairZoneClustersResult,
  type RepairZonesToGrowablesResult,
  type SetZone,
  type SetZoneResult,
} from "../../game.js";
import { CELL_METERS, distance, squareAround } from "../../geometry.js";
import {
  FACILITY_SERVICES,
  GROWABLE_SERVICES,
  PAINTABLE_ZONES,
  type Service,
  ZONES,
  type Zone,
  zoneOf,
} from "../../terms.js";
import { areUniform, clusterBlocks, isMixed, isPatchy, tallyCells } from "../../zone-tally.js";
import { BUILDING_PREFABS, LARGEST_FOOTPRINT_CELLS } from "../catalogue/building-prefabs.js";
import { blockCentroid, setCells } from "../fabric/zone-blocks.js";
import { SquareGrid } from "../state/collections.js";
import type { SimZoneBlock } from "../state/entities.js";
import { BLOCK_REACH_METERS, type World } from "../state/world.js";
import { requireOnMap } from "./requirements.js";

export const MAX_PAINT_RADIUS_METERS = 256;
/** Beyond half the longer side of a building. */
const BLOCK_NEIGHBOURHOOD_METERS = 38;
const LARGEST_GROWABLE_CELLS = Math.max(
  ...BUILDING_PREFABS.filter(({ growable }) => growable).flatMap(({ width, length }) => [width, length]),
);
/** Two growables whose squared distances differ by less than this claim a block equally. */
const AMBIGUOUS_SQUARE_METERS = 100;
const MIN_GRID_METERS = 24;
const MAX_GRID_METERS = 160;

/** Buildings that `preserveOccupied` keeps the paint away from. */
const PROTECTED_SERVICES: ReadonlySet<Service> = new Set<Service>([
  ...GROWABLE_SERVICES,
  ...FACILITY_SERVICES,
  "Beautification",
  "Monument",
]);

/** Paints whole blocks: those whose stored position or cell centroid lies within the radius. */
export function setZone(world: World, command: SetZone): SetZoneResult {
  const { center, radius } = command;
  if (!(radius > 0 && radius <= MAX_PAINT_RADIUS_METERS)) {
    const message = `The radius must be above 0 and at most ${MAX_PAINT_RADIUS_METERS} m, not ${radius}`;
    throw new CommandRefusedError("bad-value", message);
  }
  const zone = requireZone(command.zone);
  requireOnMap(center);
  const matching = world.blocks
    .near(squareAround(center, radius + BLOCK_REACH_METERS))
    .filter(
      (block) => Math.min(distance(block.position, center), distance(blockCentroid(block), center)) <= radius,
    );
  let skippedOccupiedBlocks = 0;
  let changedCells = 0;
  for (const block of matching) {
    if (command.preserveOccupied && isProtected(world, block)) skippedOccupiedBlocks++;
    else if (!command.dryRun) changedCells += paint(world, block, zone, () => true);
  }
  return { matchingBlocks: matching.length, skippedOccupiedBlocks, changedCells };
}

/** @throws CommandRefusedError unless it may be painted */
export function requireZone(wanted: string): Zone {
  const zone = PAINTABLE_ZONES.find((name) => name === wanted);
  if (zone) return zone;
  const message = `Unknown zone "${wanted}"; it must be one of ${PAINTABLE_ZONES.join(", ")}`;
  throw new CommandRefusedError("unknown-zone", message);
}

/** Gives the zoned cells of each block the zone of the growable nearest to it. */
export function repairZonesToGrowables(world: World, dryRun: boolean): RepairZonesToGrowablesResult {
  let repairableBlocks = 0;
  let skippedMixedUseBlocks = 0;
  let changedCells = 0;
  const expectedOf = expectedZones(world);
  for (const block of world.blocks.all()) {
    const expected = expectedOf(block);
    if (expected === "ambiguous") skippedMixedUseBlocks++;
    if (expected === "ambiguous" || expected === null) continue;
    const wrongCells = paint(world, block, expected, (cell) => cell !== 0, dryRun);
    if (wrongCells > 0) repairableBlocks++;
    if (!dryRun) changedCells += wrongCells;
  }
  return { inspectedBlocks: world.blocks.size, repairableBlocks, skippedMixedUseBlocks, changedCells };
}

/** Gives the cells of each mottled cluster its dominant zone, or the zone of the growable nearest to each block. */
export function repairZoneClusters(world: World, command: RepairZoneClusters): RepairZoneClustersResult {
  const gridSize = Math.min(Math.max(command.gridSize, MIN_GRID_METERS), MAX_GRID_METERS);
  const thresholds = {
    minMinorityCells: Math.max(command.minMinorityCells, 1),
    minUnzonedCells: Math.max(command.minUnzonedCells, 1),
  };
  const clusters = clusterBlocks(world.blocks.all(), gridSize);
  const expectedOf = command.preferGrowableZone && !command.dryRun ? expectedZones(world) : () => null;
  let repairableClusters = 0;
  let repairedBlocks = 0;
  let changedCells = 0;
  for (const cluster of clusters) {
    if (areUniform(cluster.blocks)) continue;
    const tally = tallyCells(cluster.blocks);
    if (!isMixed(tally, thresholds) && !(command.includePatchy && isPatchy(tally, thresholds))) continue;
    repairableClusters++;
    if (command.dryRun) continue;
    for (const { id } of cluster.blocks) {
      const block = world.blocks.at(id);
      const grown = expectedOf(block);
      const target = grown === null || grown === "ambiguous" ? tally.dominantZone : grown;
      const changed = paint(world, block, target, (cell) => cell !== 0 || command.fillUnzoned);
      changedCells += changed;
      if (changed > 0) repairedBlocks++;
    }
  }
  return { gridSize, clusterCount: clusters.length, repairableClusters, repairedBlocks, changedCells };
}

type ExpectedZone = Zone | "ambiguous" | null;
const NOBODY = -1;
const AMBIGUOUS = -2;

/**
 * The zone of the growable nearest to each block; null when there is none near. Growables are looked at in id order: one
 * that is not nearer, of another zone, and about as near as the best makes the block ambiguous.
 */
function expectedZones(world: World): (block: SimZoneBlock) => ExpectedZone {
  const grid = new SquareGrid(world.blocks.all(), reachOf(LARGEST_GROWABLE_CELLS));
  const count = world.blocks.size;
  const zones = new Int8Array(count).fill(NOBODY);
  const nearest = new Float64Array(count).fill(Number.POSITIVE_INFINITY);
  for (const { prefab, position } of world.buildings.all()) {
    if (!prefab.growable) continue;
    const [own, reach] = [ZONES.indexOf(zoneOf(prefab)), reachOf(prefab.width, prefab.length) ** 2];
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
    return zone === NOBODY ? null : (ZONES[zone] as Zone);
  };
}

function isProtected(world: World, block: SimZoneBlock): boolean {
  return world.buildings
    .near(squareAround(block.position, reachOf(LARGEST_FOOTPRINT_CELLS)))
    .some(
      ({ prefab, position }) =>
        PROTECTED_SERVICES.has(prefab.service) &&
        !prefab.helper &&
        distance(position, block.position) <= reachOf(prefab.width, prefab.length),
    );
}

/** A building counts for the blocks whose stored position lies so near. */
function reachOf(...sidesInCells: readonly number[]): number {
  return (Math.max(...sidesInCells) / 2) * CELL_METERS + BLOCK_NEIGHBOURHOOD_METERS;
}

/** @returns how many cells that may be painted are, or would be, changed */
function paint(
  world: World,
  block: SimZoneBlock,
  zone: Zone,
  mayPaint: (cell: number) => boolean,
  dryRun = false,
): number {
  const { cells, commonZone } = block;
  const value = ZONES.indexOf(zone);
  const isWrong = (cell: number) => cell !== value && mayPaint(cell);
  if (commonZone >= 0) {
    if (!isWrong(commonZone)) return 0;
    if (!dryRun) setCells(world, block, new Uint8Array(cells.length).fill(value));
    return cells.length;
  }
  let wrong = 0;
  for (const cell of cells) if (isWrong(cell)) wrong++;
  if (!dryRun && wrong > 0)
    setCells(
      world,
      block,
      cells.map((cell) => (isWrong(cell) ? value : cell)),
    );
  return wrong;
}
