import { z } from "zod";
import { FieldError } from "../errors.js";
import type { CommandRoute } from "../route.js";
import { LEVELS, type Level, levelName, SERVICES, SUB_SERVICES } from "../terms.js";
import { flag, number, parseFields, text } from "../wire/fields.js";

const FIELDS = z.object({
  rate: number(-1),
  dryRun: flag(false),
  service: text(""),
  subService: text(""),
  level: z.union([z.string(), z.number()], "must be a level").default(""),
});

/** Words that mean all services. */
const ANY_SERVICE = ["", "all", "zoned"];
const ANY = ["", "all"];

/** POST /commands/set-tax-rate: what is left out means all. */
export const setTaxRate: CommandRoute = {
  path: "/commands/set-tax-rate",
  label: ({ rate }) => `Set tax rate ${Math.trunc(Number(rate ?? -1))}`,
  run: (city, body) => {
    const { rate, dryRun, ...filters } = parseFields(FIELDS, body);
    const everything = { type: "set-tax-rate", rate, service: null, subService: null, level: null } as const;
    // The rate is judged before the filters.
    city.apply({ ...everything, dryRun: true });
    const result = city.apply({
      ...everything,
      dryRun,
      service: ANY_SERVICE.includes(filters.service.toLowerCase())
        ? null
        : named("service", filters.service, SERVICES),
      subService: ANY.includes(filters.subService.toLowerCase())
        ? null
        : named("subService", filters.subService, SUB_SERVICES),
      level: levelFilter(filters.level),
    });
    const taxRates = result.rows.map(({ service, subService, level, scope, before, after }) => {
      return { service, subService, level: levelName(level), scope, before, after };
    });
    const message = `${taxRates.length} rates ${dryRun ? "would be" : "were"} set to ${result.rate} %.`;
    return { ok: true, dryRun, message, rate: result.rate, changed: taxRates.length, taxRates };
  },
};

/** In any case of letters. */
function named<T extends string>(field: string, value: string, names: readonly T[]): T {
  const found = names.find((name) => name.toLowerCase() === value.toLowerCase());
  if (found === undefined) throw new FieldError(`Unknown ${field} "${value}"`);
  return found;
}

/** `Level1` to `Level5`, "0" to "4" as text, or 1 to 5 as a number. */
function levelFilter(value: string | number): Level | null {
  const wanted = String(value).toLowerCase();
  if (ANY.includes(wanted)) return null;
  const found = LEVELS.find((level) => {
    if (typeof value === "number") return level === value;
    return wanted === levelName(level).toLowerCase() || wanted === String(level - 1);
  });
  if (found === undefined) throw new FieldError(`Unknown level "${value}"; it must be Level1 to Level5`);
  return found;
}
