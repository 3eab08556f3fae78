/** The draft of a song in the form. A reload of the page keeps the values of the draft, but not its files. */
import type { Parameters, Song } from "./api.js";
import {
  type Fields,
  forgetText,
  isFields,
  isText,
  isTexts,
  keepText,
  readFields,
  readText,
} from "./kept.js";
import { t } from "./language.js";

export interface Draft {
  /** Parameters by their API names. The service sets the missing ones. */
  values: Parameters;
  /** Files by field name. */
  files: Record<string, File>;
  /** Title of the source, if it is a song of the library. */
  sourceName: string;
  filled: Filled;
}

/** Values that the page filled in and that the user has not changed since. */
interface Filled {
  names: readonly string[];
  /** Prompt that they were filled in with. */
  prompt: string;
}

const NOTHING_FILLED: Filled = { names: [], prompt: "" };

export const EMPTY_DRAFT: Draft = { values: {}, files: {}, sourceName: "", filled: NOTHING_FILLED };

const ITEM = "carillon-draft";

/** Parameters that belong to one song: its words, its recordings and its seed. All others are settings. */
export const SONG_PARAMETERS: ReadonlySet<string> = new Set(
  `prompt lyrics bpm key_scale time_signature vocal_language audio_duration task_type src_audio_path reference_audio_path
   track_name track_classes repainting_start repainting_end repainting_windows audio_code_string use_audio_codes seed
   use_random_seed full_analysis_only`.split(/\s+/),
);

/** Settings that are kept when the form is cleared. */
const PREFERENCES = new Set(["audio_format", "get_lrc", "model", "mp3_bitrate", "thinking"]);

/** Loads the draft of this tab. A new tab takes over the draft of the last closed tab. */
export function loadDraft(): Draft {
  const own = readText(ITEM, "sessionStorage");
  const { values, sourceName, filled } = readFields(ITEM, own === null ? "localStorage" : "sessionStorage");
  if (own === null || own === readText(ITEM)) forgetText(ITEM);
  return {
    ...EMPTY_DRAFT,
    values: isFields(values) ? values : {},
    sourceName: isText(sourceName) ? sourceName : "",
    filled: isFields(filled) && isFilled(filled) ? filled : NOTHING_FILLED,
  };
}

function isFilled(filled: Fields): filled is Fields & Filled {
  return isTexts(filled.names) && isText(filled.prompt);
}

export function saveDraft({ values, sourceName, filled }: Draft): void {
  keepText(ITEM, JSON.stringify({ values, sourceName, filled }), "sessionStorage");
}

addEventListener("pagehide", () => {
  const own = readText(ITEM, "sessionStorage");
  if (own !== null) keepText(ITEM, own);
});
// A tab that the browser restores from the back/forward cache still has its draft. Remove the stored copy, so
// that a new tab does not load it too.
addEventListener("pageshow", ({ persisted }) => persisted && forgetText(ITEM));

/** Returns the draft with values that the user set; empty values are removed. */
export function withValues(draft: Draft, change: Parameters): Draft {
  const entries = Object.entries({ ...draft.values, ...change });
  const names = draft.filled.names.filter((name) => !(name in change));
  return {
    ...draft,
    values: Object.fromEntries(entries.filter(([, value]) => isSet(value))),
    filled: { ...draft.filled, names },
  };
}

/** Facts about a song that the page fills in, with the words by which a prompt states them. */
const STATED: Readonly<Record<string, RegExp>> = {
  bpm: /\b\d{2,3}\s*bpm\b/gi,
  key_scale: /\b[A-G](?:[#b♯♭]|[- ](?:sharp|flat))?[- ]?(?:major|minor|maj|min|dur|moll)\b/gi,
  time_signature: /\b\d{1,2}\/(?:2|4|8)\b/g,
  audio_duration: /\b\d+\s*(?:s|secs?|seconds?|min|mins|minutes?)\b/gi,
  vocal_language: /(?!)/g,
};

/** Returns the draft with values that the page filled in, in place of those that it filled in before. */
export function filledDraft(draft: Draft, values: Parameters): Draft {
  const old = Object.fromEntries(draft.filled.names.map((name) => [name, null]));
  const filled = withValues(draft, { ...old, ...values });
  const names = Object.keys(STATED).filter((name) => isSet(values[name]));
  return { ...filled, filled: { names, prompt: String(filled.values.prompt ?? "") } };
}

/** Filled values that are used. They give way to another prompt, and to a prompt that states them. */
export function usedFilled({ values, filled }: Draft): readonly string[] {
  const prompt = String(values.prompt ?? "");
  if (prompt === filled.prompt) return filled.names;
  const words = wordsIn(filled.prompt);
  const left = [...wordsIn(prompt)].filter((word) => words.has(word));
  if (left.length * 2 < words.size) return [];
  const stated = (name: string, text: string): readonly string[] => text.match(STATED[name] ?? /(?!)/g) ?? [];
  return filled.names.filter((name) => {
    const before = stated(name, filled.prompt);
    return stated(name, prompt).every((words) => before.includes(words));
  });
}

function wordsIn(prompt: string): Set<string> {
  return new Set(prompt.toLowerCase().match(/[\p{L}\p{N}]+/gu));
}

/** Values without those that gave way to the prompt. */
export function usedValues(draft: Draft): Parameters {
  const used = usedFilled(draft);
  const unused = draft.filled.names.filter((name) => !used.includes(name));
  return Object.fromEntries(Object.entries(draft.values).filter(([name]) => !unused.includes(name)));
}

/** Whether the user has entered nothing that belongs to a song. */
export function isEmpty({ values, files }: Draft): boolean {
  return Object.keys(values).every((name) => PREFERENCES.has(name)) && Object.keys(files).length === 0;
}

/** An empty draft with the user's preferences. */
export function clearedDraft({ values }: Draft): Draft {
  return {
    ...EMPTY_DRAFT,
    values: Object.fromEntries(Object.entries(values).filter(([name]) => PREFERENCES.has(name))),
  };
}

/** Draft with a song of the server as the reference for timbre. */
export function withReference(draft: Draft, song: Song): Draft {
  const { reference_audio: _, ...files } = draft.files;
  return { ...withValues(draft, { reference_audio_path: song.file }), files };
}

/** Draft with a file as the source. The task type is cover unless another one is chosen. */
export function withSource(draft: Draft, file: File): Draft {
  const { src_audio_path: _, ...values } = draft.values;
  return {
    ...draft,
    values: { ...values, task_type: taskTypeOf(draft) },
    files: { ...draft.files, src_audio: file },
    sourceName: file.name,
  };
}

export function draftFromParameters(parameters: Parameters): Draft {
  const draft = withValues(EMPTY_DRAFT, parameters);
  return draft.values.src_audio_path === undefined
    ? draft
    : { ...draft, sourceName: t("an earlier recording") };
}

export function hasSource({ values, files }: Draft): boolean {
  return files.src_audio !== undefined || values.src_audio_path !== undefined;
}

/** Task types that use a parameter. Parameters not listed here apply to all task types. */
const TASK_PARAMETERS: Record<string, string[]> = {
  audio_cover_strength: ["cover"],
  repainting_start: ["repaint"],
  repainting_end: ["repaint"],
  repainting_windows: ["repaint"],
  track_name: ["lego", "extract"],
  track_classes: ["complete"],
};

/** Task type of a draft that has a source: cover, unless the user chose another type. */
export function taskTypeOf({ values }: Draft): string {
  const { task_type: task = "text2music" } = values;
  return task === "text2music" ? "cover" : String(task);
}

/** Parameters of the request, without those that the task type does not use. */
export function parametersOf(draft: Draft): Parameters {
  const task = hasSource(draft) ? taskTypeOf(draft) : "text2music";
  const used = Object.entries(usedValues(draft)).filter(
    ([name]) => TASK_PARAMETERS[name]?.includes(task) ?? true,
  );
  const { task_type: _, ...values } = Object.fromEntries(used);
  return hasSource(draft) ? { ...withAllWindows(values), task_type: task } : values;
}

/**
 * If there is a list of windows, adds the selected window to it, because the API takes either a list or one
 * window.
 */
function withAllWindows(values: Parameters): Parameters {
  const {
    repainting_windows: windows,
    repainting_start: start = 0,
    repainting_end: end = 0,
    ...others
  } = values;
  if (!Array.isArray(windows)) return values;
  const isSelected = start !== 0 || end !== 0;
  return { ...others, repainting_windows: isSelected ? [...windows, [start, end]] : windows };
}

/** Draft with another task type. Clears the stem that was chosen for the previous type. */
export function withTaskType(draft: Draft, task: string): Draft {
  return withValues(draft, { task_type: task, track_name: null, track_classes: null });
}

function isSet(value: unknown): boolean {
  return (
    value !== undefined && value !== null && value !== "" && !(Array.isArray(value) && value.length === 0)
  );
}
