/** Parses JSON sent by clients, and limits its depth and size. */
import { endOfString, measureJson } from "../../http/json-scan.js";
import { RequestError } from "../errors.js";

/** Maximum nesting depth; requests nest three levels deep. The limit prevents a stack overflow in recursive code. */
const MAX_DEPTH = 64;
/** Maximum number of values. The largest request has 8 × 3000 audio codes, which parse in milliseconds. */
const MAX_VALUES = 30_000;

const QUOTE = 0x22;
const DIGIT_0 = 0x30;
const DIGIT_9 = 0x39;

/** Matches an integer only if neither a fraction nor an exponent follows. */
const INTEGER = /\d+(?=\s*(?:[,\]}]|$))/y;
const MAX_SAFE_DIGITS = 15;

/**
 * Parses JSON. Integers beyond the safe range become strings of digits, as in form fields.
 * @param name what the text is, for error messages
 * @throws SyntaxError for invalid JSON, RequestError for JSON that is nested too deep or has too many values
 */
export function parseClientJson(text: string, name: string): unknown {
  const { depth, values } = measureJson(text);
  if (depth > MAX_DEPTH) throw new RequestError(`${name} must nest at most ${MAX_DEPTH} levels deep`);
  if (values > MAX_VALUES) throw new RequestError(`${name} must hold at most ${MAX_VALUES} values`);
  return JSON.parse(quoteUnsafeIntegers(text));
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
