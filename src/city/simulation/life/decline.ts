/** Decline: what goes wrong with a building, when people give it up, and how it falls down. */
import { FLAG, type ProblemName, ZONES, zoneOf } from "../../terms.js";
import { clearProblems, empty, gravest, removeBuilding, setProblem } from "../fabric/buildings.js";
import type { SimBuilding } from "../state/entities.js";
import type { World } from "../state/world.js";
import { powerNeed } from "../utilities/electricity.js";
import { waterNeed } from "../utilities/pipes.js";
import { demandBarOf } from "./demand.js";
import { expectation } from "./happiness.js";
import { requestService, type Surroundings } from "./services.js";
import { BODY_WEIGHT, bring } from "./stores.js";
import { spanOf } from "./temper.js";

/** Per cycle. */
const GARBAGE_PER_CYCLE = 0.02;
const MOST_GARBAGE_PER_CYCLE = 0.4;
const GARBAGE_COLLECTED_PER_CYCLE = 10;
const BODIES_COLLECTED_PER_CYCLE = 30;
const BODIES_BURIED_AT_HOME_PER_CYCLE = 3;
const GARBAGE_LIMIT = 60;
const BODIES_LIMIT = 25;
/** Where crime tends to in a city without police, and how much of the way it goes in a cycle. */
const CRIME_UNCHECKED = 85;
const CRIME_INERTIA = 0.01;
const CRIME_LIMIT = 60;
/** So many people can rid themselves of their rubbish and their dead. */
const VILLAGE_CITIZENS = 150;

const FIRES_PERCENT = 0.01;
const FIRE_ENGINES_PER_FIRE = 10;
const EXTINGUISHED_PERCENT = 80;
const BURNED_DOWN_CYCLES = 6;
/** Only so many households give up a home at once. */
const LAST_HOUSEHOLDS = 1;
/** Chance per cycle at full demand that somebody takes an abandoned building. */
const REOPENING_PERCENT = 1.5;

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
  const village = Math.min(VILLAGE_CITIZENS / Math.max(world.citizens.size, 1), 1);
  const people = 2 * building.householdIds.length + building.workerIds.length;
  const made = Math.min(GARBAGE_PER_CYCLE * people, MOST_GARBAGE_PER_CYCLE) * (1 - village);
  building.garbage = gauge(building.garbage + made - village * GARBAGE_PER_CYCLE);
  const fetched = Math.min(GARBAGE_COLLECTED_PER_CYCLE * (quality.get("garbage") ?? 0), building.garbage);
  building.garbage -= fetched;
  bring(world, building, "garbage", fetched);
  const unchecked = CRIME_UNCHECKED * expectation(world) * (1 - (quality.get("police") ?? 0));
  building.crime += (unchecked - building.crime) * CRIME_INERTIA;
  if (building.bodies > 0) {
    const hearses = BODIES_COLLECTED_PER_CYCLE * requestService(world, building, "death", 1);
    const fetchedBodies = Math.min(hearses, building.bodies);
    bring(world, building, "death", fetchedBodies / BODY_WEIGHT);
    building.bodies = gauge(building.bodies - fetchedBodies - BODIES_BURIED_AT_HOME_PER_CYCLE * village);
  }
  setProblem(building, "Garbage", building.garbage >= GARBAGE_LIMIT, world.frame);
  setProblem(building, "Death", building.bodies >= BODIES_LIMIT, world.frame);
  setProblem(building, "Crime", building.crime >= CRIME_LIMIT, world.frame);
}

/**
 * Fires break out rarely, and not where staff is on watch: in civic buildings; the fire service puts them out, else the building burns down.
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

/**
 * Why the people give this building up now; null while they stay. From a large house they leave one by one until it is
 * given up by the last; over taxes until it stands empty; a business closes.
 */
export function reasonToAbandon(world: World, building: SimBuilding): ProblemName | "NoDemand" | null {
  const worst = gravest(building, world.frame);
  const isBorne =
    (worst?.name === "TaxesTooHigh" && building.homes > 0) || building.householdIds.length > LAST_HOUSEHOLDS;
  if (worst && !isBorne && worst.age >= spanOf(world, building, "patience")) return worst.name;
  if (building.householdIds.length > 0 || building.homes === 0) building.declineFrame = world.frame;
  return world.frame - building.declineFrame >= spanOf(world, building, "vacancy") ? "NoDemand" : null;
}

export function abandon(world: World, building: SimBuilding): void {
  empty(world, building);
  world.changeFlags(building, (building.flags & ~FLAG.Active) | FLAG.Abandoned);
  building.declineFrame = world.frame;
}

/** A ruin's turn: abandoned buildings find new owners or collapse, rubble is cleared away in the end. */
export function decay(world: World, building: SimBuilding): void {
  const age = world.frame - building.declineFrame;
  if ((building.flags & FLAG.Collapsed) !== 0) {
    if (age >= spanOf(world, building, "rubble")) removeBuilding(world, building);
  } else if (findsNewOwner(world, building)) {
    reopen(world, building);
  } else if (age >= spanOf(world, building, "ruin")) {
    fallDown(world, building, FLAG.Collapsed);
  }
}

/** Somebody tries again where all that a building needs is there once more, the sooner the higher the demand. */
function findsNewOwner(world: World, { supply, roadId, prefab, switchedOff }: SimBuilding): boolean {
  const isServed = supply.power && supply.water && supply.sewage && roadId !== 0 && !switchedOff;
  const demand = world.demand[demandBarOf(prefab.service)];
  return isServed && world.random.percent((REOPENING_PERCENT * demand) / 100);
}

function reopen(world: World, building: SimBuilding): void {
  clearProblems(building);
  world.changeFlags(building, (building.flags & ~FLAG.Abandoned) | FLAG.Active);
  Object.assign(building, { garbage: 0, bodies: 0, taxUnrest: 0, declineFrame: world.frame });
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
