/**
 * Loans, bailout and accounts. A command is refused if the balance does not cover its cost. Each of three
 * banks gives one loan. A city deep in debt gets one bailout. If the city falls as deep in debt again, it
 * closes one service building in each week that ends with a loss.
 */
import { CELL_METERS, lengthOf } from "../../geometry.js";
import { RefusedError } from "../../refusal.js";
import { FLAG, type Service } from "../../terms.js";
import { setProblem } from "../fabric/buildings.js";
import { gameTimeMs } from "../state/calendar.js";
import {
  EXPENSE_LINES,
  type ExpenseLine,
  INCOME_LINES,
  type IncomeLine,
  totalsOf,
} from "../state/economy.js";
import type { Building } from "../state/entities.js";
import type { World } from "../state/world.js";
import { sampleCity } from "./census.js";
import { postCityMessage } from "./messages.js";

/** Loans of three banks, repaid weekly with interest; values modelled on the game's three loans. */
export const LOAN_OFFERS = [
  { lender: "City Savings Bank", amount: 20_000, weeks: 52, weeklyPayment: 420 },
  { lender: "Regional Trust", amount: 60_000, weeks: 104, weeklyPayment: 665 },
  { lender: "State Development Bank", amount: 200_000, weeks: 208, weeklyPayment: 1_200 },
];

/** The state grants a bailout, the second amount, if the balance falls below the first. */
const BAILOUT_BELOW_MONEY = -10_000;
const BAILOUT_MONEY = 50_000;

/** @throws RefusedError with cost and balance when the city cannot pay */
export function requireFunds(world: World, cost: number, purchase: string): void {
  const balance = world.ledger.balanceCents / 100;
  if (world.unlimitedMoney || cost <= 0 || cost <= balance) return;
  throw new RefusedError(`${purchase} costs ${cost.toFixed(2)}, but the balance is ${balance.toFixed(2)}`);
}

/** Closes a week: loan payments, bailout, accounts. */
export function closeWeek(world: World): void {
  const { ledger } = world;
  for (const loan of [...ledger.loans]) {
    ledger.book("LoanPayments", loan.weeklyPayment);
    if (--loan.weeksLeft === 0) ledger.loans.splice(ledger.loans.indexOf(loan), 1);
  }
  payNetworks(world);
  const isBroke = ledger.balanceCents < BAILOUT_BELOW_MONEY * 100 && !world.unlimitedMoney;
  if (isBroke && ledger.totals.Grants === undefined) {
    ledger.book("Grants", BAILOUT_MONEY);
    const text = `The state gives the city ${BAILOUT_MONEY}. It will not do so again.`;
    postCityMessage(world, "CHIRP_POLICY", text);
  } else if (isBroke) {
    closeService(world);
  }
  ledger.closeWeek(world.frame);
  world.statistics.close(sampleCity(world));
}

/** Books one week's upkeep of roads, pipes and power lines, which depends on their length. */
function payNetworks({ segments, ledger }: World): void {
  const sums = new Map<ExpenseLine, number>();
  for (const segment of segments.values()) {
    const { service, upkeepPerCell } = segment.prefab;
    const line = service as ExpenseLine;
    sums.set(line, (sums.get(line) ?? 0) + (upkeepPerCell * lengthOf(segment)) / CELL_METERS);
  }
  for (const [line, upkeep] of sums) ledger.book(line, upkeep);
}

/** Services that a bankrupt city closes last. */
const VITAL: readonly Service[] = ["Electricity", "Water"];

/** Closes the most expensive service building after a week of loss. Vital services close last. */
function closeService(world: World): void {
  const { income, expenses } = totalsOf(world.ledger.week);
  if (income >= expenses) return;
  const isVital = ({ prefab }: Building) => VITAL.includes(prefab.service);
  const [closed] = world.buildings
    .all()
    .filter(({ prefab, switchedOff }) => prefab.upkeepPerWeek > 0 && !switchedOff)
    .sort(
      (a, b) => Number(isVital(a)) - Number(isVital(b)) || b.prefab.upkeepPerWeek - a.prefab.upkeepPerWeek,
    );
  if (!closed) return;
  closed.switchedOff = true;
  closed.flags &= ~FLAG.Active;
  setProblem(closed, "TurnedOff", true, world.frame);
  const text = `The city is bankrupt and closes building ${closed.id}, a ${closed.prefab.displayName}.`;
  postCityMessage(world, "CHIRP_POLICY", text);
}

/** Accounts by line, loans, and the weeks of the last two years, oldest first. */
export function budgetOf({ ledger, unlimitedMoney }: World) {
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
    loans: ledger.loans,
    loanOffers: LOAN_OFFERS,
    history: ledger.history.map(({ frame, balanceCents, amounts }) => {
      return { gameTimeMs: gameTimeMs(frame), balance: balanceCents / 100, ...totalsOf(amounts) };
    }),
  };
}
