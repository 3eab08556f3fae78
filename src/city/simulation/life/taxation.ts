/** What a building pays, what it costs, and how its owner bears the tax rate. */

import { setProblem } from "../fabric/problems.js";
import { CYCLES_PER_WEEK } from "../state/calendar.js";
import type { SimBuilding } from "../state/entities.js";
import type { World } from "../state/world.js";

/** Taxable income per cycle at level 1; each level adds a quarter. */
const INCOME_PER_RESIDENT = 3;
const INCOME_PER_WORKER = 4;
const INCOME_PER_LEVEL = 0.25;

const TOLERATED_RATE = 11;
/** This far beyond the tolerated rate unrest begins. */
const UNREST_MARGIN = 4;
const UNREST_LIMIT = CYCLES_PER_WEEK;

/** Collects one cycle's tax of a growable. */
export function payTaxes(world: World, building: SimBuilding): void {
  const { subService, level } = building.prefab;
  let residents = 0;
  for (const id of building.householdIds) residents += world.households.at(id).memberIds.length;
  const income = INCOME_PER_RESIDENT * residents + INCOME_PER_WORKER * building.workerIds.length;
  const perLevel = 1 + INCOME_PER_LEVEL * (level - 1);
  world.ledger.book("taxes", (income * perLevel * world.taxes.rate(subService, level)) / 100);
}

/** Pays one cycle's upkeep of a civic building; a switched-off one costs nothing. */
export function payUpkeep(world: World, building: SimBuilding): void {
  if (!building.switchedOff) world.ledger.book("upkeep", building.prefab.upkeepPerWeek / CYCLES_PER_WEEK);
}

/** Percentage points of tax beyond what the owner finds right; 0 when content. Raises TaxesTooHigh with time. */
export function bearTaxes(world: World, building: SimBuilding): number {
  const { subService, level, growable } = building.prefab;
  const wealth = averageWealth(world, building);
  const tolerated = TOLERATED_RATE - Math.round(wealth) + (growable?.highDensity ? 1 : 0);
  const excess = world.taxes.rate(subService, level) - tolerated;
  const unrest = building.taxUnrest + (excess >= UNREST_MARGIN ? 1 : -2);
  building.taxUnrest = Math.min(Math.max(unrest, 0), 2 * UNREST_LIMIT);
  setProblem(building, "TaxesTooHigh", building.taxUnrest >= UNREST_LIMIT, world.frame);
  return Math.max(excess, 0);
}

function averageWealth(world: World, building: SimBuilding): number {
  const { length } = building.householdIds;
  if (length === 0) return 0;
  return building.householdIds.reduce((sum, id) => sum + world.households.at(id).wealth, 0) / length;
}
