/** Fills empty fields for tempo, key and time signature with facts that the caption states. */
import { readCaption } from "../../engine/caption/facts.js";
import type { Statement, TempoRange } from "../../engine/caption/text.js";
import { canonicalKeyScale } from "../../engine/metadata.js";
import type { Metadata, Seed } from "../../engine/types.js";
import { say } from "../../notes.js";
import { indexFromSeed } from "./seeds.js";

/** Facts that a caption states; null or "" if it states none. Stored as JSON, so it holds only plain data. */
export interface StatedFacts {
  /** Range in bpm; each song's seed picks a value. */
  tempo: TempoRange | null;
  keyScale: string;
  timeSignature: string;
}

/** What the record of a finished song states; null or "" if it states nothing. Stored as JSON. */
export type MusicalFacts = Omit<Metadata, "durationSeconds">;

export const NOTHING_STATED: StatedFacts = { tempo: null, keyScale: "", timeSignature: "" };

/**
 * Reads tempo, key and time signature from a caption.
 * @param fields values that the client set; they override the caption
 * @param usesUsualTempo whether a genre or a word such as "slow" sets a tempo if the caption states none
 * @param remarks gets a line for each fact that is used or that contradicts a field
 */
export function statedFacts(
  caption: string,
  fields: MusicalFacts,
  usesUsualTempo: boolean,
  remarks: string[],
): StatedFacts {
  const { tempo, usualTempo, keyScale, timeSignature, remarks: doubts } = readCaption(caption);
  const usual = usesUsualTempo ? usualTempo : null;
  remarks.push(...doubts);
  const { bpm } = fields;
  if (bpm === null && usual !== null) {
    remarks.push(say("tempo_usual", { value: spell(usual.value), words: usual.words }));
  }
  const line = <Value>(
    name: string,
    stated: Statement<Value> | null,
    field: { isSet: boolean; agrees: (value: Value) => boolean; used: unknown },
    spelt: (value: Value) => string,
  ): void => {
    if (stated === null) return;
    const { value, words } = stated;
    if (!field.isSet) remarks.push(say("fact_stated", { name, value: spelt(value), words }));
    else if (!field.agrees(value)) {
      remarks.push(say("fact_contradicted", { name, value: String(field.used), words }));
    }
  };
  const inRange = ({ min, max }: TempoRange) => bpm !== null && min <= bpm && bpm <= max;
  line("bpm", tempo, { isSet: bpm !== null, agrees: inRange, used: bpm }, spell);
  const key = canonicalKeyScale(fields.keyScale) ?? fields.keyScale;
  line("key_scale", keyScale, { isSet: key !== "", agrees: (value) => value === key, used: key }, String);
  const metre = fields.timeSignature;
  line(
    "time_signature",
    timeSignature,
    { isSet: metre !== "", agrees: (v) => v === metre, used: metre },
    String,
  );
  return {
    tempo: (tempo ?? usual)?.value ?? null,
    keyScale: keyScale?.value ?? "",
    timeSignature: timeSignature?.value ?? "",
  };
}

function spell({ min, max }: TempoRange): string {
  return min === max ? String(min) : `${min}–${max}`;
}

/** Fills missing metadata with stated facts. The seed determines the tempo within a range. */
export function withStatedFacts(metadata: Metadata, facts: StatedFacts, seed: Seed): Metadata {
  return {
    ...metadata,
    bpm:
      metadata.bpm ??
      (facts.tempo === null
        ? null
        : facts.tempo.min + indexFromSeed(seed, facts.tempo.max - facts.tempo.min + 1)),
    keyScale: metadata.keyScale || facts.keyScale,
    timeSignature: metadata.timeSignature || facts.timeSignature,
  };
}
