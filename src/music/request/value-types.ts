/** Zod types of single parameters of POST /release_task. */
import { z } from "zod";
import { STEMS, TEXT_TO_MUSIC_INSTRUCTION } from "../../engine/conditioning.js";
import { canonicalLanguage, UNKNOWN_LANGUAGE, withAsciiAccidentals } from "../../engine/metadata.js";
import type { Seed } from "../../engine/types.js";
import {
  elementsOf,
  finiteNumber,
  integer,
  isElement,
  isObject,
  isTooLong,
  lyricsText,
  meansUnset,
  NUMERIC,
  nestedPartOf,
  orUnset,
  refusePart,
  replaceValue,
  textOrNull,
  trimmed,
  within,
} from "../../parameters.js";
import { MAX_SEED, parseSeed, type RequestedSeeds } from "../song/seeds.js";
import { withoutTimes } from "../words/lrc.js";
import { tryParseClientJson } from "./json.js";

/** Maximum number of seeds. The largest task makes one song for each stem. */
const MAX_SEEDS = STEMS.length;
const MAX_TEXTS = 64;
const MAX_LISTED_TEXT = 256;

/** Seeds, one per song: `42`, `"42,123"` or `[42, 123]`. -1 and blank mean random, as does a missing seed. */
export const requestedSeeds = z
  .unknown()
  .transform((value, context): RequestedSeeds => {
    const elements = elementsOf(value)?.slice(0, MAX_SEEDS).map(blankIfUnset);
    if (elements?.length === 0) return [];
    if (elements?.some(isSeed) !== true) {
      const wrong = elements === undefined ? nestedPartOf(value) : elements[0];
      return refusePart(context, "must be an integer or a list of integers", wrong);
    }
    const seeds = elements.map((element) => parseSeed(element));
    const used = seeds.map((seed) => seed ?? null);
    if (used.every((seed) => seed === null) && seeds.every((seed) => seed === null)) return [];
    const isLiteral = (seed: Seed | null | undefined, i: number) =>
      seed === null || typeof seed === "string" || seed === Number(elements[i]);
    if (seeds.every(isLiteral)) return used;
    const isTooLarge = seeds.some((seed, i) => seed === undefined && isSeed(elements[i] as string | number));
    const message = `must hold integers from -1 to ${MAX_SEED}`;
    const replacement = used.map((seed) => seed ?? -1);
    return replaceValue(context, message, value, replacement, isTooLarge);
  })
  .meta({
    type: ["integer", "array", "string"],
    items: { type: ["integer", "string", "null"], minimum: -1 },
  });

/** Words such as "random", "auto" and "N/A" mean a random seed. */
function blankIfUnset(element: string | number): string | number {
  return typeof element === "string" && (element === "random" || meansUnset(element)) ? "" : element;
}

/** Whether the element is a valid seed; blank is valid and means random. */
function isSeed(element: string | number): boolean {
  const text = String(element).trim();
  return text === "" || NUMERIC.test(text);
}

/** A text, a list of texts, or JSON text of a list; blank texts are dropped. */
export const textList = z
  .unknown()
  .transform((value, context): string[] => {
    const list = readJsonList(value, "a list of texts") ?? (Array.isArray(value) ? value : [value]);
    if (!list.every(isElement)) {
      return refusePart(context, "must be text or a list of texts", nestedPartOf(list));
    }
    if (list.length > MAX_TEXTS)
      return refusePart(context, `must hold at most ${MAX_TEXTS} texts`, list.length);
    const texts = list.map(String);
    if (texts.some((text) => isTooLong(text, MAX_LISTED_TEXT, context))) return z.NEVER;
    return texts.map((text) => text.trim()).filter((text) => text !== "");
  })
  .meta({
    type: ["array", "string"],
    items: { type: "string", maxLength: MAX_LISTED_TEXT },
    maxItems: MAX_TEXTS,
  });

function readJsonList(value: unknown, what: string): unknown[] | undefined {
  if (typeof value !== "string" || !value.trim().startsWith("[")) return undefined;
  return tryParseClientJson(value, what) as unknown[] | undefined;
}

/** Start and end of a repaint window in seconds. `end` is null if the window ends with the source. */
type RepaintWindow = [start: number, end: number | null];

const MAX_WINDOWS = 32;

/** End of a repaint window in seconds; 0 and negative values mean the end of the source. */
export const repaintEnd = orUnset(finiteNumber)
  .transform((end) => (end <= 0 ? null : end))
  .meta({ type: ["number", "null"] })
  .default(null);

/**
 * Repaint windows. Accepted forms: `[[2, 4], [6, 8]]`, its JSON text, a list of texts such as `2,4` or of objects
 * with `start` and `end`, and a single window.
 */
export const repaintWindows = z
  .unknown()
  .transform((value, context): RepaintWindow[] => {
    const list = readJsonList(value, "a list of windows") ?? (Array.isArray(value) ? value : [value]);
    const sent = windowOf(list) === undefined ? list : [list];
    const windows = sent.map(windowOf);
    if (windows.length > MAX_WINDOWS) {
      return refusePart(context, `must hold at most ${MAX_WINDOWS} windows`, windows.length);
    }
    if (windows.every((window) => window !== undefined)) return windows;
    const wrong = sent[windows.indexOf(undefined)];
    return refusePart(
      context,
      "must hold windows such as [10, 20.5]: seconds, the start below the end",
      isObject(wrong) ? [wrong.start, wrong.end] : wrong,
    );
  })
  .meta({
    type: ["array", "string"],
    items: { type: "array", items: { type: ["number", "null"] }, minItems: 2, maxItems: 2 },
    maxItems: MAX_WINDOWS,
  });

function windowOf(value: unknown): RepaintWindow | undefined {
  const ends = isObject(value) ? [value.start, value.end] : Array.isArray(value) ? value : elementsOf(value);
  if (ends?.length !== 2) return undefined;
  const start = finiteNumber.safeParse(ends[0]);
  // 0 is the end of a window before the source.
  const isBefore = start.success && start.data < 0 && ends[1] === 0;
  const end = repaintEnd.safeParse(ends[1] === "" || ends[1] === null ? undefined : ends[1]);
  if (!start.success || !end.success) return undefined;
  if (isBefore) return [start.data, 0];
  return end.data !== null && start.data >= end.data ? undefined : [start.data, end.data];
}

/** Lyrics. Times of LRC files would be sung, so they are taken off. */
export const lyrics = lyricsText
  .transform((words, context): string => {
    const plain = withoutTimes(words);
    return plain === words
      ? words
      : replaceValue(context, "must be without the times of an LRC file", words, plain);
  })
  .meta(z.globalRegistry.get(lyricsText) ?? {});

const TIME_SIGNATURES = new Map(
  ["2", "3", "4", "6"].flatMap((beats) => [
    [beats, beats],
    [beats === "6" ? "6/8" : `${beats}/4`, beats],
  ]),
);

const INT32_MAX = 2 ** 31 - 1;

/** Musical key. `N/A`, which earlier results contain, means unset. */
export const keyScale = trimmed
  .transform((key) => (meansUnset(key) ? "" : withAsciiAccidentals(key)))
  .meta({ type: "string" });

/** Code of a language that is named by a code, a locale or a name. An unknown name stays. */
export const language = trimmed.transform((name) => canonicalLanguage(name) ?? name).meta({ type: "string" });

export const optionalLanguage = language
  .transform((code) => (code !== UNKNOWN_LANGUAGE && meansUnset(code) ? null : code))
  .meta({ type: "string" })
  .nullable()
  .default(null);

export const timeSignature = trimmed
  .transform((value, context): string => {
    const compact = value.normalize("NFKC").replace(/\s|\.0$/g, "");
    if (meansUnset(compact)) return "";
    return (
      TIME_SIGNATURES.get(compact) ?? replaceValue(context, "must be one of 2, 3, 4, 6", value, undefined)
    );
  })
  .meta({ type: "string", enum: ["", "2", "3", "4", "6"] });

/** Top-k limit; 0 and negative values turn it off. */
export const topK = integer
  .transform((count) => Math.min(Math.max(count, 0), INT32_MAX))
  .meta({ type: "integer", minimum: 0 });

/** Top-p limit: 1 or more turns nucleus sampling off; 0 or less means `fallback`. */
export const topP = (fallback: number) =>
  finiteNumber
    .transform((value) => (value <= 0 ? fallback : Math.min(value, 1)))
    .meta({ type: "number", minimum: 0, maximum: 1 });

/** Beyond this range scores may overflow. 0 and negative values are replaced by the default. */
const PENALTIES = { min: 0.01, max: 100 } as const;

export const repetitionPenalty = within(
  finiteNumber.transform((penalty, context) =>
    penalty > 0
      ? penalty
      : replaceValue(context, `must be from ${PENALTIES.min} to ${PENALTIES.max}`, penalty, undefined, true),
  ),
  PENALTIES.min,
  PENALTIES.max,
);

/**
 * Instruction for the renderer. The text2music instruction counts as no instruction, because some clients send it
 * with every task type.
 */
export const customInstruction = textOrNull
  .transform((text) => (text === TEXT_TO_MUSIC_INSTRUCTION ? null : text))
  .meta({ type: "string" });
