/** Taxes and upkeep: the rates and who sets them, what a building pays and costs, and how its owner bears the rate. */
import { CommandRefusedError, type SetTaxRate, type SetTaxRateResult, type TaxRow } from "../../game.js";
import { LEVELS, SLIDER_SUB_SERVICES, TAX_CLASSES } from "../../terms.js";
import { setProblem } from "../fabric/buildings.js";
import { countResidents } from "../fabric/citizens.js";
import { CYCLES_PER_WEEK } from "../state/calendar.js";
import { type ExpenseLine, type IncomeLine, MAX_TAX_RATE } from "../state/economy.js";
import type { SimBuilding } from "../state/entities.js";
import type { World } from "../state/world.js";
import { taxTolerance } from "./temper.js";

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
  const { service, subService, level } = building.prefab;
  const income =
    INCOME_PER_RESIDENT * countResidents(world, building) + INCOME_PER_WORKER * building.workerIds.length;
  const perLevel = 1 + INCOME_PER_LEVEL * (level - 1);
  world.ledger.book(service as IncomeLine, (income * perLevel * world.taxes.rate(subService, level)) / 100);
}

/** Pays one cycle's upkeep of a civic building; a switched-off one costs nothing. */
export function payUpkeep(world: World, building: SimBuilding): void {
  const { service, upkeepPerWeek } = building.prefab;
  if (!building.switchedOff) world.ledger.book(service as ExpenseLine, upkeepPerWeek / CYCLES_PER_WEEK);
}

/**
 * Percentage points of tax beyond what the owner finds right; 0 when content. The mean bears 11 less the residents'
 * wealth, one more in high density. Who is asked for four more than that for long complains: TaxesTooHigh.
 */
export function updateTaxUnrest(world: World, building: SimBuilding): number {
  const { subService, level, growable } = building.prefab;
  const isInhabited = building.householdIds.length + building.workerIds.length > 0;
  const tolerated =
    TOLERATED_RATE -
    averageWealth(world, building) +
    (growable?.highDensity ? 1 : 0) +
    taxTolerance(world, building);
  const excess = world.taxes.rate(subService, level) - tolerated;
  const unrest = building.taxUnrest + (excess >= UNREST_MARGIN && isInhabited ? 1 : -2);
  building.taxUnrest = Math.min(Math.max(unrest, 0), 2 * UNREST_LIMIT);
  setProblem(building, "TaxesTooHigh", building.taxUnrest >= UNREST_LIMIT, world.frame);
  return Math.max(excess, 0);
}

function averageWealth(world: World, building: SimBuilding): number {
  const { length } = building.householdIds;
  if (length === 0) return 0;
  return building.householdIds.reduce((sum, id) => sum + world.households.at(id).wealth, 0) / length;
}

type TaxTarget = Pick<TaxRow, "service" | "subService" | "level" | "scope">;

/** Sets one rate for every sub-service and level that passes the filters. */
export function setTaxRate(world: World, command: SetTaxRate): SetTaxRateResult {
  const rate = Math.trunc(command.rate);
  if (!(rate >= 0 && rate <= MAX_TAX_RATE)) {
    const message = `The tax rate must be 0 to ${MAX_TAX_RATE}, not ${command.rate}`;
    throw new CommandRefusedError("bad-value", message);
  }
  const targets = taxTargets(command);
  if (targets.length === 0) {
    const { service, subService } = command;
    const message = `No tax matched service ${service ?? "All"}, sub-service ${subService ?? "All"}`;
    throw new CommandRefusedError("nothing-matched", message);
  }
  const rateOf = ({ subService, level }: TaxTarget) => world.taxes.rate(subService, level === 0 ? 1 : level);
  const before = targets.map(rateOf);
  if (!command.dryRun) {
    for (const { subService, level } of targets) if (level !== 0) world.taxes.set(subService, level, rate);
  }
  return {
    rate,
    rows: targets.map((target, i) => ({ ...target, before: before[i] as number, after: rateOf(target) })),
  };
}

/** The six sliders first, level by level; then every sub-service, its aggregate before its levels. */
function taxTargets({ service, subService, level }: SetTaxRate): TaxTarget[] {
  const passes = (row: { service: string; subService: string }) =>
    (service === null || row.service === service) && (subService === null || row.subService === subService);
  const levels = LEVELS.filter((candidate) => level === null || candidate === level);
  const sliders = SLIDER_SUB_SERVICES.filter(passes).flatMap((row) =>
    levels.map((each): TaxTarget => ({ ...row, level: each, scope: "uiTaxSlider" })),
  );
  const table = TAX_CLASSES.filter(passes).flatMap((row) => {
    const aggregate: TaxTarget[] = level === null ? [{ ...row, level: 0, scope: "aggregate" }] : [];
    return [...aggregate, ...levels.map((each): TaxTarget => ({ ...row, level: each, scope: "level" }))];
  });
  return [...sliders, ...table];
}
