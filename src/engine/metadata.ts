/** The facts of a song: their fields and ranges, and the one form of what the client says and the model writes. */
import type { Metadata } from "./types.js";

export const NOTHING_KNOWN: Metadata = { bpm: null, keyScale: "", timeSignature: "", durationSeconds: null };

/** The fields of a think block. An absent one is not written. */
export interface ThinkFields {
  bpm?: number | undefined;
  caption?: string | undefined;
  /** Seconds. */
  duration?: number | undefined;
  /** For example "F# minor". */
  keyscale?: string | undefined;
  /** One of `languages`. */
  language?: string | undefined;
  /** One of `timeSignatures`. */
  timesignature?: string | undefined;
}

export const BPM_RANGE = { min: 30, max: 300 } as const;
export const DURATION_SECONDS_RANGE = { min: 10, max: 600 } as const;

/** Beats of 2/4, 3/4, 4/4 and 6/8. */
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
 * The client's values in the form that the model was trained on. A value that has no such form is left out:
 * the model then writes its own, and the client's still reaches the renderer.
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

/** The client's values, completed by the model's. */
export function mergeMetadata(client: Metadata, model: ThinkFields): Metadata {
  return {
    bpm: positiveOrNull(client.bpm) ?? model.bpm ?? null,
    keyScale: isAbsent(client.keyScale) ? (model.keyscale ?? "") : client.keyScale,
    timeSignature: isAbsent(client.timeSignature) ? (model.timesignature ?? "") : client.timeSignature,
    durationSeconds: positiveOrNull(client.durationSeconds) ?? model.duration ?? null,
  };
}

/** True where the client has left nothing for the model to fill. */
export function isComplete(metadata: Metadata): boolean {
  return (
    positiveOrNull(metadata.bpm) !== null &&
    !isAbsent(metadata.keyScale) &&
    !isAbsent(metadata.timeSignature) &&
    positiveOrNull(metadata.durationSeconds) !== null
  );
}

/** One of the 70 key scales for "Am", "f# min", "B♭" or "C Major"; undefined for what is none, as "H minor". */
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

/** "6" for "6/8" and "6", and so on; undefined for what the model does not know, as "5/4". */
export function canonicalTimeSignature(text: string): string | undefined {
  const [, beats, noteValue] = /^(\d)(?:\/(\d))?$/.exec(text.trim()) ?? [];
  const expected = beats === "6" ? "8" : "4";
  return TIME_SIGNATURES.find((known) => known === beats && (noteValue ?? expected) === expected);
}

function canonicalLanguage(text: string): string | undefined {
  const code = text.trim().toLowerCase();
  return LANGUAGES.includes(code) ? code : undefined;
}

/** Clients write "N/A" for nothing. */
function isAbsent(text: string): boolean {
  return ["", "n/a"].includes(text.trim().toLowerCase());
}

function positiveOrNull(value: number | null): number | null {
  return value !== null && value > 0 ? value : null;
}

function integerWithin(value: number | null, { min, max }: { min: number; max: number }): number | undefined {
  return positiveOrNull(value) === null ? undefined : Math.min(max, Math.max(min, Math.trunc(value ?? min)));
}
