import { isAbandoned, isRuin } from "../fabric/buildings.js";
import { AGE_LIMITS, ageInUnits, countResidents, isOfWorkingAge } from "../fabric/citizens.js";
import { isConnectedOutside } from "../fabric/reach.js";
import { type StatisticsSample, totalsOf } from "../state/economy.js";
import type { Building } from "../state/entities.js";
import type { World } from "../state/world.js";
import { happinessParts } from "./happiness.js";
import { unemployedShare } from "./residents.js";
import { landValueParts } from "./services.js";
import { excessTaxOf } from "./taxes.js";

export type CityTotals = ReturnType<typeof cityTotals>;

/** Totals from which demand is computed: homes, jobs, unemployed people, visitor places. */
export function cityTotals(world: World) {
  const totals = {
    jobs: 0,
    openJobs: 0,
    homes: 0,
    emptyHomes: 0,
    unemployed: 0,
    filledShopJobs: 0,
    visitorPlaces: 0,
    freeVisitorPlaces: 0,
  };
  for (const building of world.buildings.values()) {
    if (isRuin(building)) continue;
    const { jobs, homes, workerIds, householdIds, visitorPlaces, visitors } = building;
    totals.jobs += jobs;
    totals.openJobs += Math.max(jobs - workerIds.length, 0);
    totals.homes += homes;
    totals.emptyHomes += Math.max(homes - householdIds.length, 0);
    if (building.prefab.service !== "Commercial") continue;
    totals.filledShopJobs += workerIds.length;
    totals.visitorPlaces += visitorPlaces;
    totals.freeVisitorPlaces += visitorPlaces - visitors;
  }
  for (const citizen of world.citizens.values()) {
    if (citizen.workId === 0 && isOfWorkingAge(citizen, world.frame)) totals.unemployed++;
  }
  return totals;
}

/** Makes the statistics of the week that ends now. */
export function sampleCity(world: World): StatisticsSample {
  const { homes, jobs, openJobs, unemployed } = cityTotals(world);
  const { demand, ledger, statistics } = world;
  return {
    gameTimeMs: world.clock.gameTimeMs,
    citizens: world.citizens.size,
    households: world.households.size,
    homes,
    jobs,
    openJobs,
    unemployed,
    residentialDemand: Math.round(demand.residential),
    commercialDemand: Math.round(demand.commercial),
    workplaceDemand: Math.round(demand.workplace),
    ...meansOfGrowables(world),
    graduates: shareOfGraduates(world),
    ...statistics.week,
    balance: ledger.balanceCents / 100,
    ...totalsOf(ledger.history.at(-1)?.amounts ?? {}),
  };
}

/** Averages happiness and health over households, and the other values over growables. */
function meansOfGrowables(world: World) {
  const sums = { growables: 0, abandoned: 0, happiness: 0, health: 0, landValue: 0, crime: 0, garbage: 0 };
  let households = 0;
  for (const building of world.buildings.values()) {
    if (!building.prefab.growable) continue;
    sums.growables++;
    if (isAbandoned(building)) sums.abandoned++;
    const { length } = building.householdIds;
    households += length;
    sums.happiness += length * building.happiness;
    sums.health += length * building.health;
    for (const gauge of ["landValue", "crime", "garbage"] as const) sums[gauge] += building[gauge];
  }
  for (const gauge of ["happiness", "health"] as const) sums[gauge] /= Math.max(households, 1);
  for (const gauge of ["landValue", "crime", "garbage"] as const) sums[gauge] /= Math.max(sums.growables, 1);
  return sums;
}

function shareOfGraduates(world: World): number {
  let adults = 0;
  let graduates = 0;
  for (const citizen of world.citizens.values()) {
    if (ageInUnits(citizen, world.frame) < AGE_LIMITS.adult) continue;
    adults++;
    if (citizen.education === 3) graduates++;
  }
  return (100 * graduates) / Math.max(adults, 1);
}

/** Details of a building. Gauges and the progress to the next level are 0 to 100. */
export function detailsOf(world: World, building: Building) {
  const { prefab, supply, householdIds, workerIds } = building;
  const { homes, jobs, visitorPlaces, visitors, goods, garbage, bodies, crime } = building;
  const { health, happiness, landValue, progress, roadId, lastLoad } = building;
  return {
    homes,
    households: householdIds.length,
    residents: countResidents(world, building),
    jobs,
    workers: workerIds.length,
    visitorPlaces,
    visitors,
    goods,
    garbage,
    bodies,
    crime,
    health,
    happiness,
    landValue,
    levelProgress: progress,
    /** Road that gives access to the building, or 0. */
    roadSegmentId: roadId,
    connectedOutside: isConnectedOutside(world, building),
    ...supply,
    /** For a service building: demand in the last cycle. */
    load: lastLoad,
    capacity: prefab.civic?.coverage?.capacity ?? 0,
    taxRate: prefab.growable ? world.taxes.rate(prefab.subService, prefab.level) : null,
    ...partsOf(world, building),
  };
}

/** Points of happiness and of land value by cause. Null for a building without happiness or land value. */
function partsOf(world: World, building: Building) {
  if (!building.prefab.growable) return { happinessParts: null, landValueParts: null };
  const excessTax = Math.max(excessTaxOf(world, building), 0);
  const { quality, parts } = landValueParts(world, building, excessTax);
  const isHome = building.homes > 0;
  return {
    happinessParts: isHome
      ? happinessParts(world, building, { quality }, excessTax, unemployedShare(world, building))
      : null,
    landValueParts: parts,
  };
}
