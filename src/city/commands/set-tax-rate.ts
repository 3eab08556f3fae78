import { z } from "zod";
import { RefusedError } from "../refusal.js";
import { MAX_TAX_RATE } from "../simulation/state/economy.js";
import {
  type GrowableService,
  LEVELS,
  type Level,
  levelName,
  SERVICES,
  SLIDER_SUB_SERVICES,
  SUB_SERVICES,
  type SubService,
  TAX_CLASSES,
} from "../terms.js";
import { flag, number, text } from "../wire/requests.js";
import { defineCommand } from "./command.js";

/** Values that select all services. */
const ANY_SERVICE = ["", "all", "zoned"];
const ANY = ["", "all"];

interface TaxTarget {
  readonly service: GrowableService;
  readonly subService: SubService;
  /** Level that the rate applies to; 0 for all levels of the sub-service together. */
  readonly level: Level;
  readonly scope: "uiTaxSlider" | "aggregate" | "level";
}

export const setTaxRate = defineCommand({
  path: "/commands/set-tax-rate",
  summary: "Sets one rate for every sub-service and level that matches the filters; without filters for all.",
  label: ({ rate }) => `Set tax rate ${Math.trunc(Number(rate ?? -1))}`,
  fields: z.object({
    rate: number(-1).describe("Percent; truncated, then 0 to 29."),
    dryRun: flag(false),
    service: text(""),
    subService: text(""),
    level: z.union([z.string(), z.number()], "must be a level").default(""),
  }),
  act: ({ taxes }, { dryRun, ...fields }) => {
    const rate = Math.trunc(fields.rate);
    if (!(fields.rate >= 0 && rate <= MAX_TAX_RATE)) {
      throw new RefusedError(`The tax rate must be 0 to ${MAX_TAX_RATE}, not ${fields.rate}`);
    }
    const service = findName("service", fields.service, SERVICES, ANY_SERVICE);
    const subService = findName("subService", fields.subService, SUB_SERVICES, ANY);
    const targets = taxTargets(service, subService, levelFilter(fields.level));
    if (targets.length === 0) {
      const message = `No tax matched service ${service ?? "All"}, sub-service ${subService ?? "All"}`;
      throw new RefusedError(message);
    }
    const rateOf = (target: TaxTarget) =>
      taxes.rate(target.subService, target.level === 0 ? 1 : target.level);
    const before = targets.map(rateOf);
    if (!dryRun)
      for (const target of targets) if (target.level !== 0) taxes.set(target.subService, target.level, rate);
    const taxRates = targets.map((target, i) => {
      return {
        ...target,
        before: before[i] as number,
        after: rateOf(target),
        level: levelName(target.level),
      };
    });
    const message = `${taxRates.length} rates ${dryRun ? "would be" : "were"} set to ${rate} %.`;
    return { message, rate, changed: taxRates.length, taxRates };
  },
});

/** Finds a name, ignoring case. Returns null if the value is one of `any`, which select all names. */
function findName<T extends string>(
  field: string,
  value: string,
  names: readonly T[],
  any: readonly string[],
): T | null {
  const wanted = value.toLowerCase();
  if (any.includes(wanted)) return null;
  const found = names.find((name) => name.toLowerCase() === wanted);
  if (found === undefined) throw new RefusedError(`Unknown ${field} "${value}"`);
  return found;
}

/** Parses a level: `Level1` to `Level5`, or 0 to 4 as a number or as text. Returns null for all levels. */
function levelFilter(value: string | number): Level | null {
  const wanted = String(value).toLowerCase();
  if (ANY.includes(wanted)) return null;
  const found = LEVELS.find((level) => {
    return wanted === levelName(level).toLowerCase() || wanted === String(level - 1);
  });
  if (found === undefined) throw new RefusedError(`Unknown level "${value}"; it must be Level1 to Level5`);
  return found;
}

/**
 * Tax rows that the filters select. The first rows are those of the six tax sliders, one row per level. Then each
 * sub-service has one row for all levels together (only without a level filter), and one row per level.
 */
function taxTargets(service: string | null, subService: string | null, level: Level | null): TaxTarget[] {
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
