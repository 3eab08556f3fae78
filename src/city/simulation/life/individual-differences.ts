/**
 * Individual patience and mood of owners and households, so that they do not all leave on the same day. The
 * values are hashes of ids, so they need no state.
 */
import { FRAMES_PER_WEEK } from "../state/calendar.js";
import type { Building, Household } from "../state/entities.js";
import { hash } from "../state/random.js";
import type { World } from "../state/world.js";

/** Ranges of durations in weeks. Each building has its own duration within each range. */
const SPANS = {
  /** Time until a building with a grave problem is abandoned. */
  patience: [8, 52],
  /** Time until an empty home is abandoned. */
  vacancy: [10, 40],
  /** Time until a ruin collapses. */
  ruin: [6, 30],
  /** Time until rubble is cleared. */
  rubble: [1, 4],
} as const;
const SALTS = { patience: 31, vacancy: 32, ruin: 33, rubble: 34, tax: 35, mood: 36 } as const;
/** The happiness of a household differs from the mean by at most this many points. */
const HOUSEHOLD_SPREAD = 8;
/** The tax rate that an owner tolerates differs from the mean by at most this many percentage points. */
const TAX_SPREAD = 5;

/** Duration of one of the SPANS for this building, in frames. */
export function spanFrames(world: World, building: Building, span: keyof typeof SPANS): number {
  const [from, to] = SPANS[span];
  return FRAMES_PER_WEEK * (from + (to - from) * draw(world, SALTS[span], building.id, building.builtFrame));
}

/** Points of happiness that differ between households. The mean of all households is 0. */
export function moodOf(world: World, household: Household): number {
  return HOUSEHOLD_SPREAD * (2 * draw(world, SALTS.mood, household.id, household.memberIds.length) - 1);
}

/** How far the tax rate that the owner tolerates is above the mean, in percentage points. May be negative. */
export function taxTolerance(world: World, building: Building): number {
  return TAX_SPREAD * (2 * draw(world, SALTS.tax, building.id, building.builtFrame) - 1);
}

function draw(world: World, salt: number, a: number, b: number): number {
  return hash(world.seed + salt, a, b) / 0x1_0000_0000;
}
