/**
 * Serialises and parses think blocks. The writer matches PyYAML, whose output the model was trained on (block style,
 * sorted keys, width 80, Unicode kept); the parser is tolerant.
 */
import {
  BPM_RANGE,
  DURATION_SECONDS_RANGE,
  LANGUAGES,
  type ThinkFields,
  TIME_SIGNATURES,
} from "./metadata.js";

/** Lines break at the first single space after this many code points. */
const FOLDING_WIDTH = 80;
const INDENTATION = "  ";

/** One `key: value` line per field, without a final line break. */
export function serializeThinkFields(fields: ThinkFields): string {
  return Object.entries(fields)
    .filter((entry): entry is [string, string | number] => entry[1] !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, value]) => `${key}: ${serializeScalar(value, key.length + 2)}`)
    .join("\n");
}

/** @param column start column of the value */
function serializeScalar(value: string | number, column: number): string {
  if (typeof value === "number") return String(value);
  const text = withoutUnprintable(value);
  // Digits stay unquoted, because the training data's serialiser turned digit strings into numbers.
  if (/^(?:0|[1-9][0-9]*)$/.test(text)) return text;
  return needsQuotes(text) ? `'${fold(text.replaceAll("'", "''"), column + 1)}'` : fold(text, column);
}

/** Replaces characters that YAML allows only in double quotes. Each run of such characters becomes one space. */
function withoutUnprintable(text: string): string {
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
    NON_STRINGS.some((pattern) => pattern.test(text))
  );
}

/** Plain scalars that YAML 1.1 does not read as strings. */
const NON_STRINGS = [
  /^(?:~|=|<<|null|Null|NULL)$/,
  /^(?:yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF)$/,
  // Integers: binary, octal, hexadecimal, decimal, base 60.
  /^[-+]?(?:0b[01_]+|0[0-7_]*|0x[0-9a-fA-F_]+|[1-9][0-9_]*(?::[0-5]?[0-9])*)$/,
  // Floats need a point; exponents need a sign.
  /^[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?$/,
  /^\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?$/,
  /^[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*$/,
  /^(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$/,
  // Dates and times.
  /^\d{4}-\d{2}-\d{2}$/,
  /^\d{4}-\d{1,2}-\d{1,2}(?:[Tt]| +)\d{1,2}:\d{2}:\d{2}(?:\.\d*)?(?: *(?:Z|[-+]\d{1,2}(?::?\d{2})?))?$/,
];

/** Folds a long text as PyYAML does: a line breaks at the first single space beyond the width. */
function fold(text: string, startColumn: number): string {
  const [first = "", ...rest] = text.split(" ");
  let column = startColumn + codePoints(first);
  let folded = first;
  let previous = first;
  for (const word of rest) {
    const breaks = column > FOLDING_WIDTH && previous !== "" && word !== "";
    folded += (breaks ? `\n${INDENTATION}` : " ") + word;
    column = (breaks ? INDENTATION.length : column + 1) + codePoints(word);
    previous = word;
  }
  return folded;
}

function codePoints(text: string): number {
  return [...text].length;
}

export interface ParsedOutput {
  fields: ThinkFields;
  /** Text after the think block; null if empty. */
  lyrics: string | null;
}

/** Parses an answer (think block and lyrics), tolerating unconstrained output. */
export function parseOutput(text: string): ParsedOutput {
  return { fields: parseThinkFields(thinkText(text)), lyrics: parseLyrics(text) };
}

/** Parses the lines of a think block. Unknown fields and invalid values are dropped; the last value of a field wins. */
export function parseThinkFields(text: string): ThinkFields {
  const lines = new Map<string, string[]>();
  let current: string[] = [];
  for (const line of text.split(/\r?\n/)) {
    if (line.startsWith("<")) continue;
    const [, key, value = ""] = /^([^\s:][^:]*):(.*)$/.exec(line) ?? [];
    if (key !== undefined) {
      current = [value];
      lines.set(key.trim().toLowerCase(), current);
    } else if (/^[ \t]/.test(line)) {
      current.push(line);
    }
  }
  const fieldText = (key: string): string | undefined => {
    const value = unquote(
      (lines.get(key) ?? [])
        .map((line) => line.trim())
        .filter(Boolean)
        .join(" "),
    );
    return withoutUnprintable(value).trim() || undefined;
  };
  return {
    bpm: integerWithin(fieldText("bpm"), BPM_RANGE),
    caption: fieldText("caption"),
    duration: integerWithin(fieldText("duration"), DURATION_SECONDS_RANGE),
    keyscale: knownOrUndefined(fieldText("keyscale")),
    language: LANGUAGES.find((code) => code === fieldText("language")?.toLowerCase()),
    timesignature: TIME_SIGNATURES.find((beats) => beats === fieldText("timesignature")?.split("/")[0]),
  };
}

/**
 * Text of the think block. If its closing tag is missing, the text of the reasoning tag, or else all text before the
 * audio codes.
 */
function thinkText(text: string): string {
  const [beforeEnd, rest] = split(text, "</think>");
  if (rest !== undefined) return split(beforeEnd, "<think>").at(-1) ?? "";
  const reasoning = /<reasoning>([\s\S]*?)<\/reasoning>/.exec(text)?.[1];
  return reasoning ?? split(text, "<|audio_code_")[0];
}

/** Splits the text at the first `mark`. Without a `mark` the only part is the whole text. */
function split(text: string, mark: string): [before: string, after?: string] {
  const at = text.indexOf(mark);
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + mark.length)];
}

function parseLyrics(text: string): string | null {
  const [, afterThinking] = split(text, "</think>");
  if (afterThinking === undefined) return null;
  const body = afterThinking
    .trim()
    .replace(/<\|im_end\|>$/, "")
    .replace(/^# Languages?\s*\n[\s\S]{0,64}?(?=# Lyric)/i, "");
  return body.replace(/^#\s*Lyrics?[^\S\n]*(?:\n|$)/i, "").trim();
}

function unquote(text: string): string {
  if (text.length < 2) return text;
  if (text.startsWith("'") && text.endsWith("'")) return text.slice(1, -1).replaceAll("''", "'");
  if (text.startsWith('"') && text.endsWith('"')) {
    return text.slice(1, -1).replace(/\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|(.))/g, unescapeMatch);
  }
  return text;
}

function unescapeMatch(_match: string, hex2?: string, hex4?: string, letter?: string): string {
  const hex = hex2 ?? hex4;
  if (hex !== undefined) return String.fromCharCode(Number.parseInt(hex, 16));
  return { n: "\n", t: "\t", r: "\r", "0": "\0" }[letter ?? ""] ?? letter ?? "";
}

function integerWithin(text: string | undefined, range: { min: number; max: number }): number | undefined {
  if (text === undefined || !/^\d+$/.test(text)) return undefined;
  const value = Number(text);
  return value >= range.min && value <= range.max ? value : undefined;
}

function knownOrUndefined(text: string | undefined): string | undefined {
  return text === undefined || text.toUpperCase() === "N/A" ? undefined : text;
}
