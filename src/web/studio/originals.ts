/** The songs that other songs were made from. */
import { useEffect } from "preact/hooks";
import { carillon, type Task } from "./api.js";
import { t } from "./language.js";
import { Store, useStore } from "./store.js";

/** Songs by id; null: removed, or not read yet. */
const originals = new Store<ReadonlyMap<string, Task | null>>(new Map());

/** Id of the song that a song varies or edits; undefined: none, or an uploaded recording. */
function originalId({ retake_of: first, parameters }: Task): string | undefined {
  const path = String(parameters.src_audio_path ?? "");
  if (first) return first;
  if (path.startsWith("upload:")) return undefined;
  return /[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}/.exec(path)?.[0];
}

/** The song that a song varies or edits; null if there is none. */
export function useOriginal(task: Task): Task | null {
  const known = useStore(originals);
  const id = originalId(task);
  useEffect(() => {
    if (id === undefined || originals.value.has(id)) return;
    const set = (original: Task | null) => originals.set(new Map(originals.value).set(id, original));
    set(null);
    // A list, because a deleted original is no error.
    carillon.list({ task_ids: id }).then(
      ({ tasks }) => set(tasks[0] ?? null),
      // The next card of the song asks again.
      () => originals.set(new Map([...originals.value].filter(([other]) => other !== id))),
    );
  }, [id]);
  return (id !== undefined && known.get(id)) || null;
}

type Kind = "variation" | "extension" | "whole" | "change" | "edit";

/** Parts of this many seconds cannot be heard. */
const TOLERANCE_SECONDS = 0.1;

function kindOf(task: Task): Kind | null {
  if (task.retake_of) return "variation";
  if (task.task_type !== "repaint") return null;
  const { repainting_start: start, repainting_end: end, repainting_windows: windows } = task.parameters;
  const given = Array.isArray(windows) && windows.length > 0 ? windows : [[start, end]];
  // A start is 0 by default, and an end is that of the original.
  const parts = given.map(([from, to]) => [Number(from ?? 0), Number(to ?? 0)] as const);
  if (parts.some(([from, to]) => from === 0 && to <= 0)) return "whole";
  const length = originals.value.get(originalId(task) ?? "")?.songs[0]?.metas.duration;
  // Whether an edit goes beyond an original that was deleted is not known.
  if (!length) return "edit";
  if (parts.some(([from, to]) => from < 0 || to > length + TOLERANCE_SECONDS)) return "extension";
  const isWhole = parts.some(([from, to]) => from === 0 && to >= length - TOLERANCE_SECONDS);
  return isWhole ? "whole" : "change";
}

/** Tells a song from its original, which has the same words; "" if it has none. */
export function kindInWords(task: Task): string {
  switch (kindOf(task)) {
    case "variation":
      return t("variation");
    case "extension":
      return t("extended");
    case "whole":
      return t("new version");
    case "change":
      return t("part changed");
    case "edit":
      return t("edited");
    case null:
      return "";
  }
}

/** How a song was made from the song `original`. */
export function madeFrom(task: Task, original: string): string {
  switch (kindOf(task)) {
    case "variation":
      return t("variation of {song}", { song: original });
    case "extension":
      return t("extends {song}", { song: original });
    case "whole":
      return t("new version of {song}", { song: original });
    case "change":
      return t("changes a part of {song}", { song: original });
    default:
      return t("made from {song}", { song: original });
  }
}
