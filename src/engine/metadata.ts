/** Song metadata: fields, ranges and canonical forms. */
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
  return {
    bpm: positiveOrNull(client.bpm) ?? model.bpm ?? null,
    keyScale: isAbsent(client.keyScale) ? (model.keyscale ?? "") : client.keyScale,
    timeSignature: isAbsent(client.timeSignature) ? (model.timesignature ?? "") : client.timeSignature,
    durationSeconds: positiveOrNull(client.durationSeconds) ?? model.duration ?? null,
  };
}

/** Whether the client set every field. */
export function isComplete(metadata: Metadata): boolean {
  return (
    positiveOrNull(metadata.bpm) !== null &&
    !isAbsent(metadata.keyScale) &&
    !isAbsent(metadata.timeSignature) &&
    positiveOrNull(metadata.durationSeconds) !== null
  );
}

/** Converts a key such as "Am" or "f# min" to one of 70 canonical keys, such as "A minor"; undefined if invalid. */
export function canonicalKeyScale(text: string): string | undefined {
  const match = KEY_SCALE_PATTERN.exec(text.trim());
  if (match === null) return undefined;
  const [, note = "", accidental = "", mode = ""] = match;
  const minor = mode === "m" || /^min/i.test(mode);
  return `${note.toUpperCase()}${accidental} ${minor ? "minor" : "major"}`;
}

const KEY_SCALE_PATTERN = new RegExp(
  `^([${KEY_NOTES.join("")}${KEY_NOTES.join("").toLowerCase()}])([${KEY_ACCIDENTALS.join("")}]?)` +
    `\\s*(|m|M|[Mm][Aa][Jj](?:[Oo][Rr])?|[Mm][Ii][Nn](?:[Oo][Rr])?)$`,
);

/** Beats per bar of a supported metre: "6" for "6/8" or "6"; undefined for other metres, such as "5/4". */
export function canonicalTimeSignature(text: string): string | undefined {
  const [, beats, noteValue] = /^(\d)(?:\/(\d))?$/.exec(text.trim()) ?? [];
  const expected = beats === "6" ? "8" : "4";
  return TIME_SIGNATURES.find((known) => known === beats && (noteValue ?? expected) === expected);
}

function canonicalLanguage(text: string): string | undefined {
  const code = text.trim().toLowerCase();
  return LANGUAGES.includes(code) ? code : undefined;
}

/** Whether a value is absent; "N/A" also means absent. */
function isAbsent(text: string): boolean {
  return ["", "n/a"].includes(text.trim().toLowerCase());
}

function positiveOrNull(value: number | null): number | null {
  return value !== null && value > 0 ? value : null;
}

function integerWithin(value: number | null, { min, max }: { min: number; max: number }): number | undefined {
  return positiveOrNull(value) === null ? undefined : Math.min(max, Math.max(min, Math.trunc(value ?? min)));
}
