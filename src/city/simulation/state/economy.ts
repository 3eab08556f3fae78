/** Ledger of income and expenses, loans, tax rates, and weekly statistics. */
import { LEVELS, type Level, type SubService, TAX_CLASSES, words } from "../../terms.js";

/** Initial balance: enough for a first town with every basic service before it pays taxes. The game begins with 70,000. */
export const START_MONEY = 200_000;
const DEFAULT_TAX_RATE = 9;
export const MAX_TAX_RATE = 29;

const CLASS_INDEX = new Map(TAX_CLASSES.map(({ subService }, index) => [subService, index]));

/** Tax rates in whole percent, per taxed sub-service and level. */
export class TaxTable {
  constructor(
    readonly rates: Uint8Array = new Uint8Array(TAX_CLASSES.length * LEVELS.length).fill(DEFAULT_TAX_RATE),
  ) {}

  rate(subService: SubService, level: Level): number {
    return this.rates[this.#index(subService, level)] as number;
  }

  set(subService: SubService, level: Level, rate: number): void {
    this.rates[this.#index(subService, level)] = rate;
  }

  #index(subService: SubService, level: Level): number {
    const index = CLASS_INDEX.get(subService);
    if (index === undefined || level === 0) throw new RangeError(`${subService} level ${level} is not taxed`);
    return index * LEVELS.length + level - 1;
  }
}

export const TAX_LINES = words("Residential Commercial Industrial Office");
export const INCOME_LINES = [...TAX_LINES, ...words("Subsidies Milestones Grants Loans")] as const;
export const EXPENSE_LINES = words(
  "Construction Road Electricity Water Garbage HealthCare FireDepartment PoliceDepartment Education",
  "Beautification PublicTransport Monument LoanPayments",
);
export type IncomeLine = (typeof INCOME_LINES)[number];
export type ExpenseLine = (typeof EXPENSE_LINES)[number];
type LedgerLine = IncomeLine | ExpenseLine;
/** Cents per ledger line. Lines without bookings are absent. */
export type LedgerAmounts = { [Line in LedgerLine]?: number | undefined };

/** Weeks kept in the history: two years. */
const KEPT_WEEKS = 104;

export interface WeekAccount {
  /** Last frame of the week. */
  readonly frame: number;
  readonly balanceCents: number;
  readonly amounts: LedgerAmounts;
}

export type Loan = {
  readonly lender: string;
  readonly amount: number;
  readonly weeklyPayment: number;
  weeksLeft: number;
};

/** Income and expenses of the city, in cents so that sums stay exact. `balance = start + income - expenses`. */
export class Ledger {
  /** Sums of each ledger line since the city began. */
  readonly totals: LedgerAmounts = {};
  /** Sums of each ledger line since the current week began. */
  week: LedgerAmounts = {};
  /** Accounts of the latest weeks, oldest first. */
  readonly history: WeekAccount[] = [];
  readonly loans: Loan[] = [];

  constructor(readonly startCents: number = START_MONEY * 100) {}

  get incomeCents(): number {
    return sumOf(this.totals, INCOME_LINES);
  }

  get expenseCents(): number {
    return sumOf(this.totals, EXPENSE_LINES);
  }

  get balanceCents(): number {
    return this.startCents + this.incomeCents - this.expenseCents;
  }

  /** @param amount money, rounded to cents */
  book(line: LedgerLine, amount: number): void {
    const cents = Math.round(amount * 100);
    if (cents === 0) return;
    this.totals[line] = (this.totals[line] ?? 0) + cents;
    this.week[line] = (this.week[line] ?? 0) + cents;
  }

  closeWeek(frame: number): void {
    this.history.push({ frame, balanceCents: this.balanceCents, amounts: this.week });
    if (this.history.length > KEPT_WEEKS) this.history.shift();
    this.week = {};
  }
}

/** Total income and expenses, converted from cents to money. */
export function totalsOf(amounts: LedgerAmounts): { readonly income: number; readonly expenses: number } {
  return { income: sumOf(amounts, INCOME_LINES) / 100, expenses: sumOf(amounts, EXPENSE_LINES) / 100 };
}

const ONE_OFF_LINES: readonly LedgerLine[] = words("Construction Milestones Grants Loans");

/** Running income minus running costs: without construction, rewards, the bail-out and loans taken. In money. */
export function runningNet(amounts: LedgerAmounts): number {
  const { income, expenses } = totalsOf(
    Object.fromEntries(
      Object.entries(amounts).filter(([line]) => !ONE_OFF_LINES.includes(line as LedgerLine)),
    ),
  );
  return income - expenses;
}

function sumOf(amounts: LedgerAmounts, lines: readonly LedgerLine[]): number {
  return lines.reduce((sum, line) => sum + (amounts[line] ?? 0), 0);
}

/** Figures of a week that are numbers of things or events, and other figures. Means and shares are 0 to 100. */
export const WEEKLY_COUNTS = words(
  "citizens households homes jobs openJobs unemployed growables abandoned births deaths arrivals",
  "departures",
);
export const WEEKLY_AMOUNTS = words(
  "residentialDemand commercialDemand workplaceDemand happiness health landValue crime garbage graduates",
  "balance income expenses",
);
/** Statistics of one week: the state at the end, and the numbers of events. */
export type StatisticsSample = Readonly<
  Record<"gameTimeMs" | (typeof WEEKLY_COUNTS)[number] | (typeof WEEKLY_AMOUNTS)[number], number>
>;

/** Maximum number of weekly rows: ten years. */
const KEPT_SAMPLES = 522;

/** History of the city: one row of statistics per week. */
export class CityStatistics {
  /** Events counted in the current week. */
  week = { births: 0, deaths: 0, arrivals: 0, departures: 0 };
  /** Weekly rows, oldest first. */
  readonly samples: StatisticsSample[] = [];

  close(sample: StatisticsSample): void {
    this.samples.push(sample);
    if (this.samples.length > KEPT_SAMPLES) this.samples.shift();
    this.week = new CityStatistics().week;
  }
}
