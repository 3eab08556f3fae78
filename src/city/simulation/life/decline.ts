/** Decline: what goes wrong with a building, when people give it up, and how it falls down. */
import { FLAG, type ProblemName, ZONES } from "../../terms.js";
import {
  clearProblems,
  empty,
  gravest,
  removeBuilding,
  setProblem,
  UNBEARABLE_AFTER_FRAMES,
  zoneOf,
} from "../fabric/buildings.js";
import { FRAMES_PER_WEEK } from "../state/calendar.js";
import type { SimBuilding } from "../state/entities.js";
import type { World } from "../state/world.js";
import { powerNeed } from "../utilities/electricity.js";
import { waterNeed } from "../utilities/pipes.js";
import { requestService, type Surroundings } from "./services.js";

/** Homes that nobody wants are given up after standing empty this long. */
const EMPTY_FRAMES = 6 * FRAMES_PER_WEEK;
const COLLAPSE_AFTER_FRAMES = 3 * FRAMES_PER_WEEK;
const CLEARED_AFTER_FRAMES = 2 * FRAMES_PER_WEEK;

/** Per cycle. */
const GARBAGE_PER_CYCLE = 0.8;
const GARBAGE_COLLECTED_PER_CYCLE = 20;
const BODIES_COLLECTED_PER_CYCLE = 50;
const CRIME_PER_CYCLE = 0.5;
const CRIME_PREVENTED_PER_CYCLE = 6;
const GARBAGE_LIMIT = 60;
const BODIES_LIMIT = 50;
const CRIME_LIMIT = 70;

const FIRES_PERCENT = 0.004;
const FIRE_ENGINES_PER_FIRE = 10;
const EXTINGUISHED_PERCENT = 80;
const BURNED_DOWN_CYCLES = 6;

/** What is missing at the door: power, water, drain, heat, road, dry ground. */
export function checkSupplies(world: World, building: SimBuilding): void {
  const { supply, prefab } = building;
  const { frame } = world;
  const growable = prefab.growable !== null;
  const usesWater = waterNeed(building) > 0;
  const roadMissing = building.roadId === 0 && !prefab.civic?.roadless;
  setProblem(building, "Electricity", !supply.power && powerNeed(world, building) > 0, frame);
  setProblem(building, "Water", !supply.water && usesWater, frame);
  setProblem(building, "Sewage", !supply.sewage && usesWater, frame);
  setProblem(building, "Heating", !supply.heat && growable, frame);
  setProblem(building, "RoadNotConnected", roadMissing, frame);
  setProblem(building, "TurnedOff", building.switchedOff, frame);
  setProblem(building, "Flood", (building.flags & FLAG.Flooded) !== 0, frame);
  building.flags = roadMissing
    ? building.flags | FLAG.RoadAccessFailed
    : building.flags & ~FLAG.RoadAccessFailed;
}

/** What piles up unless somebody takes care of it. */
export function accumulateGarbageAndCrime(
  world: World,
  building: SimBuilding,
  { quality }: Surroundings,
): void {
  const collected = GARBAGE_COLLECTED_PER_CYCLE * (quality.get("garbage") ?? 0);
  building.garbage = gauge(building.garbage + GARBAGE_PER_CYCLE - collected);
  const prevented = CRIME_PREVENTED_PER_CYCLE * (quality.get("police") ?? 0);
  building.crime = gauge(building.crime + CRIME_PER_CYCLE - prevented);
  if (building.bodies > 0) {
    const hearses = requestService(world, building, "death", 1);
    building.bodies = gauge(building.bodies - BODIES_COLLECTED_PER_CYCLE * hearses);
  }
  setProblem(building, "Garbage", building.garbage >= GARBAGE_LIMIT, world.frame);
  setProblem(building, "Death", building.bodies >= BODIES_LIMIT, world.frame);
  setProblem(building, "Crime", building.crime >= CRIME_LIMIT, world.frame);
}

/**
 * Fires break out rarely; the fire service puts them out, else the building burns down.
 * @returns whether it burned down just now
 */
export function checkFire(world: World, building: SimBuilding): boolean {
  if (building.burning === 0 && !world.random.percent(FIRES_PERCENT)) return false;
  building.burning++;
  const quality = requestService(world, building, "fire", FIRE_ENGINES_PER_FIRE);
  if (quality > 0 && world.random.percent(EXTINGUISHED_PERCENT * quality)) building.burning = 0;
  setProblem(building, "Fire", building.burning > 0, world.frame);
  if (building.burning < BURNED_DOWN_CYCLES) return false;
  fallDown(world, building, FLAG.BurnedDown | FLAG.Collapsed);
  return true;
}

/** Why the people give this building up now; null while they stay. */
export function reasonToAbandon(world: World, building: SimBuilding): ProblemName | "NoDemand" | null {
  const worst = gravest(building, world.frame);
  if (worst && worst.age >= UNBEARABLE_AFTER_FRAMES) return worst.name;
  if (building.householdIds.length > 0 || building.homes === 0) building.declineFrame = world.frame;
  return world.frame - building.declineFrame >= EMPTY_FRAMES ? "NoDemand" : null;
}

export function abandon(world: World, building: SimBuilding): void {
  empty(world, building);
  world.changeFlags(building, (building.flags & ~FLAG.Active) | FLAG.Abandoned);
  building.declineFrame = world.frame;
}

/** A ruin's turn: abandoned buildings collapse, rubble is cleared away in the end. */
export function decay(world: World, building: SimBuilding): void {
  const age = world.frame - building.declineFrame;
  const collapsed = (building.flags & FLAG.Collapsed) !== 0;
  if (collapsed && age >= CLEARED_AFTER_FRAMES) removeBuilding(world, building);
  else if (!collapsed && age >= COLLAPSE_AFTER_FRAMES) fallDown(world, building, FLAG.Collapsed);
}

/**
 * Whether the ground under a growable has been zoned for something else. It is torn down at its next turn unless the
 * zone is put right.
 * @returns whether the building is gone
 */
export function checkZone(world: World, building: SimBuilding): boolean {
  const block = building.blockId === 0 ? undefined : world.blocks.get(building.blockId);
  const zone = ZONES.indexOf(zoneOf(building.prefab));
  const refused =
    block?.cells.some((cell, i) => (building.lotMask & (1 << i)) !== 0 && cell !== zone) ?? false;
  if (refused && (building.flags & FLAG.Demolishing) !== 0) {
    removeBuilding(world, building);
    return true;
  }
  building.flags = refused ? building.flags | FLAG.Demolishing : building.flags & ~FLAG.Demolishing;
  return false;
}

function fallDown(world: World, building: SimBuilding, flags: number): void {
  empty(world, building);
  clearProblems(building);
  building.burning = 0;
  world.changeFlags(building, (building.flags & ~(FLAG.Active | FLAG.Abandoned)) | flags);
  building.declineFrame = world.frame;
}

function gauge(value: number): number {
  return Math.min(Math.max(value, 0), 100);
}
