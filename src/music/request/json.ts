/** Parses JSON sent by clients, and limits its depth and size. */
import { measureJson } from "../../http/json-scan.js";
import { describe } from "../../parameters.js";
import { RequestError } from "../errors.js";

/** Maximum nesting depth; requests nest three levels deep. The limit prevents a stack overflow in recursive code. */
const MAX_DEPTH = 64;
/** Maximum number of values. The largest request has 8 × 3000 audio codes, which parse in milliseconds. */
const MAX_VALUES = 30_000;

/** A string, with the colon after a name; a bracket; or an integer of 16 digits and more, without sign, fraction and exponent. */
const TOKENS = /("[^"\\]*(?:\\.[^"\\]*)*"?)(\s*:)?|[[\]{}]|(?<![\d.+\-eE])[1-9]\d{15,}(?=\s*(?:[,\]}]|$))/gs;

/**
 * Parses JSON. Integers beyond the safe range become strings of digits, as in form fields.
 * @param name what the text is, for error messages
 * @throws SyntaxError for invalid JSON, RequestError for JSON that is nested too deep, has too many values, or has an
 * object with a repeated name
 */
export function parseClientJson(text: string, name: string): unknown {
  const { depth, values } = measureJson(text);
  if (depth > MAX_DEPTH) throw new RequestError(`${name} must nest at most ${MAX_DEPTH} levels deep`);
  if (values > MAX_VALUES) throw new RequestError(`${name} must hold at most ${MAX_VALUES} values`);
  /** Names of each open object; null for an open list. */
  const open: (Set<string> | null)[] = [];
  /** First name that an object holds twice: JSON.parse would silently take the last value. */
  let repeated: string | undefined;
  const exact = text.replace(TOKENS, (token, quoted?: string, colon?: string) => {
    if (colon !== undefined) {
      const name: string = JSON.parse(quoted as string);
      if (open.at(-1)?.has(name)) repeated ??= name;
      open.at(-1)?.add(name);
    } else if (/\d/.test(token[0] as string)) {
      return Number.isSafeInteger(Number(token)) ? token : `"${token}"`;
    } else if (token === "{") open.push(new Set());
    else if (token === "[") open.push(null);
    else if (quoted === undefined) open.pop();
    return token;
  });
  const value = JSON.parse(exact);
  if (repeated !== undefined) throw new RequestError(`${name} holds ${describe(repeated)} more than once`);
  return value;
}

/** Like `parseClientJson`, but returns undefined for invalid JSON. */
export function tryParseClientJson(text: string, name: string): unknown {
  try {
    return parseClientJson(text, name);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
