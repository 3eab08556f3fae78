/** Reads what the language model wrote (reference/lm.md 4.10). */
import {
  bpmRange,
  durationSecondsRange,
  languages,
  type ThinkFields,
  timeSignatures,
} from "./think-fields.js";
import { withoutUnprintable } from "./yaml.js";

export interface ParsedOutput {
  fields: ThinkFields;
  /** What follows the think block, or null where there is none. */
  lyrics: string | null;
}

/** Reads a whole answer, think block and lyrics, tolerating what unconstrained models write. */
export function parseOutput(text: string): ParsedOutput {
  return { fields: parseThinkFields(thinkText(text)), lyrics: parseLyrics(text) };
}

/** Reads the lines of a think block; unknown fields and values out of range are dropped, the last of a field wins. */
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
    bpm: integerWithin(fieldText("bpm"), bpmRange),
    caption: fieldText("caption"),
    duration: integerWithin(fieldText("duration"), durationSecondsRange),
    keyscale: knownOrUndefined(fieldText("keyscale")),
    language: languages.find((code) => code === fieldText("language")?.toLowerCase()),
    timesignature: timeSignatures.find((beats) => beats === fieldText("timesignature")?.split("/")[0]),
  };
}

/** The reasoning: up to its closing tag, else what precedes the first audio code. */
function thinkText(text: string): string {
  const [beforeEnd, rest] = split(text, "</think>");
  if (rest !== undefined) return split(beforeEnd, "<think>").at(-1) ?? "";
  const reasoning = /<reasoning>([\s\S]*?)<\/reasoning>/.exec(text)?.[1];
  return reasoning ?? split(text, "<|audio_code_")[0];
}

/** Text before and after the first `mark`; the whole text alone where there is none. */
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

/** Undoes YAML quoting. */
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
