/** What is being written: kept over a reload of the page, all but its files. */
import type { Parameters } from "./api.js";

export interface Draft {
  /** Parameters by the names that the service gives them; what is not here is left to the service. */
  values: Parameters;
  /** Recordings by their fields. */
  files: Record<string, File>;
  /** What the source is called, where it is a song of the library. */
  sourceName: string;
}

export const EMPTY_DRAFT: Draft = { values: {}, files: {}, sourceName: "" };

const ITEM = "carillon-draft";

export function loadDraft(): Draft {
  try {
    const { values, sourceName } = JSON.parse(localStorage.getItem(ITEM) ?? "{}");
    return { ...EMPTY_DRAFT, values: values ?? {}, sourceName: sourceName ?? "" };
  } catch {
    return EMPTY_DRAFT;
  }
}

export function saveDraft({ values, sourceName }: Draft): void {
  localStorage.setItem(ITEM, JSON.stringify({ values, sourceName }));
}

/** A draft with some values set; an empty one is taken out. */
export function withValues(draft: Draft, change: Parameters): Draft {
  const entries = Object.entries({ ...draft.values, ...change });
  return { ...draft, values: Object.fromEntries(entries.filter(([, value]) => isSet(value))) };
}

export function draftOf(parameters: Parameters): Draft {
  const draft = withValues(EMPTY_DRAFT, parameters);
  return draft.values.src_audio_path === undefined ? draft : { ...draft, sourceName: "an earlier recording" };
}

export function hasSource({ values, files }: Draft): boolean {
  return files.src_audio !== undefined || values.src_audio_path !== undefined;
}

/** What is sent. A task that works on a recording is none without one. */
export function parametersOf(draft: Draft): Parameters {
  if (hasSource(draft)) return draft.values;
  const { task_type: _, ...values } = draft.values;
  return values;
}

function isSet(value: unknown): boolean {
  return (
    value !== undefined && value !== null && value !== "" && !(Array.isArray(value) && value.length === 0)
  );
}
