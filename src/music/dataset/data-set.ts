/** A data set: pieces of music with their descriptions, and what a trained adapter is told of each. */
import { createHash, randomUUID } from "node:crypto";

export type PromptKind = "caption" | "genre";
export const TAG_POSITIONS = ["prepend", "append", "replace"] as const;
export type TagPosition = (typeof TAG_POSITIONS)[number];

export const INSTRUMENTAL = "[Instrumental]";

export interface DataSetSample {
  /** Names the sample file; unique in its data set. */
  id: string;
  /** Absolute. */
  audioPath: string;
  filename: string;
  caption: string;
  genre: string;
  lyrics: string;
  /** As found beside the audio, "" for none. */
  rawLyrics: string;
  /** As a language model wrote them, "" for none. */
  formattedLyrics: string;
  bpm: number | null;
  keyScale: string;
  timeSignature: string;
  /** Whole seconds. */
  durationSeconds: number;
  /** A language code such as "en", or "unknown". */
  language: string;
  isInstrumental: boolean;
  customTag: string;
  /** Only described samples are trained on. */
  labeled: boolean;
  /** Which text the prompt takes; null: as the genre ratio has it. */
  promptOverride: PromptKind | null;
}

export interface DataSet {
  name: string;
  /** The word that calls the trained style; "" for none. */
  customTag: string;
  tagPosition: TagPosition;
  /** ISO 8601 */
  createdAt: string;
  allInstrumental: boolean;
  /** 0 .. 100: percentage of samples described by their genre. */
  genreRatio: number;
  samples: DataSetSample[];
}

/** Eight characters of a hash: the same text gives the same id, so that a set prepared twice finds its own files. */
export function sampleId(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 8);
}

/** Ids made unique: the first sample of an id keeps it. */
export function withOwnIds(samples: readonly DataSetSample[]): DataSetSample[] {
  const taken = new Set<string>();
  return samples.map((sample) => {
    const id = taken.has(sample.id) ? sampleId(randomUUID()) : sample.id;
    taken.add(id);
    return { ...sample, id };
  });
}

/**
 * The prompt of every labeled sample, by id: its caption or genre with the tag (reference/training.md 2.2). The share
 * of genres goes to the samples whose ids hash lowest, which stay the same when others come or go.
 */
export function trainingPrompts(dataSet: DataSet): Map<string, string> {
  const labeled = dataSet.samples.filter((sample) => sample.labeled);
  const genreCount = Math.floor((labeled.length * dataSet.genreRatio) / 100);
  const ranked = labeled.map(({ id }) => id).sort(byHash);
  const byGenre = new Set(ranked.slice(0, genreCount));
  return new Map(
    labeled.map((sample) => {
      const kind = sample.promptOverride ?? (byGenre.has(sample.id) ? "genre" : "caption");
      const text = kind === "genre" ? sample.genre || sample.caption : sample.caption;
      return [sample.id, withTag(text, sample.customTag || dataSet.customTag, dataSet.tagPosition)];
    }),
  );
}

function byHash(a: string, b: string): number {
  return sampleId(a) < sampleId(b) ? -1 : 1;
}

function withTag(text: string, tag: string, position: TagPosition): string {
  if (tag === "") return text;
  if (text === "" || position === "replace") return tag;
  return position === "prepend" ? `${tag}, ${text}` : `${text}, ${tag}`;
}
