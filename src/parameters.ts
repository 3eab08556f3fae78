/**
 * Zod types of request values, and the names of parameters. Zod cannot convert transforms to JSON Schema, so
 * `meta` describes them. Forms send text, so numbers and booleans are also read from text. If a value can be
 * corrected, `replaceValue` reports the replacement; the parser then uses it and adds a warning.
 */
import { z } from "zod";

/** Unvalidated fields of a body. */
export type Fields = Readonly<Record<string, unknown>>;

export function isObject(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Matches a decimal number. The pattern is unambiguous, so matching takes linear time. */
export const NUMERIC = /^[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?$/i;

/** Maximum number of elements read from comma-separated text, more than any list parameter allows. */
const MAX_ELEMENTS = 1000;

/**
 * Replacement for an invalid value, attached to the zod issue of the value. If `use` is undefined, the parameter
 * gets its default.
 */
export interface ValueReplacement {
  use: unknown;
  isRange?: boolean;
}

type Context = z.core.$RefinementCtx;

/** Adds an issue for an invalid value. Returns the placeholder that zod expects for an invalid value. */
export function refuse(context: Context, message: string, input: unknown): never {
  context.issues.push({ code: "custom", message, input });
  return z.NEVER;
}

/** Like `refuse`, for a part of a list: the error shows this part instead of the list. */
export function refusePart(context: Context, message: string, part: unknown): never {
  context.issues.push({ code: "custom", message, input: part, params: { part } });
  return z.NEVER;
}

/** The value that an issue is about. @param value the value of the whole parameter */
export function valueAtFault(issue: z.core.$ZodIssue, value: unknown): unknown {
  return issue.code === "custom" && issue.params && "part" in issue.params ? issue.params.part : value;
}

/**
 * Adds an issue with a replacement for the value. The parser uses the replacement, unless the value is out of range
 * (`isRange`) and the range policy is to refuse such values.
 */
export function replaceValue(
  context: Context,
  message: string,
  input: unknown,
  replacement: unknown,
  isRange = false,
): never {
  const params = { use: replacement, isRange } satisfies ValueReplacement;
  context.issues.push({ code: "custom", message, input, params });
  return z.NEVER;
}

/**
 * Maximum length of captions, names and paths. No valid path is longer, and models read only half as much of a
 * caption.
 */
const MAX_TEXT = 4096;
/** Maximum length of lyrics; models read only a quarter as much. */
const MAX_LYRICS = 32_768;

const NOT_FINITE = /^[+-]?(nan|inf|infinity)$/i;
export const TRUE_WORDS: readonly string[] = ["true", "yes", "y", "on"];
export const FALSE_WORDS: readonly string[] = ["false", "no", "n", "off"];
const ABSENT_WORDS: readonly string[] = ["none", "null"];
/** Words that forms, scripts and earlier results send in place of an unknown value. */
const UNSET_WORDS: readonly string[] = [
  ...ABSENT_WORDS,
  ..."n/a na ? auto automatic autodetect default any".split(" "),
  ..."unknown und undetermined undefined unset notset unspecified notspecified".split(" "),
  "",
];

/** Whether a text stands for no value: blank, a dash, or a word such as "N/A", "n.a.", "auto" or "not set". */
export function meansUnset(text: string): boolean {
  return UNSET_WORDS.includes(text.toLowerCase().replace(/[\s._–—-]/g, ""));
}

/** Text without the unit at its end; other values stay. @param unit pattern such as /bpm$/i */
export function withoutUnit(value: unknown, unit: RegExp): unknown {
  return typeof value === "string" ? value.trim().replace(unit, "").trim() : value;
}

export const BPM_UNIT = /(?<=\d)\s{0,3}bpm$/i;
const SECONDS_UNIT = /(?<=\d)\s{0,3}s(ec(onds?|s)?)?\.?$/i;
const CLOCK_TIME = /^\d+(:\d{1,2}){1,2}(\.\d+)?$/;

/** Seconds of a clock time such as "3:25", or the text of "205.3 s" without its unit; other values stay. */
export function withoutClock(value: unknown): unknown {
  const plain = withoutUnit(value, SECONDS_UNIT);
  if (typeof plain !== "string" || !CLOCK_TIME.test(plain)) return plain;
  return plain.split(":").reduce((seconds, part) => seconds * 60 + Number(part), 0);
}

/** A finite number; also accepts text. */
export const finiteNumber = z
  .unknown()
  .transform((value, context): number => {
    const read = readNumber(value);
    if (read === undefined) return refuse(context, "must be a number", value);
    return Number.isFinite(read) ? unsigned(read) : refuse(context, "must be a finite number", value);
  })
  .meta({ type: "number" });

/** An integer; rejects fractions. */
export const strictInteger = finiteNumber
  .pipe(z.number().int("must be an integer"))
  .meta({ type: "integer" });

/** An integer; truncates fractions. */
export const integer = finiteNumber
  .transform((value) => unsigned(Math.trunc(value)))
  .meta({ type: "integer" });

/** Replaces -0 with 0, so that a request does not change when it is stored as JSON. */
function unsigned(value: number): number {
  return value === 0 ? 0 : value;
}

function readNumber(value: unknown): number | undefined {
  if (typeof value === "number") return value;
  if (typeof value === "boolean") return Number(value);
  if (typeof value !== "string") return undefined;
  const text = value.trim();
  if (NOT_FINITE.test(text)) return Number.NaN;
  return NUMERIC.test(text) ? Number(text) : undefined;
}

/** A number in a range. The range policy decides whether a number out of range is clamped or rejected. */
export function within(number: z.ZodType<number>, min: number, max: number) {
  const message = `must be from ${min} to ${max}`;
  return number.pipe(z.number().min(min, message).max(max, message).meta(typeOf(number)));
}

/** Like `within`, but the message names only the limit that the number exceeds. */
export function atLeast(number: z.ZodType<number>, min: number, max = Number.MAX_VALUE) {
  const [low, high] = [`must be at least ${min}`, `must be at most ${max}`];
  return number.pipe(z.number().min(min, low).max(max, high).meta(typeOf(number)));
}

/**
 * Returns the JSON type of a number type, such as "integer". The last schema of a pipe must repeat it, because
 * z.toJSONSchema ignores the first schema.
 */
function typeOf(number: z.ZodType<number>): { type?: unknown } {
  return { type: "number", ...z.globalRegistry.get(number) };
}

/** Like `within`, but 0 or less, and words such as "auto" and "N/A", give null. */
export function withinOrAuto(number: z.ZodType<number>, min: number, max: number) {
  const message = `must be from ${min} to ${max}`;
  return orUnset(number)
    .transform((value) => (value <= 0 ? null : value))
    .pipe(z.number().min(min, message).max(max, message).meta(typeOf(number)).nullable());
}

/** Like `number`, but words such as "auto" and "N/A" give 0. */
export function orUnset(number: z.ZodType<number>) {
  return z
    .unknown()
    .transform((value) => (typeof value === "string" && meansUnset(value) ? 0 : value))
    .pipe(number);
}

/** Boolean. Words such as "yes" and nonzero numbers are true. Unknown words are false and add a warning. */
export const flag = z
  .unknown()
  .transform((value, context): boolean => {
    if (typeof value === "boolean") return value;
    if (typeof value === "number") return value !== 0;
    if (typeof value !== "string") return refuse(context, "must be true or false", value);
    const word = value.trim().toLowerCase();
    if (NUMERIC.test(word)) return Number(word) !== 0;
    if (TRUE_WORDS.includes(word)) return true;
    const isFalse = FALSE_WORDS.includes(word) || ABSENT_WORDS.includes(word);
    return isFalse ? false : replaceValue(context, "must be true or false", value, false);
  })
  .meta({ type: "boolean" });
export const offByDefault = flag.default(false);

export const text = textUpTo(MAX_TEXT);

export const lyricsText = textUpTo(MAX_LYRICS);

function textUpTo(maxCharacters: number) {
  return z
    .unknown()
    .transform((value, context): string => {
      if (typeof value === "number") return String(value);
      if (typeof value !== "string") return refuse(context, "must be text", value);
      return isTooLong(value, maxCharacters, context) ? z.NEVER : value;
    })
    .meta({ type: "string", maxLength: maxCharacters });
}

export function isTooLong(value: string, maxCharacters: number, context: Context): boolean {
  if (value.length <= maxCharacters) return false;
  refusePart(context, `must be at most ${maxCharacters} characters long and is ${value.length}`, value);
  return true;
}

const SHORT_TEXT = { type: "string", maxLength: MAX_TEXT } as const;

export const requiredText = z
  .unknown()
  .transform((value, context): string => {
    if (value === undefined) return refuse(context, "is required", value);
    if (typeof value !== "string") return refuse(context, "must be text", value);
    return isTooLong(value, MAX_TEXT, context) ? z.NEVER : value.trim();
  })
  .meta(SHORT_TEXT);

export const trimmed = text.transform((value) => value.trim()).meta(SHORT_TEXT);

export const textOrNull = trimmed.transform((value) => value || null).meta(SHORT_TEXT);
export const optionalText = textOrNull.nullable().default(null);

/** Accepts one of the words, in any letter case. */
export function oneOf<const T extends string>(words: readonly [T, ...T[]]) {
  const type = z.enum(words, `must be one of ${words.join(", ")}`);
  return trimmed.transform((value) => value.toLowerCase()).pipe(type);
}

/** Like `oneOf`, but replaces an unknown word with `fallback` and adds a warning. */
export function oneOfOrFallback<const T extends string>(words: readonly T[], fallback: T) {
  return trimmed
    .transform((value, context): T => {
      const word = words.find((known) => known === value.toLowerCase());
      return word ?? replaceValue(context, `must be one of ${words.join(", ")}`, value, fallback);
    })
    .meta({ type: "string", enum: [...words] });
}

/** Text without the brackets around it: forms send the JSON text of a list of numbers. */
export function withoutBrackets(text: string): string {
  const trimmed = text.trim();
  return trimmed.startsWith("[") && trimmed.endsWith("]") ? trimmed.slice(1, -1) : text;
}

/**
 * Returns the elements of a list, of comma-separated text, or of such text in brackets; undefined for nested lists and
 * other values.
 */
export function elementsOf(value: unknown): (string | number)[] | undefined {
  if (typeof value === "string") {
    return withoutBrackets(value)
      .split(",", MAX_ELEMENTS)
      .map((part) => part.trim());
  }
  if (typeof value === "number") return [value];
  return Array.isArray(value) && value.every(isElement) ? value : undefined;
}

export function isElement(value: unknown): value is string | number {
  return typeof value === "string" || typeof value === "number";
}

/** The first element of a list that is neither text nor a number; a value that is no list. */
export function nestedPartOf(value: unknown): unknown {
  return Array.isArray(value) ? value.find((element) => !isElement(element)) : value;
}

/** Shortens a value to one line for error messages. */
export function describe(value: unknown): string {
  if (Array.isArray(value)) return describeList(value);
  if (typeof value === "object" && value !== null) return "an object";
  if (value === undefined) return "nothing";
  if (typeof value !== "string") return String(value);
  const shown = value.length > 60 ? `${value.slice(0, 60)}…` : value;
  return JSON.stringify(shown);
}

function describeList(list: readonly unknown[]): string {
  const isShort = list.length > 0 && list.length <= 8;
  if (!isShort || list.some((element) => typeof element === "object" && element !== null)) return "a list";
  return `[${list.map(describe).join(", ")}]`;
}

/** Returns the first three names and the number of the others, as text. */
export function abbreviateList(names: readonly string[]): string {
  const more = names.length > 3 ? `, and ${names.length - 3} others` : "";
  return names.slice(0, 3).join(", ") + more;
}

/** Returns why a parameter has no effect; null if it has or may have an effect. */
export type Rule<Facts> = (facts: Facts) => string | null;

/** When a parameter of a song has an effect: always in songs and never in analyses, unless these fields say otherwise. */
export interface Uses<Analysis = string, SubmissionFacts = never, SongFacts = never> {
  /** Analyses that use the parameter. */
  analyses?: readonly Analysis[];
  atSubmission?: readonly Rule<SubmissionFacts>[];
  afterSong?: readonly Rule<SongFacts>[];
}

/** Registry of parameter names and uses by zod type; names are in lookup order. */
const wireNames = z.registry<{ names: readonly string[]; uses: Uses }>();

declare const wireName: unique symbol;

/** Attaches a parameter's name to its type. For type checking only: the property does not exist at run time. */
export type Named<Name extends string> = { readonly [wireName]?: Name };

/** Type of a request body with the given parameters. Keys are the parameter names; all are optional. */
export type BodyOf<Shape extends Record<string, z.ZodType>> = {
  [Key in keyof Shape as Shape[Key] extends Named<infer Name> ? Name : never]?: z.output<Shape[Key]>;
};

/**
 * Gives a schema the names under which clients may send it, which are `names` and their camelCase forms, and states when
 * the parameter has an effect.
 */
export function parameter<const Name extends string, S extends z.ZodType>(
  names: Name | readonly [Name, ...string[]],
  schema: S,
  help?: string,
  uses: Uses = {},
): S & Named<Name> {
  const listed = typeof names === "string" ? [names] : names;
  // Clone the type, since parameters with different names may share it.
  const own = schema.clone() as S;
  wireNames.add(own, { names: [...new Set([...listed, ...listed.map(camelCase)])], uses });
  if (help !== undefined) z.globalRegistry.add(own, { description: help });
  return own;
}

function camelCase(name: string): string {
  return name.replace(/[_-]([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

/** Returns the names of a parameter, the primary name first. */
export function namesOf(schema: z.ZodType): readonly [string, ...string[]] {
  return wireNames.get(schema)?.names as readonly [string, ...string[]];
}

export function usesOf(schema: z.ZodType): Uses {
  return wireNames.get(schema)?.uses ?? {};
}

/** Groups of parameters, each with its schema. */
export type Grouped<Groups extends Record<string, z.ZodObject>> = {
  [Group in keyof Groups]: z.output<Groups[Group]>;
};

/** Groups the values of an object; missing ones get their default. */
export function grouped<Groups extends Record<string, z.ZodObject>>(
  groups: Groups,
  values: Fields,
): Grouped<Groups> {
  const own = Object.entries(groups).map(([group, { shape }]) => {
    const entries = Object.entries(shape as Record<string, z.ZodType>);
    return [
      group,
      Object.fromEntries(entries.map(([key, type]) => [key, values[key] ?? type.parse(undefined)])),
    ];
  });
  return Object.fromEntries(own);
}
