/** Parses JSON sent by clients, and limits its depth and size. */
import { endOfString, measureJson } from "../../http/json-scan.js";
import { describe } from "../../parameters.js";
import { RequestError } from "../errors.js";

/** Maximum nesting depth; requests nest three levels deep. The limit prevents a stack overflow in recursive code. */
const MAX_DEPTH = 64;
/** Maximum number of values. The largest request has 8 × 3000 audio codes, which parse in milliseconds. */
const MAX_VALUES = 30_000;

const QUOTE = 0x22;
const OPENING_BRACKET = 0x5b;
const CLOSING_BRACKET = 0x5d;
const OPENING_BRACE = 0x7b;
const CLOSING_BRACE = 0x7d;
const DIGIT_0 = 0x30;
const DIGIT_9 = 0x39;

/** Matches an integer only if neither a fraction nor an exponent follows. */
const INTEGER = /\d+(?=\s*(?:[,\]}]|$))/y;
const MAX_SAFE_DIGITS = 15;
/** A string before a colon is a name. */
const NAME_ENDS = /\s*:/y;

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
  const value = JSON.parse(quoteUnsafeIntegers(text));
  const repeated = repeatedName(text);
  if (repeated !== null) throw new RequestError(`${name} holds ${describe(repeated)} more than once`);
  return value;
}

/** First name that an object of valid JSON holds twice: JSON.parse would silently take the last value. */
function repeatedName(text: string): string | null {
  /** Names of each open object; null for an open list. */
  const open: (Set<string> | null)[] = [];
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === OPENING_BRACE) open.push(new Set());
    else if (code === OPENING_BRACKET) open.push(null);
    else if (code === CLOSING_BRACE || code === CLOSING_BRACKET) open.pop();
    if (code !== QUOTE) continue;
    const start = at;
    at = endOfString(text, at);
    NAME_ENDS.lastIndex = at + 1;
    const names = open.at(-1);
    if (!names || !NAME_ENDS.test(text)) continue;
    const name: string = JSON.parse(text.slice(start, at + 1));
    if (names.has(name)) return name;
    names.add(name);
  }
  return null;
}

function quoteUnsafeIntegers(text: string): string {
  let exact = "";
  let copied = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) at = endOfString(text, at);
    if (code < DIGIT_0 || code > DIGIT_9) continue;
    const digits = integerAt(text, at);
    if (digits.length > MAX_SAFE_DIGITS && !Number.isSafeInteger(Number(digits))) {
      exact += `${text.slice(copied, at)}"${digits}"`;
      copied = at + digits.length;
    }
    at += Math.max(0, digits.length - 1);
  }
  return exact + text.slice(copied);
}

/** Returns the digits of the unsigned integer that starts at position `at`, or "". */
function integerAt(text: string, at: number): string {
  if (/[\d.+\-eE]/.test(text[at - 1] ?? "") || text[at] === "0") return "";
  INTEGER.lastIndex = at;
  return INTEGER.exec(text)?.[0] ?? "";
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
