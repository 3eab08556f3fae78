/**
 * The YAML of a think block, written as PyYAML writes it, for the model was trained on that
 * (reference/lm.md 4.4): block style, sorted keys, width 80, Unicode kept.
 */
import type { ThinkFields } from "./think-fields.js";

/** A single space becomes a line break where more code points than this stand before it. */
const foldingWidth = 80;
const indentation = "  ";

/** One `key: value` a field, no final line break. */
export function serializeThinkFields(fields: ThinkFields): string {
  return Object.entries(fields)
    .filter((entry): entry is [string, string | number] => entry[1] !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, value]) => `${key}: ${serializeScalar(value, key.length + 2)}`)
    .join("\n");
}

/** @param column where the value begins on its line */
function serializeScalar(value: string | number, column: number): string {
  if (typeof value === "number") return String(value);
  const text = withoutUnprintable(value);
  // The training data's own serialiser turned strings of digits into numbers.
  if (/^(?:0|[1-9][0-9]*)$/.test(text)) return text;
  return needsQuotes(text) ? `'${fold(text.replaceAll("'", "''"), column + 1)}'` : fold(text, column);
}

/** What YAML could only write in double quotes, as a space: line breaks, control characters, noncharacters. */
export function withoutUnprintable(text: string): string {
  return text.replace(
    /[^\u0020-\u007e\u00a0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\u{10000}-\u{10fffe}]+/gu,
    " ",
  );
}

function needsQuotes(text: string): boolean {
  return (
    text === "" ||
    text.startsWith(" ") ||
    text.endsWith(" ") ||
    /^[#,[\]{}&*!|>'"%@`]/.test(text) ||
    /^[-?:](?: |$)/.test(text) ||
    /^(?:---|\.\.\.)/.test(text) ||
    /:(?: |$)/.test(text) ||
    text.includes(" #") ||
    nonStrings.some((pattern) => pattern.test(text))
  );
}

/** What YAML 1.1 reads as something other than a string. */
const nonStrings = [
  /^(?:~|=|<<|null|Null|NULL)$/,
  /^(?:yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF)$/,
  // Integers: binary, octal, hexadecimal, decimal, base 60.
  /^[-+]?(?:0b[01_]+|0[0-7_]*|0x[0-9a-fA-F_]+|[1-9][0-9_]*(?::[0-5]?[0-9])*)$/,
  // Floats have a point; an exponent has a sign.
  /^[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?$/,
  /^\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?$/,
  /^[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*$/,
  /^(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$/,
  // Dates and times.
  /^\d{4}-\d{2}-\d{2}$/,
  /^\d{4}-\d{1,2}-\d{1,2}(?:[Tt]| +)\d{1,2}:\d{2}:\d{2}(?:\.\d*)?(?: *(?:Z|[-+]\d{1,2}(?::?\d{2})?))?$/,
];

/** Breaks at single spaces only, without look-ahead: a line may be longer than the width. */
function fold(text: string, startColumn: number): string {
  const [first = "", ...rest] = text.split(" ");
  let column = startColumn + codePoints(first);
  let folded = first;
  let previous = first;
  for (const word of rest) {
    const breaks = column > foldingWidth && previous !== "" && word !== "";
    folded += (breaks ? `\n${indentation}` : " ") + word;
    column = (breaks ? indentation.length : column + 1) + codePoints(word);
    previous = word;
  }
  return folded;
}

function codePoints(text: string): number {
  return [...text].length;
}
