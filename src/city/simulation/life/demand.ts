/**
 * The three demand bars. The formulas are those published for the game, except for the weight of empty homes.
 * Divisions truncate.
 */
import type { Service } from "../../terms.js";
import type { Building } from "../state/entities.js";
import type { World } from "../state/world.js";
import { type CityTotals, cityTotals } from "./census.js";

/** The three demand bars, 0 to 100. The simulation keeps fractions. */
type Demand = World["demand"];

/** Demand bar of each zoned service. */
export function demandBarOf(service: Service): keyof Demand {
  if (service === "Residential") return "residential";
  return service === "Commercial" ? "commercial" : "workplace";
}

/** The bars in whole numbers. */
export function shownDemand({ demand: { residential, commercial, workplace } }: World): Demand {
  return {
    residential: Math.round(residential),
    commercial: Math.round(commercial),
    workplace: Math.round(workplace),
  };
}

/** Moves each bar towards its target by at most one point a cycle, so about two points a day. */
export function updateDemand(world: World): void {
  const target = demandTargets(cityTotals(world));
  for (const bar of ["residential", "commercial", "workplace"] as const) {
    const gap = target[bar] - world.demand[bar];
    world.demand[bar] += Math.min(Math.max(gap, -1), 1);
  }
}

/**
 * Number of households at which relative growth falls to half: a village can grow by eight percent of its
 * homes a week, a town of this size by four percent, and a large city by about 20 homes.
 */
const HALF_GROWTH_HOUSEHOLDS = 250;

/**
 * Lowers the demand bar when a building site is created, so that further sites wait until the bar has risen
 * again. A site lowers the bar more in a larger town, because the number of newcomers a week is limited.
 */
export function lowerDemand(world: World, { prefab, homes, jobs }: Building): void {
  const bar = demandBarOf(prefab.service);
  const share =
    bar === "residential"
      ? homes / Math.max(world.households.size, 100)
      : jobs / Math.max(world.citizens.size / 2, 100);
  const weight = 200 * (1 + world.households.size / HALF_GROWTH_HOUSEHOLDS);
  world.demand[bar] = Math.max(world.demand[bar] - weight * share, 0);
}

/**
 * Weight of empty homes in the demand for homes. The published weight is 200. With 800, construction stops
 * when six to twelve percent of the homes are empty, as in an established town.
 */
const HOUSING_WEIGHT = 800;
/** A town with fewer homes counts as having this many, so that a few empty homes have little effect. */
const SMALL_TOWN_HOMES = 200;

/** Targets of the bars, each 0 to 100. Homeless people do not count, because they leave the city. */
export function demandTargets(totals: CityTotals): Demand {
  const { jobs, openJobs, homes, emptyHomes, unemployed, filledShopJobs, visitorPlaces, freeVisitorPlaces } =
    totals;
  const occupied = homes - emptyHomes;
  const openings = clamp(divide(200 * openJobs - 200 * unemployed, Math.max(jobs, 100)), -50, 50);
  const housing = divide(-HOUSING_WEIGHT * emptyHomes, Math.max(homes, SMALL_TOWN_HOMES));
  const shopWork = divide(filledShopJobs * 160, 100);
  const shoppers = divide(occupied * 20, 100);
  const trade = clamp(divide(200 * shoppers - 200 * shopWork, Math.max(shopWork, 100)), -50, 50);
  const crowding = clamp(
    divide(100 * visitorPlaces - 300 * freeVisitorPlaces, Math.max(visitorPlaces, 100)),
    -50,
    50,
  );
  const people = clamp(occupied, 0, 50);
  return {
    residential: clamp(clamp(100 - homes, 50, 100) + openings + housing, 0, 100),
    commercial: clamp(people + trade + crowding, 0, 100),
    workplace: clamp(people - openings, 0, 100),
  };
}

function divide(a: number, b: number): number {
  return Math.trunc(a / b);
}

function clamp(value: number, low: number, high: number): number {
  return Math.min(Math.max(value, low), high);
}
