/** The three demand bars. Formulas as published for the game, in integers with truncating division. */
import type { Demand } from "../../game.js";
import { DOWN } from "../fabric/buildings.js";
import { AGE, ageOf } from "../fabric/citizens.js";
import type { World } from "../state/world.js";

/** Moves each bar one point towards its target. Called once a cycle, which makes about two points a day. */
export function updateDemand(world: World): void {
  const target = demandTargets(cityTotals(world));
  for (const bar of ["residential", "commercial", "workplace"] as const) {
    world.demand[bar] += Math.sign(target[bar] - world.demand[bar]);
  }
}

/** Where the bars tend to, each 0 to 100. There are no homeless: whoever loses a home leaves. */
export function demandTargets(totals: ReturnType<typeof cityTotals>): Demand {
  const { jobs, openJobs, homes, emptyHomes, unemployed, filledShopJobs, visitorPlaces, freeVisitorPlaces } =
    totals;
  const occupied = homes - emptyHomes;
  const openings = clamp(divide(200 * openJobs - 200 * unemployed, Math.max(jobs, 100)), -50, 50);
  const housing = clamp(divide(-200 * emptyHomes, Math.max(homes, 100)), -50, 50);
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

/** What the bars follow from. */
export function cityTotals(world: World) {
  let jobs = 0;
  let filled = 0;
  let homes = 0;
  let occupied = 0;
  let filledShopJobs = 0;
  let visitorPlaces = 0;
  let visitors = 0;
  for (const building of world.buildings.all()) {
    if ((building.flags & DOWN) !== 0) continue;
    jobs += building.jobs;
    filled += building.workerIds.length;
    homes += building.homes;
    occupied += building.householdIds.length;
    if (building.prefab.service !== "Commercial") continue;
    filledShopJobs += building.workerIds.length;
    visitorPlaces += building.visitorPlaces;
    visitors += building.visitors;
  }
  let unemployed = 0;
  for (const citizen of world.citizens.all()) {
    if (citizen.workId !== 0) continue;
    const age = ageOf(citizen, world.frame);
    if (age >= AGE.adult && age < AGE.retired) unemployed++;
  }
  return {
    jobs,
    openJobs: Math.max(jobs - filled, 0),
    homes,
    emptyHomes: Math.max(homes - occupied, 0),
    unemployed,
    filledShopJobs,
    visitorPlaces,
    freeVisitorPlaces: visitorPlaces - visitors,
  };
}

function divide(a: number, b: number): number {
  return Math.trunc(a / b);
}

function clamp(value: number, low: number, high: number): number {
  return Math.min(Math.max(value, low), high);
}
