/**
 * Request bodies: bytes to the fields of a command. A missing field has its default; a field of the wrong type is
 * refused, because a command must not run on defaults by accident. Numbers may be written as text. Unknown fields are
 * ignored.
 */

import { z } from "zod";
import { BridgeError, FieldError } from "../errors.js";

/** Commands need four; what goes deeper is no command, and reading it costs more the deeper it is. */
const MAX_DEPTH = 32;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPENING = new Set(Buffer.from("[{"));
const CLOSING = new Set(Buffer.from("]}"));

/**
 * An empty body has no fields. Bytes that are no UTF-8 are replaced, not refused: some clients send Latin-1.
 * @throws BridgeError 400 unless the body is a JSON object of at most MAX_DEPTH levels
 */
export function parseBody(bytes: Uint8Array): Body {
  const text = new TextDecoder().decode(bytes);
  if (text.trim() === "") return {};
  if (isDeeperThan(MAX_DEPTH, bytes)) {
    throw new BridgeError(400, `The body is nested deeper than ${MAX_DEPTH} levels`);
  }
  const value = parseJson(text);
  if (!isObject(value)) throw new BridgeError(400, "The body must be a JSON object");
  return value;
}

export function isObject(value: unknown): value is Body {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Counts the brackets outside texts, ahead of any parser. */
function isDeeperThan(maxDepth: number, json: Uint8Array): boolean {
  let depth = 0;
  let isInText = false;
  for (let i = 0; i < json.length; i++) {
    const byte = json[i] as number;
    if (isInText && byte === BACKSLASH) i++;
    else if (byte === QUOTE) isInText = !isInText;
    else if (!isInText && OPENING.has(byte) && ++depth > maxDepth) return true;
    else if (!isInText && CLOSING.has(byte)) depth--;
  }
  return false;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new BridgeError(400, `The body is not valid JSON: ${(error as Error).message}`);
  }
}

export type Body = Readonly<Record<string, unknown>>;

/** Every digit can match in one way only, so that a megabyte of them is judged in one pass. */
const NUMBER_TEXT = /^\s*[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?\s*$/i;
/** The city keeps names for ever, and answers and messages repeat them. */
const MAX_TEXT_CHARACTERS = 1000;
const MAX_SHOWN_CHARACTERS = 80;

export const flag = (fallback: boolean) => z.boolean("must be true or false").default(fallback);
export const text = (fallback: string) =>
  z
    .string("must be text")
    .max(MAX_TEXT_CHARACTERS, `must have at most ${MAX_TEXT_CHARACTERS} characters`)
    .default(fallback);

const plainNumber = z.preprocess(fromText, z.number("must be a number"));
export const number = (fallback: number) => plainNumber.default(fallback);
export const optionalNumber = plainNumber.nullable().default(null);

/** A missing axis is 0; the ground's own height replaces `y`. */
export const point = z
  .object({ x: number(0), y: number(0), z: number(0) }, "must be an object with x and z")
  .default({ x: 0, y: 0, z: 0 });

function fromText(value: unknown): unknown {
  return typeof value === "string" && NUMBER_TEXT.test(value) ? Number(value) : value;
}

/** @throws FieldError naming the first field at fault and its value */
export function parseFields<S extends z.ZodType>(schema: S, body: Body): z.output<S> {
  const result = schema.safeParse(body);
  if (result.success) return result.data;
  const { path, message } = result.error.issues[0] as z.core.$ZodIssue;
  const value = path.reduce<unknown>((object, key) => (object as Record<PropertyKey, unknown>)[key], body);
  throw new FieldError(`${path.join(".")} ${message}, not ${shorten(JSON.stringify(value))}`);
}

function shorten(value: string): string {
  return value.length > MAX_SHOWN_CHARACTERS ? `${value.slice(0, MAX_SHOWN_CHARACTERS - 3)}...` : value;
}

/** A field for a person to read, as it was sent unless it is long: in what the overlay says. */
export function shown(value: unknown, whenAbsent: string): string {
  const isPlain = typeof value === "string" || typeof value === "number" || typeof value === "boolean";
  return isPlain && value !== "" ? shorten(String(value)) : whenAbsent;
}
