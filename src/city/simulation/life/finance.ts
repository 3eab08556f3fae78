/**
 * Loans and accounts. A command is refused if the balance does not cover its cost. Each of three banks gives one loan.
 */
import { CELL_METERS, lengthOf } from "../../geometry.js";
import { RefusedError } from "../../refusal.js";
import { gameTimeMs } from "../state/calendar.js";
import {
  EXPENSE_LINES,
  type ExpenseLine,
  INCOME_LINES,
  type IncomeLine,
  totalsOf,
} from "../state/economy.js";
import type { World } from "../state/world.js";
import { sampleCity } from "./census.js";
import {
  BAILOUT_MONEY,
  closedForDebt,
  DEBT_LIMIT,
  isBailoutOffered,
  isBailoutSpent,
  manageDebt,
} from "./debt.js";
import { stateAid, weeklyTaxes, weeklyUpkeep } from "./taxes.js";

/** Loans of three banks, repaid weekly with interest; values modelled on the game's three loans. */
export const LOAN_OFFERS = [
  { lender: "City Savings Bank", amount: 20_000, weeks: 52, weeklyPayment: 420 },
  { lender: "Regional Trust", amount: 60_000, weeks: 104, weeklyPayment: 665 },
  { lender: "State Development Bank", amount: 200_000, weeks: 208, weeklyPayment: 1_200 },
];

/** @throws RefusedError with cost and balance when the city cannot pay */
export function requireFunds(world: World, cost: number, purchase: string): void {
  const balance = world.ledger.balanceCents / 100;
  if (world.unlimitedMoney || cost <= 0 || cost <= balance) return;
  throw new RefusedError(`${purchase} costs ${cost.toFixed(2)}, but the balance is ${balance.toFixed(2)}`);
}

/** Closes a week: loan payments, upkeep of networks, debt, accounts. */
export function closeWeek(world: World): void {
  const { ledger } = world;
  for (const loan of [...ledger.loans]) {
    ledger.book("LoanPayments", loan.weeklyPayment);
    if (--loan.weeksLeft === 0) ledger.loans.splice(ledger.loans.indexOf(loan), 1);
  }
  payNetworks(world);
  manageDebt(world);
  ledger.closeWeek(world.frame);
  world.statistics.close(sampleCity(world));
}

/** Books one week's upkeep of roads, pipes and power lines. */
function payNetworks(world: World): void {
  for (const [line, upkeep] of upkeepOfNetworks(world)) world.ledger.book(line, upkeep);
}

/** Upkeep of roads, pipes and power lines in a week, which depends on their length. */
function upkeepOfNetworks({ segments }: World): ReadonlyMap<ExpenseLine, number> {
  const sums = new Map<ExpenseLine, number>();
  for (const segment of segments.values()) {
    const { service, upkeepPerCell } = segment.prefab;
    const line = service as ExpenseLine;
    sums.set(line, (sums.get(line) ?? 0) + (upkeepPerCell * lengthOf(segment)) / CELL_METERS);
  }
  return sums;
}

/** Money that the city keeps in a week if nothing changes: taxes without upkeep and loan payments. */
export function weeklySurplus(world: World): number {
  const { ledger, buildings } = world;
  let upkeep = 0;
  for (const { prefab, switchedOff } of buildings.values())
    if (!switchedOff) upkeep += weeklyUpkeep(world, prefab);
  const networks = [...upkeepOfNetworks(world).values()].reduce((sum, each) => sum + each, 0);
  const loans = ledger.loans.reduce((sum, { weeklyPayment }) => sum + weeklyPayment, 0);
  return weeklyTaxes(world) - upkeep * (1 - stateAid(world)) - networks - loans;
}

/** Accounts by line, loans, the bailout, and the weeks of the last two years, oldest first. */
export function budgetOf(world: World) {
  const { ledger, unlimitedMoney } = world;
  const lastWeek = ledger.history.at(-1)?.amounts ?? {};
  const line = (name: IncomeLine | ExpenseLine) => ({
    name,
    thisWeek: (ledger.week[name] ?? 0) / 100,
    lastWeek: (lastWeek[name] ?? 0) / 100,
    total: (ledger.totals[name] ?? 0) / 100,
  });
  return {
    unlimited: unlimitedMoney,
    balance: ledger.balanceCents / 100,
    income: INCOME_LINES.map(line),
    expenses: EXPENSE_LINES.map(line),
    weeklySurplus: weeklySurplus(world),
    bailout: {
      amount: BAILOUT_MONEY,
      belowBalance: DEBT_LIMIT,
      isOffered: isBailoutOffered(world),
      isSpent: isBailoutSpent(world),
    },
    servicesClosedForDebt: closedForDebt(world).length,
    loans: ledger.loans,
    loanOffers: LOAN_OFFERS,
    history: ledger.history.map(({ frame, balanceCents, amounts }) => {
      return { gameTimeMs: gameTimeMs(frame), balance: balanceCents / 100, ...totalsOf(amounts) };
    }),
  };
}
