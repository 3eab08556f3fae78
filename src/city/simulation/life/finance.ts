/**
 * What the city can pay. Every command that costs something is refused when the balance does not cover it. Three banks
 * lend, a loan each. A city that is deep in debt is helped out once; after that nothing but its own income helps.
 */
import {
  type Budget,
  CommandRefusedError,
  type LoanOffer,
  type TakeLoan,
  type TakeLoanResult,
} from "../../game.js";
import { gameTimeMs } from "../state/calendar.js";
import { EXPENSE_LINES, type ExpenseLine, flowsOf, INCOME_LINES, type IncomeLine } from "../state/economy.js";
import type { World } from "../state/world.js";
import { sampleCity } from "./census.js";
import { announce } from "./messages.js";

/** Paid back week by week with interest: tuning in the manner of the game's three loans. */
const LOAN_OFFERS: readonly LoanOffer[] = [
  { lender: "City Savings Bank", amount: 20_000, weeks: 52, weeklyPayment: 420 },
  { lender: "Regional Trust", amount: 60_000, weeks: 104, weeklyPayment: 665 },
  { lender: "State Development Bank", amount: 200_000, weeks: 208, weeklyPayment: 1_200 },
];

/** Debt at which the state steps in, and what it gives. */
const BAILOUT_BELOW_MONEY = -10_000;
const BAILOUT_MONEY = 50_000;

/** @throws CommandRefusedError naming cost and balance when the city cannot pay */
export function requireFunds(world: World, cost: number, what: string): void {
  const balance = world.ledger.balanceCents / 100;
  if (world.unlimitedMoney || cost <= 0 || cost <= balance) return;
  const message = `${what} costs ${cost.toFixed(2)}, but the balance is ${balance.toFixed(2)}`;
  throw new CommandRefusedError("not-enough-money", message);
}

/** Takes a loan, or pays what is left of it at once. */
export function takeLoan(world: World, { dryRun, lender, repay }: TakeLoan): TakeLoanResult {
  const offer = LOAN_OFFERS.find((each) => each.lender === lender);
  if (!offer) {
    const names = LOAN_OFFERS.map((each) => each.lender).join(", ");
    throw new CommandRefusedError("unknown-lender", `No bank is named "${lender}"; these lend: ${names}`);
  }
  const { ledger } = world;
  const running = ledger.loans.find((loan) => loan.lender === lender);
  if (repay !== (running !== undefined)) {
    const message = repay ? `The city owes ${lender} nothing` : `The city already has a loan of ${lender}`;
    throw new CommandRefusedError("bad-value", message);
  }
  if (running) {
    const rest = running.weeklyPayment * running.weeksLeft;
    requireFunds(world, rest, `Paying back ${lender}`);
    if (!dryRun) {
      ledger.book("LoanPayments", rest);
      ledger.loans.splice(ledger.loans.indexOf(running), 1);
    }
  } else if (!dryRun) {
    const { amount, weeklyPayment, weeks } = offer;
    ledger.book("Loans", amount);
    ledger.loans.push({ lender, amount, weeklyPayment, weeksLeft: weeks });
  }
  return { offer };
}

/** The end of a week: instalments, help for a city in debt, and the week's account. */
export function closeWeek(world: World): void {
  const { ledger } = world;
  for (const loan of [...ledger.loans]) {
    ledger.book("LoanPayments", loan.weeklyPayment);
    if (--loan.weeksLeft === 0) ledger.loans.splice(ledger.loans.indexOf(loan), 1);
  }
  const isBroke = ledger.balanceCents < BAILOUT_BELOW_MONEY * 100 && !world.unlimitedMoney;
  if (isBroke && ledger.totals.Grants === undefined) {
    ledger.book("Grants", BAILOUT_MONEY);
    announce(world, "CHIRP_POLICY", `The state gives the city ${BAILOUT_MONEY}. It will not do so again.`);
  } else if (isBroke) {
    announce(world, "CHIRP_POLICY", "The city is bankrupt: nothing can be built until it earns again.");
  }
  ledger.closeWeek(world.frame);
  world.statistics.close(sampleCity(world));
}

export function budgetOf({ ledger, unlimitedMoney }: World): Budget {
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
      return { gameTimeMs: gameTimeMs(frame), balance: balanceCents / 100, ...flowsOf(amounts) };
    }),
  };
}
