/**
 * A city deep in debt. It is offered one bailout. At the end of each week it closes one service, the one worth least
 * for its upkeep, until its surplus would repay the debt in REPAYMENT_WEEKS. Plants that are needed stay open. Once the
 * balance covers REOPENING_WEEKS of upkeep of a closed building, the city reopens it, the most needed one first.
 */
import type { CivicProperties } from "../catalogue/building-prefabs.js";
import { switchBuilding } from "../fabric/buildings.js";
import { runningNet } from "../state/economy.js";
import type { Building, UtilityNetwork } from "../state/entities.js";
import type { World } from "../state/world.js";
import { expectedPoints } from "./expectations.js";
import { postCityMessage } from "./messages.js";
import { weeklyUpkeep } from "./taxes.js";

/** The state offers this grant once, to a city whose balance has fallen below the limit. */
export const BAILOUT_MONEY = 50_000;
export const DEBT_LIMIT = -10_000;
const REPAYMENT_WEEKS = 26;
const REOPENING_WEEKS = 4;

/** Whether the city has fallen below DEBT_LIMIT and has not come out of debt since. */
function isInDebtCrisis(world: World): boolean {
  const balance = world.ledger.balanceCents / 100;
  if (world.unlimitedMoney || balance >= 0) return false;
  return balance < DEBT_LIMIT || closedForDebt(world).length > 0;
}

/** Whether the city may accept the bailout. */
export function isBailoutOffered(world: World): boolean {
  return !isBailoutSpent(world) && isInDebtCrisis(world);
}

export function isBailoutSpent({ ledger }: World): boolean {
  return ledger.totals.Grants !== undefined;
}

/** Pays the bailout, and reopens what the city can then pay for. */
export function payBailout(world: World): void {
  world.ledger.book("Grants", BAILOUT_MONEY);
  reopenServices(world);
}

/** Service buildings that are closed until the city can pay for them, the most needed first. */
export function closedForDebt(world: World): Building[] {
  return byNeed(
    world,
    world.buildings.all().filter((building) => building.closedForDebt),
  );
}

/** Balance from which the city reopens a closed building. */
export function reopeningBalance(world: World, { prefab }: Building): number {
  return REOPENING_WEEKS * weeklyUpkeep(world, prefab);
}

/** Closes or reopens services at the end of a week. */
export function manageDebt(world: World): void {
  if (isInDebtCrisis(world)) closeServiceIfNeeded(world);
  else reopenServices(world);
}

function closeServiceIfNeeded(world: World): void {
  const { ledger } = world;
  const debt = -ledger.balanceCents / 100;
  const offer = isBailoutSpent(world) ? "" : ` The state offers ${BAILOUT_MONEY}, once.`;
  const isRepaying = runningNet(ledger.week) * REPAYMENT_WEEKS >= debt;
  const closed = isRepaying ? undefined : leastNeeded(world);
  if (closed) setOpen(world, closed, false);
  const closing = closed ? ` and closes building ${closed.id}, a ${closed.prefab.displayName}` : "";
  if (closing || offer) {
    postCityMessage(
      world,
      "CHIRP_POLICY",
      `The city is bankrupt: it owes ${debt.toFixed(0)}${closing}.${offer}`,
    );
  }
}

/** The open service building that is worth least for its upkeep. */
export function leastNeeded(world: World): Building | undefined {
  return byNeed(
    world,
    world.buildings.all().filter((building) => isClosable(world, building)),
  ).at(-1);
}

function reopenServices(world: World): void {
  let left = world.ledger.balanceCents / 100;
  const reopened: string[] = [];
  for (const building of closedForDebt(world)) {
    left -= reopeningBalance(world, building);
    if (left < 0 && !world.unlimitedMoney) break;
    setOpen(world, building, true);
    reopened.push(`${building.prefab.displayName} ${building.id}`);
  }
  if (reopened.length === 0) return;
  postCityMessage(world, "CHIRP_POLICY", `The city can pay again and reopens ${reopened.join(", ")}.`);
}

function setOpen(world: World, building: Building, isOpen: boolean): void {
  building.closedForDebt = !isOpen;
  switchBuilding(building, isOpen, world.frame);
}

/** Most needed first: needed plants, then services by the happiness that they are worth for their upkeep. */
function byNeed(world: World, buildings: readonly Building[]): Building[] {
  const worth = ({ prefab }: Building) => {
    const { coverage, powerKw, waterM3, sewageM3, heatKw } = prefab.civic ?? {};
    if (powerKw || waterM3 || sewageM3 || heatKw) return Number.POSITIVE_INFINITY;
    return coverage ? expectedPoints(world, coverage.kind) / prefab.upkeepPerWeek : 0;
  };
  return buildings
    .map((building) => ({ building, worth: worth(building) }))
    .sort((a, b) => (a.worth === b.worth ? 0 : b.worth - a.worth) || upkeepOf(a) - upkeepOf(b))
    .map(({ building }) => building);
}

function upkeepOf({ building }: { building: Building }): number {
  return building.prefab.upkeepPerWeek;
}

function isClosable(world: World, building: Building): boolean {
  const { prefab, switchedOff } = building;
  if (prefab.upkeepPerWeek === 0 || switchedOff) return false;
  return !world.utilities.some((network) => needsPlant(network, building));
}

/** Whether a network lacks supply without this plant. */
function needsPlant(
  { carries, plantIds, supply, demand }: UtilityNetwork,
  { id, prefab }: Building,
): boolean {
  return plantIds.includes(id) && supply - outputOf(prefab.civic, carries) < demand;
}

function outputOf(civic: CivicProperties | null, carries: UtilityNetwork["carries"]): number {
  const outputs = {
    power: civic?.powerKw,
    water: civic?.waterM3,
    sewage: civic?.sewageM3,
    heat: civic?.heatKw,
  };
  return outputs[carries] ?? 0;
}
