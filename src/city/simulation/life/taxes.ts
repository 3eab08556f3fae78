/** Taxes, upkeep of buildings and the state's aid for it, and unrest about the tax rate. */
import type { BuildingPrefab } from "../catalogue/building-prefabs.js";
import { isSupplied, setProblem } from "../fabric/buildings.js";
import { countResidents } from "../fabric/citizens.js";
import { CYCLES_PER_WEEK } from "../state/calendar.js";
import type { ExpenseLine, IncomeLine } from "../state/economy.js";
import type { Building } from "../state/entities.js";
import type { World } from "../state/world.js";
import { taxTolerance } from "./individual-differences.js";

/**
 * Taxable income per cycle at level 1, and the share that each level adds. At a tax rate of 9 percent, a
 * citizen pays about 2.2 a week, and a town with all services has a surplus of a tenth of its taxes.
 */
const INCOME_PER_RESIDENT = 0.8;
const INCOME_PER_WORKER = 1.09;
const INCOME_PER_LEVEL = 0.04;

/** Wages raise the upkeep of services by this share, from 0 at TOWN_CITIZENS to all at twice as many. */
const CITY_WAGES = 0.23;
const TOWN_CITIZENS = 4_000;
/** The state pays this share of the upkeep in a town of up to YOUNG_CITIZENS, and nothing from TOWN_CITIZENS on. */
const STATE_AID = 0.6;
const YOUNG_CITIZENS = 1_000;

const TOLERATED_RATE = 11;
/** Unrest grows while the rate is at least this many percentage points above the tolerated rate. */
const UNREST_MARGIN = 4;
const UNREST_LIMIT = CYCLES_PER_WEEK;

/** Collects one cycle's tax of a growable. */
export function payTaxes(world: World, building: Building): void {
  const tax = taxOf(world, building);
  if (tax !== null) world.ledger.book(building.prefab.service as IncomeLine, tax);
}

/** Taxes in a week if nothing changes. */
export function weeklyTaxes(world: World): number {
  let sum = 0;
  for (const building of world.buildings.values()) {
    if (building.prefab.growable && !building.switchedOff) sum += taxOf(world, building) ?? 0;
  }
  return sum * CYCLES_PER_WEEK;
}

/** One cycle's tax of a growable; null for a business without power, water or sewage disposal. */
function taxOf(world: World, building: Building): number | null {
  if (building.jobs > 0 && !isSupplied(building)) return null;
  const { subService, level } = building.prefab;
  const income =
    INCOME_PER_RESIDENT * countResidents(world, building) + INCOME_PER_WORKER * building.workerIds.length;
  const perLevel = 1 + INCOME_PER_LEVEL * (level - 1);
  return (income * perLevel * world.taxes.rate(subService, level)) / 100;
}

/** Pays one cycle's upkeep of a civic building. A building that is switched off costs nothing. */
export function payUpkeep(world: World, building: Building): void {
  if (building.switchedOff) return;
  const upkeep = weeklyUpkeep(world, building.prefab) / CYCLES_PER_WEEK;
  world.ledger.book(building.prefab.service as ExpenseLine, upkeep);
  world.ledger.book("Subsidies", stateAid(world) * upkeep);
}

/** A civic building's upkeep in a week, before the state's aid. */
export function weeklyUpkeep({ citizens }: World, { upkeepPerWeek }: BuildingPrefab): number {
  const growth = Math.min(Math.max(citizens.size / TOWN_CITIZENS - 1, 0), 1);
  return upkeepPerWeek * (1 + CITY_WAGES * growth);
}

/** Share of the upkeep of civic buildings that the state pays, because a young town has few taxpayers. */
export function stateAid({ citizens }: World): number {
  const youth = (TOWN_CITIZENS - citizens.size) / (TOWN_CITIZENS - YOUNG_CITIZENS);
  return STATE_AID * Math.min(Math.max(youth, 0), 1);
}

/**
 * Updates unrest. The problem TaxesTooHigh appears if the tax rate is at least UNREST_MARGIN points above the
 * tolerated rate for long enough.
 * @returns percentage points of tax above the tolerated rate, at least 0
 */
export function updateTaxUnrest(world: World, building: Building): number {
  const excess = excessTaxOf(world, building);
  const isInhabited = building.householdIds.length + building.workerIds.length > 0;
  const unrest = building.taxUnrest + (excess >= UNREST_MARGIN && isInhabited ? 1 : -2);
  building.taxUnrest = Math.min(Math.max(unrest, 0), 2 * UNREST_LIMIT);
  setProblem(building, "TaxesTooHigh", building.taxUnrest >= UNREST_LIMIT, world.frame);
  return Math.max(excess, 0);
}

/** Percentage points of tax above the tolerated rate; negative below it. */
export function excessTaxOf(world: World, building: Building): number {
  const { subService, level, growable } = building.prefab;
  const tolerated =
    TOLERATED_RATE -
    averageWealth(world, building) +
    (growable?.highDensity ? 1 : 0) +
    taxTolerance(world, building);
  return world.taxes.rate(subService, level) - tolerated;
}

function averageWealth(world: World, building: Building): number {
  const { length } = building.householdIds;
  if (length === 0) return 0;
  return building.householdIds.reduce((sum, id) => sum + world.households.at(id).wealth, 0) / length;
}
