/** Stems that a task makes: `track_name` and `track_classes`. */
import { closest, distance } from "fastest-levenshtein";
import { STEMS } from "../../engine/conditioning.js";
import { say } from "../../notes.js";
import { describe } from "../../parameters.js";
import { RequestError } from "../errors.js";
import type { GenerationParameters } from "./schema.js";
import { makesStems, type TaskType } from "./task-types.js";

const ALL = "all";
const MAX_TYPOS = 2;

type Tracks = Partial<Pick<GenerationParameters, "trackName" | "trackClasses" | "batchSize">>;

/**
 * Replaces the stem names that the client sent with the names that the models know. With track_classes, extract and
 * lego make one song per stem.
 * @throws RequestError for an unknown stem
 */
export function normalizeTracks(
  { taskType, trackName, trackClasses, instruction }: GenerationParameters,
  warnings: string[],
): Tracks {
  if (instruction !== null) return { trackClasses: [] };
  const classes = trackClasses.flatMap((text) => text.split(/[,|]/)).flatMap((text) => text.trim() || []);
  if (taskType === "complete") return { trackClasses: namesOf(classes, taskType) };
  if (!makesStems(taskType)) return {};
  const requested = trackName === "" ? classes : [trackName];
  const wantsAll = taskType === "extract" && requested.some((name) => name.toLowerCase() === ALL);
  const names = wantsAll ? [...STEMS] : namesOf(requested, taskType);
  if (trackName !== "" && !wantsAll) return { trackName: names[0] as string, trackClasses: [] };
  if (names.length > 0) return { trackName: "", trackClasses: names, batchSize: names.length };
  warnings.push(say("stem_missing", { task_type: taskType, stems: list() }));
  return {};
}

/** Returns the known stems with these names, in the same order and without duplicates. */
function namesOf(names: readonly string[], taskType: TaskType): string[] {
  const known = names.map((name) => stemOf(name, taskType));
  return [...new Set(known)];
}

function stemOf(name: string, taskType: TaskType): string {
  const word = name.toLowerCase().replace(/[\s-]+/g, "_");
  const stem = STEMS.find((known) => known === word || singular(known) === singular(word));
  if (stem !== undefined) return stem;
  const meant = closest(word.slice(0, 40), STEMS);
  const hint = distance(meant, word.slice(0, 40)) > MAX_TYPOS ? "" : ` (did you mean ${meant}?)`;
  const all = taskType === "extract" ? `, or ${ALL}` : "";
  throw new RequestError(`stem ${describe(name)} is unknown to the models${hint}: use ${list()}${all}`);
}

function singular(word: string): string {
  return word.replace(/s$/, "");
}

function list(): string {
  return STEMS.join(", ");
}
