/** Money and taxes: one balance, a ledger of what moved it, and the table of tax rates. */
import {
  type GrowableService,
  LEVELS,
  type Level,
  type SubService,
  TAXED_SUB_SERVICES,
} from "../../terms.js";

export const START_MONEY = 70_000;
export const DEFAULT_TAX_RATE = 9;
export const MAX_TAX_RATE = 29;

/** The taxed sub-services in table order, each with its service. */
export const TAX_CLASSES: readonly { readonly service: GrowableService; readonly subService: SubService }[] =
  (Object.entries(TAXED_SUB_SERVICES) as [GrowableService, readonly SubService[]][]).flatMap(
    ([service, subServices]) => subServices.map((subService) => ({ service, subService })),
  );

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

export const LEDGER_ACCOUNTS = ["taxes", "construction", "upkeep"] as const;
export type LedgerAccount = (typeof LEDGER_ACCOUNTS)[number];

/** All money that ever moved, in cents so that sums stay exact. `balance = START_MONEY + taxes - the rest`. */
export class Ledger {
  constructor(readonly cents: Record<LedgerAccount, number> = { taxes: 0, construction: 0, upkeep: 0 }) {}

  get balanceCents(): number {
    return START_MONEY * 100 + this.cents.taxes - this.cents.construction - this.cents.upkeep;
  }

  /** @param amount money, rounded to cents */
  book(account: LedgerAccount, amount: number): void {
    this.cents[account] += Math.round(amount * 100);
  }
}
