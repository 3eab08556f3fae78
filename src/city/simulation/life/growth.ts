/**
 * Growth of a city. Zoned lots become building sites, sites become buildings, and buildings level up. A new site
 * lowers its demand bar. In a town above 150 citizens, a building grows only if a water pipe is in reach.
 */
import { BLOCK_COLUMNS } from "../../geometry.js";
import { FLAG, type GrowableService, ZONE_GROWTH, ZONES, type Zone } from "../../terms.js";
import { growablesFor } from "../catalogue/building-prefabs.js";
import { createBuilding, setProblem, upgradeGrowable } from "../fabric/buildings.js";
import { AGE_LIMITS, ageInUnits, averageEducation, residentsOf, workersOf } from "../fabric/citizens.js";
import { hasPipe } from "../fabric/reach.js";
import { cellBit, cellCenter, occupiedCellMask, usableCellMask } from "../fabric/zone-blocks.js";
import { FRAMES_PER_DAY } from "../state/calendar.js";
import type { Building, Citizen, ZoneBlock } from "../state/entities.js";
import type { World } from "../state/world.js";
import { demandBarOf, lowerDemand } from "./demand.js";
import type { Surroundings } from "./services.js";

const CONSTRUCTION_FRAMES = 3 * FRAMES_PER_DAY;
/** In a town with more citizens than this, a building grows only if a water pipe is in reach. */
const VILLAGE_CITIZENS = 150;
const MAX_LOT_CELLS = 4;
/** Progress points that a building gains in a cycle if it meets the requirements. The next level needs 100. */
const PROGRESS_PER_CYCLE = 1;

/** Requirements for the next level, indexed by the current level. */
interface Needs {
  readonly landValue?: readonly number[];
  readonly services?: readonly number[];
  /** Mean education of residents or workers, in percent. */
  readonly education?: readonly number[];
  readonly customersPercent?: readonly number[];
  /** The building gets a problem if a value is this far below the requirement of its current level. */
  readonly complaintMargin: readonly number[];
}

const NEEDS: Readonly<Record<GrowableService, Needs>> = {
  Residential: {
    landValue: [0, 6, 21, 41, 61],
    education: [0, 15, 30, 45, 60],
    complaintMargin: [0, 10, 10, 10, 10],
  },
  Commercial: { landValue: [0, 21, 41], customersPercent: [0, 20, 30], complaintMargin: [0, 10, 10] },
  Industrial: { services: [0, 30, 60], education: [0, 20, 35], complaintMargin: [0, 10, 20] },
  Office: { services: [0, 45, 90], education: [0, 20, 40], complaintMargin: [0, 15, 30] },
};

interface Lot {
  readonly row: number;
  readonly width: number;
  readonly length: number;
}

/** One cycle of a zone block. May turn a free lot into a building site; the chance grows with demand. */
export function growOnBlock(world: World, block: ZoneBlock): void {
  if (!block.cells.some((zone) => zone !== 0) || !world.buildings.hasRoomFor(1)) return;
  const free = usableCellMask(world, block) & ~occupiedCellMask(world, block);
  const row = firstFreeRow(block, free, world.random.below(block.rows));
  if (row < 0) return;
  const zone = block.cells[row * BLOCK_COLUMNS] as number;
  const growth = ZONE_GROWTH[ZONES[zone] as Zone];
  if (!growth || !world.random.percent(world.demand[demandBarOf(growth.service)])) return;
  const lot = largestLot(block, free, row, 2 + world.random.below(MAX_LOT_CELLS - 1));
  const fitting = growablesFor(growth.subService, 1, lot.width, lot.length);
  const prefab = fitting[world.random.below(fitting.length)];
  if (!prefab) return;
  const center = cellCenter(block, (lot.length - 1) / 2, lot.row + (lot.width - 1) / 2);
  if (world.citizens.size > VILLAGE_CITIZENS && !hasPipe(world, center, "water")) return;
  const angleDegrees = (block.angleRadians * 180) / Math.PI + 90;
  const lotOf = { blockId: block.id, mask: lotMask(lot) };
  lowerDemand(world, createBuilding(world, prefab, center, angleDegrees, lotOf));
}

/** Completes a building site when its construction time is over. */
export function continueConstruction(world: World, building: Building): void {
  if (world.frame - building.builtFrame < CONSTRUCTION_FRAMES) return;
  const usable = !building.switchedOff && (building.flags & FLAG.Flooded) === 0;
  building.flags |= FLAG.Completed | (usable ? FLAG.Active : 0);
  building.declineFrame = world.frame;
}

/**
 * Updates the progress to the next level. Sets a problem on the building if it no longer meets the
 * requirements of its level.
 * @returns whether the building leveled up
 */
export function updateLevel(world: World, building: Building, around: Surroundings): boolean {
  const { level, service, subService, width, length } = building.prefab;
  const needs = NEEDS[service as GrowableService];
  const complaint = needs.services ? "TooFewServices" : "LandValueLow";
  setProblem(building, complaint, isBelowLevel(building, needs, around), world.frame);
  const gain = deservesNextLevel(world, building, needs, around) ? PROGRESS_PER_CYCLE : -1;
  building.progress = Math.max(0, building.progress + gain);
  if (building.progress < 100) return false;
  building.progress = 0;
  const next = growablesFor(subService, level + 1, width, length);
  if (next.length === 0) return false;
  upgradeGrowable(world, building, next[world.random.below(next.length)] as (typeof next)[number]);
  return true;
}

function deservesNextLevel(
  world: World,
  building: Building,
  needs: Needs,
  { serviceScore }: Surroundings,
): boolean {
  const reaches = (needed: readonly number[] | undefined, value: () => number) =>
    needed === undefined || value() >= (needed[building.prefab.level] ?? Number.POSITIVE_INFINITY);
  return (
    building.problems.names.length === 0 &&
    reaches(needs.landValue, () => building.landValue) &&
    reaches(needs.services, () => serviceScore) &&
    reaches(needs.education, () => educationAt(world, building)) &&
    reaches(needs.customersPercent, () => (100 * building.visitors) / Math.max(building.visitorPlaces, 1))
  );
}

function isBelowLevel({ prefab, landValue }: Building, needs: Needs, around: Surroundings): boolean {
  const reached = prefab.level - 1;
  const value = needs.services ? around.serviceScore : landValue;
  const needed = (needs.services ?? needs.landValue)?.[reached] ?? 0;
  return reached >= 1 && value < needed - (needs.complaintMargin[reached] ?? 0);
}

/** Mean education of a business's workers, or of a residential building's teens and adults, in percent. */
function educationAt(world: World, building: Building): number {
  if (building.homes === 0) return averageEducation(workersOf(world, building));
  const isPastChildhood = (citizen: Citizen) => ageInUnits(citizen, world.frame) >= AGE_LIMITS.teen;
  return averageEducation(residentsOf(world, building).filter(isPastChildhood));
}

function firstFreeRow(block: ZoneBlock, free: number, startRow: number): number {
  for (let i = 0; i < block.rows; i++) {
    const row = (startRow + i) % block.rows;
    if (block.cells[row * BLOCK_COLUMNS] !== 0 && (free & cellBit(0, row)) !== 0) return row;
  }
  return -1;
}

/** Widest free lot in one zone that includes the given row. The lot is as deep as its shallowest row. */
function largestLot(block: ZoneBlock, free: number, row: number, maxWidth: number): Lot {
  const zone = block.cells[row * BLOCK_COLUMNS];
  const depthOf = (at: number) => {
    let depth = 0;
    while (depth < MAX_LOT_CELLS && isFree(depth, at)) depth++;
    return depth;
  };
  const isFree = (column: number, at: number) =>
    block.cells[at * BLOCK_COLUMNS + column] === zone && (free & cellBit(column, at)) !== 0;
  let first = row;
  let last = row;
  while (last - first + 1 < maxWidth && last + 1 < block.rows && isFree(0, last + 1)) last++;
  while (last - first + 1 < maxWidth && first > 0 && isFree(0, first - 1)) first--;
  let length = MAX_LOT_CELLS;
  for (let at = first; at <= last; at++) length = Math.min(length, depthOf(at));
  return { row: first, width: last - first + 1, length };
}

function lotMask(lot: Lot): number {
  let mask = 0;
  for (let row = lot.row; row < lot.row + lot.width; row++) {
    for (let column = 0; column < lot.length; column++) mask |= cellBit(column, row);
  }
  return mask;
}
