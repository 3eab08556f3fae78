/**
 * Zod types of single request values, and the names that a client may give a parameter. What JSON Schema cannot be told of
 * a transform, its `meta` says. Forms send everything as text, so numbers and booleans are read from text as well. A rule that a value may break without harm reports an issue made by `instead`:
 * the parser then goes on with the value named there and warns.
 */
import { z } from "zod";

/** A decimal number. No two parts of the pattern can match the same digits, or a long text would take for ever. */
export const NUMERIC = /^[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?$/i;

/** More than any list may hold; the rest of a text is not looked at. */
const MAX_ELEMENTS = 1000;

/** Carried by issues that need no refusal; `use` undefined stands for the default. */
export interface Remedy {
  use: unknown;
  /** The range policy decides whether the value is refused after all. */
  isRange?: boolean;
}

type Context = z.core.$RefinementCtx;

/** Reports that the value cannot be used at all. */
export function refuse(context: Context, message: string, input: unknown): never {
  context.issues.push({ code: "custom", message, input });
  return z.NEVER;
}

/** Reports that the value `message`, and which one takes its place. */
export function instead(context: Context, message: string, input: unknown, use: unknown): never {
  context.issues.push({ code: "custom", message, input, params: { use } satisfies Remedy });
  return z.NEVER;
}

/** Characters of texts such as captions, names and paths: no path is longer, and no model reads half as many. */
const MAX_TEXT = 4096;
/** Characters of lyrics: ten times those of a long song, four times what a model reads. */
const MAX_LYRICS = 32_768;

/** As `instead`, for a number out of its range. */
export function outOfRange(context: Context, message: string, input: unknown, use: unknown): never {
  context.issues.push({ code: "custom", message, input, params: { use, isRange: true } satisfies Remedy });
  return z.NEVER;
}

const NOT_FINITE = /^[+-]?(nan|inf|infinity)$/i;
const TRUE_WORDS = new Set(["true", "yes", "y", "on"]);
const FALSE_WORDS = new Set(["false", "no", "n", "off", "none", "null"]);

/** A finite number, or text that spells one. */
export const finiteNumber = z
  .unknown()
  .transform((value, context): number => {
    const read = readNumber(value);
    if (read === undefined) return refuse(context, "must be a number", value);
    return Number.isFinite(read) ? unsigned(read) : refuse(context, "must be a finite number", value);
  })
  .meta({ type: "number" });

/** As `finiteNumber`, and fractions are refused. */
export const strictInteger = finiteNumber
  .pipe(z.number().int("must be an integer"))
  .meta({ type: "integer" });

/** Fractions are cut off. */
export const integer = finiteNumber
  .transform((value) => unsigned(Math.trunc(value)))
  .meta({ type: "integer" });

/** JSON has no negative zero, so a stored request must hold none. */
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

/** A number that the interface's range binds: outside it is refused, or clamped by policy. */
export function within(number: z.ZodType<number>, min: number, max: number) {
  const message = `must be from ${min} to ${max}`;
  return number.pipe(z.number().min(min, message).max(max, message).meta(typeOf(number)));
}

/** A pipe shows its end: that it is for integers only its beginning says. */
function typeOf(number: z.ZodType<number>): { type?: unknown } {
  return { type: "number", ...z.globalRegistry.get(number) };
}

/** As `within`, but numbers at or below 0 stand for "decide it yourself" and give null. */
export function withinOrAuto(number: z.ZodType<number>, min: number, max: number) {
  const message = `must be from ${min} to ${max}`;
  return number
    .transform((value) => (value <= 0 ? null : value))
    .pipe(z.number().min(min, message).max(max, message).meta(typeOf(number)).nullable());
}

/** True words and numbers other than 0 are true; text that is no such word is false, with a warning. */
export const flag = z
  .unknown()
  .transform((value, context): boolean => {
    if (typeof value === "boolean") return value;
    if (typeof value === "number") return value !== 0;
    if (typeof value !== "string") return refuse(context, "must be true or false", value);
    const word = value.trim().toLowerCase();
    if (NUMERIC.test(word)) return Number(word) !== 0;
    if (TRUE_WORDS.has(word)) return true;
    return FALSE_WORDS.has(word) ? false : instead(context, "must be true or false", value, false);
  })
  .meta({ type: "boolean" });

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

/** Reports text of more than `maxCharacters`. */
export function isTooLong(value: string, maxCharacters: number, context: Context): boolean {
  if (value.length <= maxCharacters) return false;
  refuse(context, `must be at most ${maxCharacters} characters long and is ${value.length}`, value);
  return true;
}

const SHORT_TEXT = { type: "string", maxLength: MAX_TEXT } as const;

/** Text that the client must give. */
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

/** One of the words, in any case. */
export function oneOf<const T extends string>(words: readonly [T, ...T[]]) {
  const type = z.enum(words, `must be one of ${words.join(", ")}`);
  return trimmed.transform((value) => value.toLowerCase()).pipe(type);
}

/** As `oneOf`; any other word means `fallback`. */
export function oneOfElse<const T extends string>(words: readonly T[], fallback: T) {
  return trimmed
    .transform((value, context): T => {
      const word = words.find((known) => known === value.toLowerCase());
      return word ?? instead(context, `must be one of ${words.join(", ")}`, value, fallback);
    })
    .meta({ type: "string", enum: [...words] });
}

/** Elements of a list, or of comma-separated text; undefined where the value is neither, or nests. */
export function elementsOf(value: unknown): (string | number)[] | undefined {
  if (typeof value === "string") return value.split(",", MAX_ELEMENTS).map((part) => part.trim());
  if (typeof value === "number") return [value];
  if (!Array.isArray(value)) return undefined;
  return value.every((element) => typeof element === "string" || typeof element === "number")
    ? value
    : undefined;
}

/** A value as an error message shows it: short, on one line, never the whole of a long one. */
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

/** The first few of many names. */
export function firstOf(names: readonly string[]): string {
  const more = names.length > 3 ? `, and ${names.length - 3} others` : "";
  return names.slice(0, 3).join(", ") + more;
}

/** Names that a client may give a parameter, in the order in which they are looked up. */
const wireNames = z.registry<{ names: readonly string[] }>();

declare const wireName: unique symbol;

/** A type that knows, for the compiler alone, what clients call its parameter. */
export type Named<Name extends string> = { readonly [wireName]?: Name };

/** A body of these parameters under the names that clients give them; what has a default may be left out. */
export type BodyOf<Shape extends Record<string, z.ZodType>> = {
  [Key in keyof Shape as Shape[Key] extends Named<infer Name> ? Name : never]?: z.output<Shape[Key]>;
};

/**
 * Gives a parameter its names: those listed, then the camelCase form of each.
 * @param help what it does, for people
 */
export function parameter<const Name extends string, S extends z.ZodType>(
  names: Name | readonly [Name, ...string[]],
  schema: S,
  help?: string,
): S & Named<Name> {
  const listed = typeof names === "string" ? [names] : names;
  // A type may stand for several parameters, each with names of its own.
  const own = schema.clone() as S;
  wireNames.add(own, { names: [...new Set([...listed, ...listed.map(camelCase)])] });
  if (help !== undefined) z.globalRegistry.add(own, { description: help });
  return own;
}

function camelCase(name: string): string {
  return name.replace(/[_-]([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

/** The names of a parameter of the schema, its own name first. */
export function namesOf(schema: z.ZodType): readonly [string, ...string[]] {
  return wireNames.get(schema)?.names as readonly [string, ...string[]];
}
