/** Commands that paint zones and put mottled zoning right. */
import {
  CommandRefusedError,
  type RepairZoneClusters,
  type RepairZoneClustersResult,
  type RepairZonesToGrowablesResult,
  type SetZone,
  type SetZoneResult,
} from "../../game.js";
import { distance, squareAround } from "../../geometry.js";
import {
  FACILITY_SERVICES,
  GROWABLE_SERVICES,
  PAINTABLE_ZONES,
  type Service,
  ZONES,
  type Zone,
} from "../../terms.js";
import { clusterBlocks, isMixed, isPatchy, tallyCells } from "../../zone-tally.js";
import { BUILDING_PREFABS } from "../catalogue/building-prefabs.js";
import { zoneOf } from "../fabric/buildings.js";
import { blockCentroid } from "../fabric/zone-blocks.js";
import type { SimBuilding, SimZoneBlock } from "../state/entities.js";
import { BLOCK_REACH_METERS, type World } from "../state/world.js";
import { requireOnMap } from "./requirements.js";

export const MAX_PAINT_RADIUS_METERS = 256;
/** A building counts for blocks within this distance plus half its longer side. */
const BLOCK_NEIGHBOURHOOD_METERS = 38;
const LARGEST_FOOTPRINT_CELLS = 16;
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
    else if (!command.dryRun) changedCells += paint(block, zone, () => true);
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
  for (const block of world.blocks.all()) {
    const expected = expectedZone(world, block);
    if (expected === "ambiguous") skippedMixedUseBlocks++;
    if (expected === "ambiguous" || expected === null) continue;
    const value = ZONES.indexOf(expected);
    if (!block.cells.some((cell) => cell !== 0 && cell !== value)) continue;
    repairableBlocks++;
    if (!dryRun) changedCells += paint(block, expected, (cell) => cell !== 0);
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
  let repairableClusters = 0;
  let repairedBlocks = 0;
  let changedCells = 0;
  for (const cluster of clusters) {
    const tally = tallyCells(cluster.blocks);
    if (!isMixed(tally, thresholds) && !(command.includePatchy && isPatchy(tally, thresholds))) continue;
    repairableClusters++;
    if (command.dryRun) continue;
    for (const { id } of cluster.blocks) {
      const block = world.blocks.at(id);
      const grown = command.preferGrowableZone ? expectedZone(world, block) : null;
      const target = grown === null || grown === "ambiguous" ? tally.dominantZone : grown;
      const changed = paint(block, target, (cell) => cell !== 0 || command.fillUnzoned);
      changedCells += changed;
      if (changed > 0) repairedBlocks++;
    }
  }
  return { gridSize, clusterCount: clusters.length, repairableClusters, repairedBlocks, changedCells };
}

/**
 * The zone of the growable nearest to a block; null when there is none near. Growables are looked at in id order: one
 * that is not nearer, of another zone, and about as near as the best makes the block ambiguous.
 */
function expectedZone(world: World, block: SimZoneBlock): Zone | "ambiguous" | null {
  let zone: Zone | null = null;
  let nearest = Number.POSITIVE_INFINITY;
  for (const building of buildingsNear(world, block, LARGEST_GROWABLE_CELLS)) {
    if (!building.prefab.growable) continue;
    const squared = distance(building.position, block.position) ** 2;
    const own = zoneOf(building.prefab);
    if (squared < nearest) {
      zone = own;
      nearest = squared;
    } else if (own !== zone && Math.abs(squared - nearest) < AMBIGUOUS_SQUARE_METERS) {
      return "ambiguous";
    }
  }
  return zone;
}

function isProtected(world: World, block: SimZoneBlock): boolean {
  return buildingsNear(world, block, LARGEST_FOOTPRINT_CELLS).some(
    ({ prefab }) => PROTECTED_SERVICES.has(prefab.service) && !prefab.helper,
  );
}

/** Buildings of up to so many cells within `max(width, length) * 4 + 38` m of a block's stored position, by id. */
function buildingsNear(world: World, block: SimZoneBlock, largestCells: number): SimBuilding[] {
  const reachOf = ({ prefab }: SimBuilding) =>
    Math.max(prefab.width, prefab.length) * 4 + BLOCK_NEIGHBOURHOOD_METERS;
  const farthest = largestCells * 4 + BLOCK_NEIGHBOURHOOD_METERS;
  return world.buildings
    .near(squareAround(block.position, farthest))
    .filter((building) => distance(building.position, block.position) <= reachOf(building));
}

function paint(block: SimZoneBlock, zone: Zone, mayPaint: (cell: number) => boolean): number {
  const value = ZONES.indexOf(zone);
  let changed = 0;
  block.cells.forEach((cell, i) => {
    if (cell === value || !mayPaint(cell)) return;
    block.cells[i] = value;
    changed++;
  });
  return changed;
}
