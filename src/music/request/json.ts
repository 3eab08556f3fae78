/** JSON that a client wrote, parsed only where it is of a shape that costs little. */
import { RequestError } from "../errors.js";

/** Requests nest three deep; code that walks a value recursively must not run out of stack. */
const MAX_DEPTH = 64;
/** The longest request holds codes for eight items, 3000 each. Parsing as many takes milliseconds. */
const MAX_VALUES = 30_000;

const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;
const OPENING = [0x5b, 0x7b];
const CLOSING = [0x5d, 0x7d];

/**
 * @param what the text is to the client, for errors
 * @throws SyntaxError where the text is no JSON, RequestError where it nests too deep or holds too many values
 */
export function parseClientJson(text: string, what: string): unknown {
  let depth = 0;
  let values = 1;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      at = endOfString(text, at);
    } else if (code === COMMA) {
      values++;
    } else if (OPENING.includes(code)) {
      values++;
      depth++;
      if (depth > MAX_DEPTH) throw new RequestError(`${what} must nest at most ${MAX_DEPTH} levels deep`);
    } else if (CLOSING.includes(code)) {
      depth--;
    }
  }
  if (values > MAX_VALUES) throw new RequestError(`${what} must hold at most ${MAX_VALUES} values`);
  return JSON.parse(text);
}

/** Where the quote stands that ends the string begun at `start`; the end of the text if none does. */
function endOfString(text: string, start: number): number {
  for (let at = text.indexOf('"', start + 1); at >= 0; at = text.indexOf('"', at + 1)) {
    let escapes = 0;
    while (text.charCodeAt(at - escapes - 1) === BACKSLASH) escapes++;
    if (escapes % 2 === 0) return at;
  }
  return text.length;
}

/** As `parseClientJson`, but undefined where the text is no JSON. */
export function readClientJson(text: string, what: string): unknown {
  try {
    return parseClientJson(text, what);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** A body as it came: names to whatever JSON or a form gave. */
export type Fields = Readonly<Record<string, unknown>>;

export function isObject(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
