/**
 * How people differ. What a household or the owner of a building bears is drawn for each, from a hash of who it is, so
 * that it needs no state: no two give up on the same day.
 */
import { FRAMES_PER_WEEK } from "../state/calendar.js";
import type { Household, SimBuilding } from "../state/entities.js";
import { hash } from "../state/random.js";
import type { World } from "../state/world.js";

/** From .. to, in weeks. */
const SPANS = {
  /** A grave problem is borne. */
  patience: [8, 52],
  /** Homes stand empty. */
  vacancy: [10, 40],
  /** A ruin stands. */
  ruin: [6, 30],
  /** Rubble lies. */
  rubble: [1, 4],
} as const;
const SALTS = { patience: 31, vacancy: 32, ruin: 33, rubble: 34, tax: 35, mood: 36 } as const;
/** Households ask this much more or less of life than the mean. */
const HOUSEHOLD_SPREAD = 8;
/** Percentage points of tax that owners bear more or less than the mean. */
const TAX_SPREAD = 5;

/** Frames after which this building gives in. */
export function spanOf(world: World, building: SimBuilding, span: keyof typeof SPANS): number {
  const [from, to] = SPANS[span];
  return FRAMES_PER_WEEK * (from + (to - from) * draw(world, SALTS[span], building.id, building.builtFrame));
}

/** Points of happiness, around 0, that a household feels more or less than others in its place. */
export function moodOf(world: World, household: Household): number {
  return HOUSEHOLD_SPREAD * (2 * draw(world, SALTS.mood, household.id, household.memberIds.length) - 1);
}

/** Percentage points, around 0, by which an owner bears more tax than others. */
export function taxTolerance(world: World, building: SimBuilding): number {
  return TAX_SPREAD * (2 * draw(world, SALTS.tax, building.id, building.builtFrame) - 1);
}

function draw(world: World, salt: number, a: number, b: number): number {
  return hash(world.seed + salt, a, b) / 0x1_0000_0000;
}
