/** Commands on the city as a whole: its tax rates, its clock, its save. */
import { z } from "zod";
import type { CommandRoute } from "../route.js";
import { areaRow } from "../state/land.js";
import { DEFAULT_SAVE_NAME, LEVELS, type Level, levelName, SERVICES, SUB_SERVICES } from "../terms.js";
import { FieldError } from "../wire/answers.js";
import { flag, number, optionalNumber, parseFields, shown, text } from "../wire/requests.js";

const TAX_FIELDS = z.object({
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
  fields: TAX_FIELDS,
  label: ({ rate }) => `Set tax rate ${Math.trunc(Number(rate ?? -1))}`,
  run: (city, body) => {
    const { rate, dryRun, ...filters } = parseFields(TAX_FIELDS, body);
    const everything = { type: "set-tax-rate", rate, service: null, subService: null, level: null } as const;
    // The rate is judged before the filters.
    city.apply({ ...everything, dryRun: true });
    const result = city.apply({
      ...everything,
      dryRun,
      service: named("service", filters.service, SERVICES, ANY_SERVICE),
      subService: named("subService", filters.subService, SUB_SERVICES, ANY),
      level: levelFilter(filters.level),
    });
    const taxRates = result.rows.map((row) => ({ ...row, level: levelName(row.level) }));
    const message = `${taxRates.length} rates ${dryRun ? "would be" : "were"} set to ${result.rate} %.`;
    return { ok: true, dryRun, message, rate: result.rate, changed: taxRates.length, taxRates };
  },
};

/** One of the names, in any case of letters; null for a word that means all of them. */
function named<T extends string>(
  field: string,
  value: string,
  names: readonly T[],
  any: readonly string[],
): T | null {
  const wanted = value.toLowerCase();
  const found = names.find((name) => name.toLowerCase() === wanted);
  if (any.includes(wanted)) return null;
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

const LOAN_FIELDS = z.object({ lender: text(""), repay: flag(false), dryRun: flag(false) });

/** POST /commands/take-loan: of one of the lenders that GET /state/budget names, or pays back what is left of it. */
export const takeLoan: CommandRoute = {
  path: "/commands/take-loan",
  fields: LOAN_FIELDS,
  label: ({ lender, repay }) => `${repay === true ? "Repay" : "Take"} loan of ${shown(lender, "nobody")}`,
  run: (city, body) => {
    const fields = parseFields(LOAN_FIELDS, body);
    const { offer } = city.apply({ type: "take-loan", ...fields });
    const { lender, repay, dryRun } = fields;
    const done = repay ? `The loan of ${lender}` : `${offer.amount} of ${lender}`;
    const message = `${done} ${dryRun ? "would be" : "was"} ${repay ? "paid back" : "lent"}.`;
    const { amount, weeks, weeklyPayment } = offer;
    return {
      ok: true,
      dryRun,
      message,
      lender,
      repay,
      amount,
      weeks,
      weeklyPayment,
      balance: city.budget.balance,
    };
  },
};

const AREA_FIELDS = z.object({
  dryRun: flag(false),
  tileX: optionalNumber,
  tileZ: optionalNumber,
  x: number(0),
  z: number(0),
  ignoreMaxAreaCount: flag(false),
});

/** POST /commands/unlock-area: buys a tile of the map, named by its numbers or by a place in it. */
export const unlockArea: CommandRoute = {
  path: "/commands/unlock-area",
  fields: AREA_FIELDS,
  label: () => "Unlock area",
  run: (city, body) => {
    const fields = parseFields(AREA_FIELDS, body);
    const { area, maxAreaCount } = city.apply({ type: "unlock-area", ...fields });
    const { dryRun } = fields;
    const message = `Area ${area.tileX}, ${area.tileZ} ${dryRun ? "can be" : "was"} bought for ${area.price}.`;
    return { ok: true, dryRun, message, ...areaRow(area), maxAreaCount };
  },
};

const SPEED_FIELDS = z.object({ paused: flag(false), speed: number(1) });

/** POST /commands/set-simulation-speed: sets both; what is left out has its default. */
export const setSimulationSpeed: CommandRoute = {
  path: "/commands/set-simulation-speed",
  fields: SPEED_FIELDS,
  label: ({ paused, speed }) =>
    paused === true ? "Pause simulation" : `Set simulation speed ${shown(speed, "0")}`,
  run: (city, body) => {
    const clock = city.apply({ type: "set-simulation-speed", ...parseFields(SPEED_FIELDS, body) });
    const { paused, selectedSpeed, finalSpeed } = clock;
    const message = paused ? "The simulation is paused." : `The simulation runs at speed ${selectedSpeed}.`;
    return { ok: true, dryRun: false, message, paused, selectedSpeed, finalSpeed };
  },
};

const SAVE_FIELDS = z.object({ name: text(DEFAULT_SAVE_NAME) });

/** POST /commands/save: the file appears after the reply. */
export const save: CommandRoute = {
  path: "/commands/save",
  fields: SAVE_FIELDS,
  label: ({ name }) => `Save city ${shown(name, DEFAULT_SAVE_NAME)}`,
  run: (city, body) => {
    const { saveName, path } = city.apply({ type: "save", ...parseFields(SAVE_FIELDS, body) });
    const message = "The save is being written; it is whole once GET /state/saves lists it.";
    return { ok: true, dryRun: false, message, saveName, path, isSaving: true };
  },
};
