/** Song metadata: fields, ranges and canonical forms. */
import { meansUnset } from "../parameters.js";
import { plainText } from "./caption/text.js";
import type { Metadata } from "./types.js";

export const UNKNOWN_METADATA: Metadata = {
  bpm: null,
  keyScale: "",
  timeSignature: "",
  durationSeconds: null,
};

/** Fields of a think block. Absent fields are not written. */
export interface ThinkFields {
  bpm?: number | undefined;
  caption?: string | undefined;
  /** Length of the song in seconds. */
  duration?: number | undefined;
  /** Key, for example "F# minor". */
  keyscale?: string | undefined;
  /** Language of the lyrics, one of `LANGUAGES`. */
  language?: string | undefined;
  /** Beats in a bar, one of `TIME_SIGNATURES`. */
  timesignature?: string | undefined;
}

export const BPM_RANGE = { min: 30, max: 300 } as const;
export const DURATION_SECONDS_RANGE = { min: 10, max: 600 } as const;

/** Supported metres, as beats per bar: 2/4, 3/4, 4/4 and 6/8. */
export const TIME_SIGNATURES = ["2", "3", "4", "6"] as const;

export const KEY_NOTES = ["A", "B", "C", "D", "E", "F", "G"] as const;
export const KEY_ACCIDENTALS = ["#", "b", "♯", "♭"] as const;
export const KEY_MODES = ["major", "minor"] as const;

export const UNKNOWN_LANGUAGE = "unknown";
export const LANGUAGES: readonly string[] = [
  ..."ar az bg bn ca cs da de el en es fa fi fr he hi hr ht hu id is it ja ko la lt ms ne nl no".split(" "),
  ..."pa pl pt ro ru sa sk sr sv sw ta te th tl tr uk ur vi yue zh".split(" "),
  UNKNOWN_LANGUAGE,
];

/**
 * The client's values in the canonical forms of the training data. A value without a canonical form is omitted: the
 * model then writes its own value, but the renderer still gets the client's value.
 */
export function toThinkFields(metadata: Metadata, language: string | null): ThinkFields {
  return {
    bpm: integerWithin(metadata.bpm, BPM_RANGE),
    duration: integerWithin(metadata.durationSeconds, DURATION_SECONDS_RANGE),
    keyscale: canonicalKeyScale(metadata.keyScale),
    timesignature: canonicalTimeSignature(metadata.timeSignature),
    language: language === null ? undefined : canonicalLanguage(language),
  };
}

/** Metadata of the client, with missing values from the model. */
export function mergeMetadata(client: Metadata, model: ThinkFields): Metadata {
  const { keyscale = "" } = model;
  return {
    bpm: positiveOrNull(client.bpm) ?? model.bpm ?? null,
    keyScale: meansUnset(client.keyScale) ? (canonicalKeyScale(keyscale) ?? keyscale) : client.keyScale,
    timeSignature: meansUnset(client.timeSignature) ? (model.timesignature ?? "") : client.timeSignature,
    durationSeconds: positiveOrNull(client.durationSeconds) ?? model.duration ?? null,
  };
}

/** Whether the client set every field. */
export function isComplete(metadata: Metadata): boolean {
  return (
    positiveOrNull(metadata.bpm) !== null &&
    !meansUnset(metadata.keyScale) &&
    !meansUnset(metadata.timeSignature) &&
    positiveOrNull(metadata.durationSeconds) !== null
  );
}

/** Key with the accidentals of the training data: "B♭ major" is "Bb major". */
export function withAsciiAccidentals(key: string): string {
  return plainText(key).replaceAll("♯", "#").replaceAll("♭", "b").trim();
}

/**
 * Converts a key such as "Am", "B♭ major" or "f sharp min" to one of 42 canonical keys, such as "A minor"; undefined if
 * invalid.
 */
export function canonicalKeyScale(text: string): string | undefined {
  const match = KEY_SCALE_PATTERN.exec(withAsciiAccidentals(text));
  if (match === null) return undefined;
  const [, note = "", accidental = "", mode = ""] = match;
  const isMinor = mode === "m" || /^min/i.test(mode);
  const sign = accidental.toLowerCase().replace("sharp", "#").replace("flat", "b");
  return `${note.toUpperCase()}${sign} ${isMinor ? "minor" : "major"}`;
}

const KEY_SCALE_PATTERN = /^([A-G])(?:[\s-]*(#|b|sharp|flat))?[\s-]*(|m|maj(?:or)?\.?|min(?:or)?\.?)$/i;

/** Beats per bar of a supported metre: "6" for "6/8" or "6"; undefined for other metres, such as "5/4". */
export function canonicalTimeSignature(text: string): string | undefined {
  const [, beats, noteValue] = /^(\d)(?:\/(\d))?$/.exec(text.trim()) ?? [];
  const expected = beats === "6" ? "8" : "4";
  return TIME_SIGNATURES.find((known) => known === beats && (noteValue ?? expected) === expected);
}

function positiveOrNull(value: number | null): number | null {
  return value !== null && value > 0 ? value : null;
}

function integerWithin(value: number | null, { min, max }: { min: number; max: number }): number | undefined {
  return positiveOrNull(value) === null ? undefined : Math.min(max, Math.max(min, Math.trunc(value ?? min)));
}

/** Codes and names that Unicode's data lacks or maps to other codes. */
const OTHER_LANGUAGE_NAMES: Readonly<Record<string, string>> = Object.fromEntries(
  [
    "fil:tl nb:no nn:no cn:zh cz:cs dk:da gr:el jp:ja kr:ko ua:uk vn:vi bengali:bn castilian:es creole:ht",
    "farsi:fa flemish:nl mandarin:zh tagalog:tl 普通话:zh 普通話:zh 汉语:zh 漢語:zh 国语:zh 國語:zh 华语:zh 華語:zh",
    "简体中文:zh 繁体中文:zh 繁體中文:zh 广东话:yue 廣東話:yue 韩文:ko",
  ].flatMap((line) => line.split(" ").map((pair) => pair.split(":"))),
);

/** Language codes by lower-case name, in all supported languages. */
let languageNames: ReadonlyMap<string, string> | undefined;

function namesOfLanguages(): ReadonlyMap<string, string> {
  const codes = LANGUAGES.filter((code) => code !== UNKNOWN_LANGUAGE);
  const named = codes.flatMap((locale) => {
    const names = new Intl.DisplayNames([locale], { type: "language" });
    return codes.map((code): [string, string] => [withoutAccents(names.of(code) ?? code), code]);
  });
  return new Map([...named, ...Object.entries(OTHER_LANGUAGE_NAMES)]);
}

function withoutAccents(text: string): string {
  return plainText(text.normalize("NFD").replace(/[\u0300-\u036f]/g, "")).toLowerCase();
}

/**
 * Code of a language, one of `LANGUAGES`, from a code ("EN", "deu"), a locale ("en-US", "zh_CN.UTF-8") or a name
 * ("English", "Brazilian Portuguese", "Deutsch"). Undefined if it names no supported language, or more than one.
 */
export function canonicalLanguage(text: string): string | undefined {
  const name = withoutAccents(text).trim();
  return LANGUAGES.includes(name) ? name : (languageOfLocale(name) ?? languageOfName(name));
}

function languageOfLocale(name: string): string | undefined {
  const [, base, extension] = /^([a-z]{2,3})(?:[-_]([a-z]{3})(?![a-z]))?(?:[-_.@].*)?$/.exec(name) ?? [];
  // An extended language, such as "zh-yue", overrides its group.
  const codes = [extension, base].flatMap((code) => (code === undefined ? [] : codeOf(code)));
  return codes.find((code) => LANGUAGES.includes(code));
}

/** Shortest code of a language: "deu" is "de". */
function codeOf(code: string): string {
  const [canonical = code] = Intl.getCanonicalLocales(code);
  const [shortest = canonical] = canonical.split("-");
  return OTHER_LANGUAGE_NAMES[shortest] ?? shortest;
}

function languageOfName(name: string): string | undefined {
  languageNames ??= namesOfLanguages();
  const whole = languageNames.get(name);
  if (whole !== undefined) return whole;
  const found = new Set(name.split(/[^\p{L}\p{M}]+/u).flatMap((word) => languageNames?.get(word) ?? []));
  return found.size === 1 ? [...found][0] : undefined;
}
