/**
 * Parses bodies and queries of requests.
 *
 * Bodies: a missing field gets its default. A field of a wrong type is rejected, because a command must not run on
 * defaults by accident; numbers may be strings. Unknown fields are ignored, but the response names them.
 *
 * Queries: a value that does not parse counts as missing. Endpoints clamp numbers.
 */

import { z } from "zod";
import { HttpError } from "../../http/http-error.js";
import { measureJson } from "../../http/json-scan.js";
import { type Fields, isObject, NUMERIC } from "../../parameters.js";
import { RefusedError } from "../refusal.js";

export type Body = Fields;

/** Maximum nesting depth of a body. Commands need four levels. Parsing very deep bodies is costly. */
const MAX_DEPTH = 32;

/**
 * An empty body has no fields. Invalid UTF-8 is replaced, not refused, because some clients send Latin-1.
 * @throws HttpError 400 unless the body is a JSON object of at most MAX_DEPTH levels
 */
export function parseBody(bytes: Uint8Array): Body {
  const text = new TextDecoder().decode(bytes);
  if (text.trim() === "") return {};
  if (measureJson(text).depth > MAX_DEPTH) {
    throw new HttpError(400, `The body is nested deeper than ${MAX_DEPTH} levels`);
  }
  const value = parseJson(text);
  if (!isObject(value)) throw new HttpError(400, "The body must be a JSON object");
  return value;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new HttpError(400, `The body is not valid JSON: ${(error as Error).message}`);
  }
}

/** Maximum length of texts. Names are limited because they are saved, and repeated in responses and messages. */
const MAX_TEXT_CHARACTERS = 1000;
const MAX_SHOWN_CHARACTERS = 80;

export const flag = (fallback: boolean) => z.boolean("must be true or false").default(fallback);
export const text = (fallback: string) =>
  z
    .string("must be text")
    .max(MAX_TEXT_CHARACTERS, `must have at most ${MAX_TEXT_CHARACTERS} characters`)
    .default(fallback);

const plainNumber = z.preprocess(fromText, z.number("must be a number")).meta({ type: "number" });
export const number = (fallback: number) => plainNumber.default(fallback);
export const optionalNumber = plainNumber.nullable().default(null);

const axes = { x: number(0), y: number(0), z: number(0) };
const withoutHeight = ({ x, z }: { x: number; z: number }) => ({ x, z });
/** A missing axis is 0. */
export const point = z.object(axes, "must be an object with x and z").default({ x: 0, y: 0, z: 0 });
/** A height is accepted but ignored; the ground height is used. */
export const optionalGroundPoint = z.object(axes, "must be a place").transform(withoutHeight);
export const groundPoint = point.transform(withoutHeight);

function fromText(value: unknown): unknown {
  return typeof value === "string" && NUMERIC.test(value.trim()) ? Number(value) : value;
}

/** @throws RefusedError naming the first field at fault and its value */
export function parseFields<S extends z.ZodType>(schema: S, body: Body): z.output<S> {
  const result = schema.safeParse(body);
  if (result.success) return result.data;
  const { path, message } = result.error.issues[0] as z.core.$ZodIssue;
  const value = path.reduce<unknown>((object, key) => (object as Record<PropertyKey, unknown>)[key], body);
  throw new RefusedError(`${path.join(".")} ${message}, not ${shorten(asSent(value))}`);
}

/** Text of a value for error messages. JSON.stringify would print null for Infinity, the parsed value of 1e999. */
function asSent(value: unknown): string {
  if (value === undefined) return "nothing";
  return typeof value === "number" ? String(value) : JSON.stringify(value);
}

const MAX_WARNINGS = 20;

/** Dotted names of the fields in a body that the schema does not define; at most 20. */
export function unknownFields(schema: z.ZodObject, body: Body): string[] {
  return findUnknownFields(schema, body, "").slice(0, MAX_WARNINGS);
}

function findUnknownFields(schema: unknown, value: unknown, path: string): string[] {
  const object = objectIn(schema);
  if (!object || !isObject(value)) return [];
  return Object.entries(value).flatMap(([key, part]) =>
    Object.hasOwn(object.shape, key)
      ? findUnknownFields(object.shape[key], part, `${path}${key}.`)
      : [shorten(path + key)],
  );
}

/** Object schema inside a field's schema, which may be optional or a union. Null if there is none. */
function objectIn(schema: unknown): z.ZodObject | null {
  if (schema instanceof z.ZodObject) return schema;
  if (schema instanceof z.ZodDefault || schema instanceof z.ZodNullable) return objectIn(schema.unwrap());
  if (schema instanceof z.ZodPipe) return objectIn(schema.in);
  if (schema instanceof z.ZodUnion)
    return schema.options.map(objectIn).find((object) => object !== null) ?? null;
  return null;
}

export function shorten(value: string, maxCharacters = MAX_SHOWN_CHARACTERS): string {
  return value.length > maxCharacters ? `${value.slice(0, maxCharacters - 3)}...` : value;
}

/** Text of a field for an overlay line, shortened if it is long. */
export function fieldText(value: unknown, whenAbsent: string): string {
  const isPlain = typeof value === "string" || typeof value === "number" || typeof value === "boolean";
  return isPlain && value !== "" ? shorten(String(value)) : whenAbsent;
}

const INTEGER = /^[+-]?\d+$/;
const DECIMAL = /^[+-]?(\d+(\.\d*)?|\.\d+)$/;

export class Query {
  readonly #pairs: readonly (readonly [key: string, value: string])[];

  /** @param url unparsed path and query; parameters without exactly one `=` are ignored */
  constructor(url: string) {
    const [, search = ""] = url.split(/\?(.*)/s);
    this.#pairs = search.split("&").flatMap((pair) => {
      const [key, value, ...rest] = pair.split("=");
      return key === undefined || value === undefined || rest.length > 0 ? [] : [[key, value] as const];
    });
  }

  text(key: string): string {
    return this.#values(key)[0] ?? "";
  }

  integer(key: string, fallback: number): number {
    return this.#parsed(key, INTEGER, fallback);
  }

  decimal(key: string, fallback: number): number {
    return this.#parsed(key, DECIMAL, fallback);
  }

  /** Only the exact text `true` is true. */
  flag(key: string, fallback: boolean): boolean {
    const value = this.#values(key)[0];
    return value === undefined ? fallback : value === "true";
  }

  #parsed(key: string, pattern: RegExp, fallback: number): number {
    const value = this.#values(key).find((text) => pattern.test(text) && Number.isFinite(Number(text)));
    return value === undefined ? fallback : Number(value);
  }

  #values(key: string): string[] {
    return this.#pairs.filter(([name]) => name === key).map(([, value]) => decode(value));
  }
}

/** Text with an invalid encoding is left unchanged. */
function decode(value: string): string {
  const spaced = value.replaceAll("+", " ");
  try {
    return decodeURIComponent(spaced);
  } catch {
    return spaced;
  }
}
