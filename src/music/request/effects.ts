/** Names the parameters that the client set and that have no effect, in lines for `warnings`. */

import { say } from "../../notes.js";
import { namesOf, type Rule, usesOf } from "../../parameters.js";
import { type GenerationParameters, generationSchema, parameterGroups } from "./schema.js";
import { ANALYSES, type Analysis } from "./task-types.js";
import type { SongFacts, SongUses, SubmissionFacts } from "./uses.js";

type Key = keyof GenerationParameters;

/** Parameters that act only on the sound of songs. */
const RENDERING: ReadonlySet<string> = new Set(
  (["denoise", "guidance", "edit", "repaint", "output"] as const).flatMap((group) =>
    Object.keys(parameterGroups[group].shape),
  ),
);

const usesOfKey = (key: Key) => usesOf(generationSchema.shape[key]) as SongUses;

/** Name of a parameter in warnings. `src_audio` stands for the uploaded file and for `src_audio_path`. */
export function nameInWarnings(key: Key): string {
  return namesOf(generationSchema.shape[key])[0].replace(/_(audio|latents)_path$/, "_$1");
}

/**
 * Returns warnings about the `chosen` parameters that have no effect with any model, and the parameters whose effect is
 * known only after rendering.
 */
export function effectsAtSubmission(
  chosen: readonly Key[],
  facts: SubmissionFacts,
  analysis: Analysis | null,
): { warnings: string[]; undecided: Key[] } {
  const reasonOf = (key: Key) => {
    const { analyses, atSubmission } = usesOfKey(key);
    const isPlanned = analysis === "plan" && !RENDERING.has(key);
    if (analysis === null || isPlanned) return reasonIn(atSubmission, facts);
    const isUsed = analyses?.includes(analysis);
    const what = analysis === "audio" ? "renders nothing" : "makes no music";
    return isUsed ? null : `not used by ${ANALYSES[analysis]}, which ${what}`;
  };
  const reasons = chosen.map((key) => ({ key, reason: reasonOf(key) }));
  const undecided = reasons.filter(({ key, reason }) => reason === null && usesOfKey(key).afterSong);
  return { warnings: warningsOf(reasons), undecided: undecided.map(({ key }) => key) };
}

/** Returns warnings about the `chosen` parameters that had no effect in any song. */
export function effectsInSongs(chosen: readonly Key[], songs: readonly SongFacts[]): string[] {
  const reasons = chosen.map((key) => {
    const [first = null, ...others] = songs.map((song) => reasonIn(usesOfKey(key).afterSong, song));
    return { key, reason: others.includes(null) ? null : first };
  });
  return warningsOf(reasons);
}

/** The first reason why a parameter has no effect; null: it may have one. */
function reasonIn<Facts>(rules: readonly Rule<Facts>[] = [], facts: Facts): string | null {
  return rules.map((rule) => rule(facts)).find((reason) => reason !== null) ?? null;
}

/** One line per reason. */
function warningsOf(reasons: readonly { key: Key; reason: string | null }[]): string[] {
  const names = new Map<string, string[]>();
  for (const { key, reason } of reasons) {
    if (reason !== null) names.set(reason, [...(names.get(reason) ?? []), nameInWarnings(key)]);
  }
  return [...names].map(([reason, ignored]) =>
    say(ignored.length === 1 ? "parameter_ignored" : "parameters_ignored", {
      names: ignored.join(", "),
      reason,
    }),
  );
}
