/**
 * Problems, abandonment and collapse of buildings. Grave problems concern power, water, sewage, road, garbage,
 * deaths, taxes, workers, customers or wares. A building is abandoned when a grave problem has lasted 8 to 52 weeks.
 * An empty home is abandoned after 10 to 40 weeks. An abandoned building with all supplies may be reoccupied;
 * otherwise it collapses after 6 to 30 weeks. If the zone under a growable changes, the growable is removed within
 * two cycles.
 */
import { FLAG, type ProblemName, ZONES, zoneOf } from "../../terms.js";
import {
  clearProblems,
  longestGraveProblem,
  removeBuilding,
  removeOccupants,
  setProblem,
} from "../fabric/buildings.js";
import { isAtShore } from "../fabric/reach.js";
import { zoneAt } from "../fabric/zone-blocks.js";
import type { Building } from "../state/entities.js";
import type { World } from "../state/world.js";
import { powerNeedKw } from "../utilities/electricity.js";
import { waterNeedM3 } from "../utilities/pipes.js";
import { demandBarOf } from "./demand.js";
import { expectation } from "./expectations.js";
import { spanFrames } from "./individual-differences.js";
import { requestServiceQuality, type Surroundings } from "./services.js";
import { moveToProvider, POINTS_PER_DEAD_RESIDENT } from "./stores.js";

/**
 * Garbage, dead residents and crime of a building are gauges from 0 to 100. PER_CYCLE: change of a gauge in one
 * cycle. LIMIT: value at which the building gets a problem.
 */
const GARBAGE_PER_CYCLE = 0.02;
const MOST_GARBAGE_PER_CYCLE = 0.4;
const GARBAGE_COLLECTED_PER_CYCLE = 10;
const BODIES_COLLECTED_PER_CYCLE = 30;
const BODIES_BURIED_AT_HOME_PER_CYCLE = 1;
const GARBAGE_LIMIT = 60;
const BODIES_LIMIT = 25;
/** Points of crime in a building that has long been without police. */
const CRIME_UNCHECKED = 85;
/** Each cycle, crime moves by this share of the difference to its target level. */
const CRIME_INERTIA = 0.01;
const CRIME_LIMIT = 60;

const FIRES_PERCENT = 0.01;
/** Fire risk in a village, as a share of the risk in a city. A village is not expected to have a fire service. */
const VILLAGE_FIRES = 0.05;
const FIRE_ENGINES_PER_FIRE = 10;
const EXTINGUISHED_PERCENT = 80;
const BURNED_DOWN_CYCLES = 6;
/** A residential building with more households than this is not abandoned; its households leave first. */
const LAST_HOUSEHOLDS = 1;
/** Chance per cycle, at full demand, that an abandoned building is reoccupied. */
const REOPENING_PERCENT = 1.5;

/** Sets or clears problems of a building: no utilities, no road, no shore, flooded, switched off. */
export function updateSupplyProblems(world: World, building: Building): void {
  const { supply, prefab } = building;
  const { frame } = world;
  const growable = prefab.growable !== null;
  const usesWater = waterNeedM3(building) > 0;
  const roadMissing = building.roadId === 0 && !prefab.civic?.roadless;
  setProblem(building, "Electricity", !supply.power && powerNeedKw(world, building) > 0, frame);
  setProblem(building, "Water", !supply.water && usesWater, frame);
  setProblem(building, "Sewage", !supply.sewage && usesWater, frame);
  setProblem(building, "Heating", !supply.heat && growable, frame);
  setProblem(building, "RoadNotConnected", roadMissing, frame);
  setProblem(building, "NoResources", isDryPlant(world, building), frame);
  setProblem(building, "TurnedOff", building.switchedOff, frame);
  setProblem(building, "Flood", (building.flags & FLAG.Flooded) !== 0, frame);
  building.flags = roadMissing
    ? building.flags | FLAG.RoadAccessFailed
    : building.flags & ~FLAG.RoadAccessFailed;
}

/** Whether a plant that needs a shore has none. */
function isDryPlant(world: World, building: Building): boolean {
  return building.prefab.civic?.shore === true && !isAtShore(world.terrain, building);
}

/** Updates garbage, dead residents and crime, which grow unless a service removes them. */
export function accumulateGarbageAndCrime(world: World, building: Building, { quality }: Surroundings): void {
  const village = 1 - expectation(world, "garbage");
  const people = 2 * building.householdIds.length + building.workerIds.length;
  const made = Math.min(GARBAGE_PER_CYCLE * people, MOST_GARBAGE_PER_CYCLE) * (1 - village);
  building.garbage = gauge(building.garbage + made - village * GARBAGE_PER_CYCLE);
  const fetched = Math.min(GARBAGE_COLLECTED_PER_CYCLE * (quality.get("garbage") ?? 0), building.garbage);
  building.garbage -= fetched;
  moveToProvider(world, building, "garbage", fetched);
  const unchecked = CRIME_UNCHECKED * expectation(world, "police") * (1 - (quality.get("police") ?? 0));
  building.crime += (unchecked - building.crime) * CRIME_INERTIA;
  if (building.bodies > 0) {
    const hearses = BODIES_COLLECTED_PER_CYCLE * requestServiceQuality(world, building, "death", 1);
    const fetchedBodies = Math.min(hearses, building.bodies);
    moveToProvider(world, building, "death", fetchedBodies / POINTS_PER_DEAD_RESIDENT);
    building.bodies = gauge(
      building.bodies - fetchedBodies - BODIES_BURIED_AT_HOME_PER_CYCLE * (1 - expectation(world, "death")),
    );
  }
  setProblem(building, "Garbage", building.garbage >= GARBAGE_LIMIT, world.frame);
  setProblem(building, "Death", building.bodies >= BODIES_LIMIT, world.frame);
  setProblem(building, "Crime", building.crime >= CRIME_LIMIT, world.frame);
}

/**
 * Starts a fire by chance, or continues the building's fire. A fire that is not extinguished in time destroys the
 * building. Civic buildings never burn, because they are staffed.
 * @returns whether the building has just burned down
 */
export function updateFire(world: World, building: Building): boolean {
  const breaksOut = FIRES_PERCENT * Math.max(expectation(world, "fire"), VILLAGE_FIRES);
  if (building.burning === 0 && !world.random.percent(breaksOut)) return false;
  building.burning++;
  const quality = requestServiceQuality(world, building, "fire", FIRE_ENGINES_PER_FIRE);
  if (quality > 0 && world.random.percent(EXTINGUISHED_PERCENT * quality)) building.burning = 0;
  setProblem(building, "Fire", building.burning > 0, world.frame);
  if (building.burning < BURNED_DOWN_CYCLES) return false;
  fallDown(world, building, FLAG.BurnedDown | FLAG.Collapsed);
  return true;
}

/**
 * Reason to abandon the building now, or null. A grave problem is a reason once it outlasts the owner's patience.
 * Homes are never abandoned because of taxes, nor because of a problem while more than one household lives there.
 * Homes that stay empty are abandoned for lack of demand.
 */
export function reasonToAbandon(world: World, building: Building): ProblemName | "NoDemand" | null {
  const worst = longestGraveProblem(building, world.frame);
  const isBorne =
    (worst?.name === "TaxesTooHigh" && building.homes > 0) || building.householdIds.length > LAST_HOUSEHOLDS;
  if (worst && !isBorne && worst.age >= spanFrames(world, building, "patience")) return worst.name;
  if (building.householdIds.length > 0 || building.homes === 0) building.declineFrame = world.frame;
  return world.frame - building.declineFrame >= spanFrames(world, building, "vacancy") ? "NoDemand" : null;
}

export function abandon(world: World, building: Building): void {
  removeOccupants(world, building);
  world.changeFlags(building, (building.flags & ~FLAG.Active) | FLAG.Abandoned);
  building.declineFrame = world.frame;
}

/** One cycle of a ruin, which may be reoccupied or collapse. Rubble is cleared after some weeks. */
export function updateRuin(world: World, building: Building): void {
  const age = world.frame - building.declineFrame;
  if ((building.flags & FLAG.Collapsed) !== 0) {
    if (age >= spanFrames(world, building, "rubble")) removeBuilding(world, building);
  } else if (isReoccupied(world, building)) {
    reopen(world, building);
  } else if (age >= spanFrames(world, building, "ruin")) {
    fallDown(world, building, FLAG.Collapsed);
  }
}

/** Whether an abandoned building with all supplies is reoccupied, by chance and demand. */
function isReoccupied(world: World, { supply, roadId, prefab, switchedOff }: Building): boolean {
  const isServed = supply.power && supply.water && supply.sewage && roadId !== 0 && !switchedOff;
  const demand = world.demand[demandBarOf(prefab.service)];
  return isServed && world.random.percent((REOPENING_PERCENT * demand) / 100);
}

function reopen(world: World, building: Building): void {
  clearProblems(building);
  world.changeFlags(building, (building.flags & ~FLAG.Abandoned) | FLAG.Active);
  Object.assign(building, { garbage: 0, bodies: 0, taxUnrest: 0, declineFrame: world.frame });
}

/**
 * Marks a growable whose zone was changed, even one placed by command. Unless the zone is restored, removes the
 * growable in its next cycle. A growable that only lost its road is kept.
 * @returns whether the building was removed
 */
export function demolishIfZoneDiffers(world: World, building: Building): boolean {
  const block = building.blockId === 0 ? undefined : world.blocks.get(building.blockId);
  const zone = ZONES.indexOf(zoneOf(building.prefab));
  const refused = block
    ? block.cells.some((cell, i) => (building.lotMask & (1 << i)) !== 0 && cell !== zone)
    : building.roadId !== 0 && zoneAt(world, building.position) !== ZONES[zone];
  if (refused && (building.flags & FLAG.Demolishing) !== 0) {
    removeBuilding(world, building);
    return true;
  }
  building.flags = refused ? building.flags | FLAG.Demolishing : building.flags & ~FLAG.Demolishing;
  return false;
}

function fallDown(world: World, building: Building, flags: number): void {
  removeOccupants(world, building);
  clearProblems(building);
  building.burning = 0;
  world.changeFlags(building, (building.flags & ~(FLAG.Active | FLAG.Abandoned)) | flags);
  building.declineFrame = world.frame;
}

function gauge(value: number): number {
  return Math.min(Math.max(value, 0), 100);
}
