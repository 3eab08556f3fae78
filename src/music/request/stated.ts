/** Facts of a song in a request: known terms, and facts that the prompt states. */
import { canonicalKeyScale, LANGUAGES, UNKNOWN_METADATA } from "../../engine/metadata.js";
import { say } from "../../notes.js";
import { describe } from "../../parameters.js";
import { NOTHING_STATED, type StatedFacts, statedFacts } from "../song/stated-facts.js";
import type { GenerationParameters } from "./schema.js";
import type { Analysis } from "./task-types.js";

/**
 * Returns the facts that the prompt states. A genre in the prompt implies its usual tempo only if the task has neither
 * a source nor audio codes. Warns about musical keys and languages that the models were not trained on; their values
 * stay unchanged.
 */
export function factsStatedIn(
  parameters: GenerationParameters & { analysis: Analysis | null; hasCodes: boolean },
  warnings: string[],
): StatedFacts {
  const { analysis, prompt, sampleQuery, taskType, hasCodes, keyScale, vocalLanguage, verbatim } = parameters;
  if (keyScale !== "" && canonicalKeyScale(keyScale) === undefined) {
    warnings.push(say("key_unknown", { value: describe(keyScale) }));
  }
  if (vocalLanguage !== null && !LANGUAGES.includes(vocalLanguage)) {
    const languages = LANGUAGES.join(", ");
    warnings.push(say("language_unknown", { value: describe(vocalLanguage), languages }));
  }
  if (analysis === "metadata") return statedFacts(prompt, UNKNOWN_METADATA, true, warnings);
  if ((analysis !== null && analysis !== "plan") || verbatim) return NOTHING_STATED;
  const isWholeSong = taskType === "text2music" && !hasCodes;
  const words = isWholeSong && sampleQuery !== "" ? sampleQuery : prompt;
  return statedFacts(words, parameters, isWholeSong, warnings);
}
