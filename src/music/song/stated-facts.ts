/** What a caption says of tempo, key and metre takes the place of fields that the client left empty. */
import { readCaption } from "../../engine/caption/facts.js";
import type { Statement } from "../../engine/caption/text.js";
import type { TempoRange } from "../../engine/caption/words.js";
import { canonicalKeyScale } from "../../engine/metadata.js";
import type { Metadata } from "../../engine/types.js";

/** Plain data that survives JSON; what the caption does not say is null or "". */
export interface StatedFacts {
  /** Beats a minute: every song takes one from here by its seed. */
  tempo: TempoRange | null;
  keyScale: string;
  timeSignature: string;
}

export const NOTHING_STATED: StatedFacts = { tempo: null, keyScale: "", timeSignature: "" };

type Fields = Pick<Metadata, "bpm" | "keyScale" | "timeSignature">;

/**
 * Reads a caption.
 * @param fields that the client set: they always win
 * @param takesUsual whether a pace or a genre alone stands for its usual tempo
 * @param remarks gets a line for everything that was taken or contradicts
 */
export function statedFacts(
  caption: string,
  fields: Fields,
  takesUsual: boolean,
  remarks: string[],
): StatedFacts {
  const { tempo, usualTempo, keyScale, timeSignature, remarks: doubts } = readCaption(caption);
  const usual = takesUsual ? usualTempo : null;
  remarks.push(...doubts);
  const { bpm } = fields;
  if (bpm === null && usual !== null) {
    remarks.push(`bpm was left open: ${spell(usual.value)} is usual for ${JSON.stringify(usual.words)}`);
  }
  const line = <Value>(
    name: string,
    stated: Statement<Value> | null,
    field: { isSet: boolean; agrees: (value: Value) => boolean; used: unknown },
    spelt: (value: Value) => string,
  ): void => {
    if (stated === null) return;
    const words = JSON.stringify(stated.words);
    if (!field.isSet) remarks.push(`${name} ${spelt(stated.value)} was taken from the prompt's ${words}`);
    else if (!field.agrees(stated.value)) {
      remarks.push(`${name} is ${field.used} as it was sent, though the prompt says ${words}`);
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
  return min === max ? String(min) : `${min} to ${max}`;
}

/** The client's values, completed by those of the caption. The same seed is the same tempo. */
export function withStatedFacts(metadata: Metadata, facts: StatedFacts, seed: number): Metadata {
  return {
    ...metadata,
    bpm: metadata.bpm ?? (facts.tempo === null ? null : tempoOf(facts.tempo, seed)),
    keyScale: metadata.keyScale || facts.keyScale,
    timeSignature: metadata.timeSignature || facts.timeSignature,
  };
}

function tempoOf({ min, max }: TempoRange, seed: number): number {
  return min + (seed % (max - min + 1));
}
