/**
 * Shapes and ranges of all values in a save. They are checked before anything is built from them: a single wrong number,
 * such as a huge id or coordinate, could otherwise take all memory.
 */
import { z } from "zod";
import { isObject } from "../../../parameters.js";
import { FIRST_PROBLEM_SET, LEVELS, SECOND_PROBLEM_SET, TAX_CLASSES } from "../../terms.js";
import { TILES_PER_SIDE } from "../state/areas.js";
import { gameTimeMs } from "../state/calendar.js";
import {
  EXPENSE_LINES,
  INCOME_LINES,
  MAX_TAX_RATE,
  WEEKLY_AMOUNTS,
  WEEKLY_COUNTS,
} from "../state/economy.js";
import type { Building, Citizen } from "../state/entities.js";
import { MAP_HALF_METERS } from "../state/terrain.js";
import { LIMITS } from "../state/world.js";

/** Twenty thousand years. */
const MAX_FRAME = 2 ** 32;
/** No amount of money, wares, people or points comes near this. */
const MAX_AMOUNT = 1e12;
const MAX_WORD = 2 ** 32 - 1;
/** Homes, jobs or visitor places in one building. */
const MAX_PLACES = 10_000;
/** A newcomer may have been born before the city began. */
const OLDEST_BIRTH = -(2 ** 24);
/** Length of a short list, such as the messages or the shops of a road. */
const MAX_LISTED = 1000;

const whole = (least: number, most: number) => z.int().min(least).max(most);
/** Checks the length first: an issue for each of a million elements would take all memory. */
const listed = <T extends z.ZodType>(element: T, most = MAX_LISTED) =>
  z
    .custom<unknown[]>(
      (list) => Array.isArray(list) && list.length <= most,
      `must be a list of at most ${most}`,
    )
    .pipe(z.array(element));
const amount = z.number().min(-MAX_AMOUNT).max(MAX_AMOUNT);
const count = whole(0, MAX_AMOUNT);
const cents = whole(-Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER);
const frame = whole(0, MAX_FRAME);
const word = whole(0, MAX_WORD);
const id = (kind: keyof typeof LIMITS) => whole(1, LIMITS[kind]);
const coordinate = z
  .number()
  .min(-2 * MAP_HALF_METERS)
  .max(2 * MAP_HALF_METERS);
const place = z.tuple([coordinate, coordinate, coordinate]);
const eachOf = <K extends string, T extends z.ZodType>(names: readonly K[], type: T) =>
  Object.fromEntries(names.map((name) => [name, type])) as Record<K, T>;
const problems = z.strictObject({
  names: listed(z.enum([...FIRST_PROBLEM_SET, ...SECOND_PROBLEM_SET])),
  severity: z.enum(["warning", "major", "fatal"]),
});
const ledgerAmounts = z.strictObject(eachOf([...INCOME_LINES, ...EXPENSE_LINES], cents.optional()));

/** Rows of the long lists. */
export const NODE = z.strictObject({
  id: id("nodes"),
  prefab: z.string(),
  at: place,
  outside: z.boolean(),
  problems,
  segments: listed(id("segments")),
});
export const SEGMENT = z.strictObject({
  id: id("segments"),
  prefab: z.string(),
  name: z.string(),
  namedByBuilder: z.boolean(),
  ends: z.tuple([id("nodes"), id("nodes")]),
  problems,
  blocks: listed(id("blocks")),
});
export const BLOCK = z.strictObject({
  id: id("blocks"),
  segment: id("segments"),
  at: place,
  angle: amount,
  age: count,
  cells: z.string().regex(/^\d*$/, "must be digits"),
});
export const BUILDING = z.strictObject({
  prefab: z.string(),
  at: place,
  problems,
  problemSince: listed(frame),
  switchedOff: z.boolean(),
  closedForDebt: z.boolean().optional(),
  supply: z.strictObject({ power: z.boolean(), water: z.boolean(), sewage: z.boolean(), heat: z.boolean() }),
  households: listed(id("households"), MAX_PLACES),
  workers: listed(id("citizens"), MAX_PLACES),
});
export const HOUSEHOLD = z.tuple([id("households"), id("buildings"), whole(0, 2), listed(id("citizens"))]);

/** Everything but the long lists and packed numbers. */
export const CITY = z.object({
  cityId: z.string().optional(),
  areas: listed(whole(0, TILES_PER_SIDE ** 2 - 1)).optional(),
  replies: listed(z.tuple([z.string(), z.custom<object>(isObject, "must be an object")])).optional(),
  seed: word,
  frame,
  paused: z.boolean(),
  selectedSpeed: whole(0, 3),
  buildIndex: count,
  milestone: count,
  wares: amount,
  blockedAssetEnabled: z.boolean(),
  trafficCursor: whole(0, LIMITS.segments + 1),
  random: z.tuple([word, word, word, word]),
  demand: z.strictObject({ residential: amount, commercial: amount, workplace: amount }),
  taxRates: listed(whole(0, MAX_TAX_RATE)).refine(
    (rates) => rates.length === TAX_CLASSES.length * LEVELS.length,
    "must have a rate for each class and level",
  ),
  ledger: z.strictObject({
    startCents: cents,
    totals: ledgerAmounts,
    week: ledgerAmounts,
    history: listed(z.strictObject({ frame, balanceCents: cents, amounts: ledgerAmounts })),
    loans: listed(
      z.strictObject({ lender: z.string(), amount, weeklyPayment: amount, weeksLeft: whole(1, MAX_PLACES) }),
    ),
  }),
  statistics: z.strictObject({
    samples: listed(
      z.strictObject({
        gameTimeMs: whole(0, gameTimeMs(MAX_FRAME)),
        ...eachOf(WEEKLY_COUNTS, count),
        ...eachOf(WEEKLY_AMOUNTS, amount),
      }),
    ),
    week: z.strictObject({ births: count, deaths: count, arrivals: count, departures: count }),
  }),
  utilities: listed(
    z.strictObject({
      carries: z.enum(["power", "water", "sewage", "heat"]),
      supply: amount,
      demand: amount,
      plantIds: listed(id("buildings"), LIMITS.buildings),
      consumers: count,
      unserved: count,
    }),
    LIMITS.nodes,
  ),
  messages: listed(
    z.discriminatedUnion("type", [
      z.strictObject({
        type: z.literal("CitizenMessage"),
        senderName: z.string(),
        senderId: id("citizens"),
        text: z.string(),
        messageId: z.string(),
        keyId: z.string(),
        tag: z.string(),
      }),
      z.strictObject({
        type: z.literal("GenericMessage"),
        senderName: z.string(),
        senderId: z.literal(0),
        text: z.string(),
        messageId: z.string(),
        senderKey: z.string(),
        randomId: word,
      }),
    ]),
  ),
  quietUntil: listed(z.tuple([z.string(), frame])),
});

/** The ledger of saves of version 1. */
export const LEDGER_1 = z.strictObject({ taxes: cents, construction: cents, upkeep: cents });

/** Least and greatest value of a packed number, and whether it is whole. */
export type Range = readonly [least: number, most: number, kind?: "whole"];

const ANY: Range = [-MAX_AMOUNT, MAX_AMOUNT];
const PLACES: Range = [0, MAX_PLACES, "whole"];
const WHEN: Range = [0, MAX_FRAME, "whole"];
const idRange = (kind: keyof typeof LIMITS, least: 0 | 1): Range => [least, LIMITS[kind], "whole"];

/** Numeric fields of a record in the order of a saved row. Reading fields by a computed name would take five times as long. */
export type NumberFields<T> = Readonly<
  Record<string, { readonly read: (record: T) => number; readonly range: Range }>
>;

export const BUILDING_NUMBERS = {
  id: { read: (building) => building.id, range: idRange("buildings", 1) },
  angleDegrees: { read: (building) => building.angleDegrees, range: ANY },
  flags: { read: (building) => building.flags, range: [0, 2 ** 24 - 1, "whole"] },
  builtFrame: { read: (building) => building.builtFrame, range: WHEN },
  declineFrame: { read: (building) => building.declineFrame, range: WHEN },
  blockId: { read: (building) => building.blockId, range: idRange("blocks", 0) },
  lotMask: { read: (building) => building.lotMask, range: [-(2 ** 31), 2 ** 31 - 1, "whole"] },
  homes: { read: (building) => building.homes, range: PLACES },
  jobs: { read: (building) => building.jobs, range: PLACES },
  visitorPlaces: { read: (building) => building.visitorPlaces, range: PLACES },
  visitors: { read: (building) => building.visitors, range: ANY },
  goods: { read: (building) => building.goods, range: ANY },
  garbage: { read: (building) => building.garbage, range: ANY },
  bodies: { read: (building) => building.bodies, range: ANY },
  crime: { read: (building) => building.crime, range: ANY },
  health: { read: (building) => building.health, range: ANY },
  landValue: { read: (building) => building.landValue, range: ANY },
  progress: { read: (building) => building.progress, range: ANY },
  taxUnrest: { read: (building) => building.taxUnrest, range: ANY },
  burning: { read: (building) => building.burning, range: ANY },
  load: { read: (building) => building.load, range: ANY },
  lastLoad: { read: (building) => building.lastLoad, range: ANY },
  waitSeconds: { read: (building) => building.waitSeconds, range: ANY },
  happiness: { read: (building) => building.happiness, range: ANY },
  commute: { read: (building) => building.commute, range: ANY },
  want: { read: (building) => building.want, range: ANY },
  stored: { read: (building) => building.stored, range: ANY },
  fuel: { read: (building) => building.fuel, range: ANY },
} satisfies NumberFields<Building>;

export const CITIZEN_NUMBERS = {
  id: { read: (citizen) => citizen.id, range: idRange("citizens", 1) },
  householdId: { read: (citizen) => citizen.householdId, range: idRange("households", 1) },
  bornFrame: { read: (citizen) => citizen.bornFrame, range: [OLDEST_BIRTH, MAX_FRAME] },
  education: { read: (citizen) => citizen.education, range: [0, 3, "whole"] },
  workId: { read: (citizen) => citizen.workId, range: idRange("buildings", 0) },
} satisfies NumberFields<Citizen>;

/** Ranges of a road's traffic. A place that no road reaches is infinitely far away. */
export const TRAFFIC_RANGES = {
  vehicles: ANY,
  seconds: [-MAX_AMOUNT, Number.POSITIVE_INFINITY],
  providerId: idRange("buildings", 0),
  shops: [0, MAX_LISTED, "whole"],
  shopId: idRange("buildings", 1),
} as const satisfies Record<string, Range>;

/**
 * Checks a value, which stays the same object: the order of its keys counts in the hash of the city.
 * @param where name of the value in error messages, such as `nodes[3]`
 * @throws Error naming the part at fault
 */
export function checked<S extends z.ZodType>(schema: S, value: unknown, where: string): z.output<S> {
  const result = schema.safeParse(value);
  if (result.success) return value as z.output<S>;
  const { path, message } = result.error.issues[0] as z.core.$ZodIssue;
  const keys = path.map((key) => (typeof key === "number" ? `[${key}]` : `.${String(key)}`));
  const name = `${where}${keys.join("")}`.replace(/^\./, "");
  throw new Error(`the value of ${name} is wrong: ${message}`);
}

/** @throws Error naming the value unless it is in the range */
export function inRange(value: number, [least, most, kind]: Range, where: string): number {
  if (value >= least && value <= most && (kind !== "whole" || Number.isInteger(value))) return value;
  throw new Error(
    `the value of ${where} is wrong: ${value} is not ${kind ?? "a number"} from ${least} to ${most}`,
  );
}
