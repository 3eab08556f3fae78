/** The draft and its undo history. Undoes replacements, such as a filled form; the browser undoes typing. */
import { useEffect, useRef, useState } from "preact/hooks";
import { type Draft, loadDraft, saveDraft } from "./draft.js";

export type DraftChange = (draft: Draft) => Draft;

interface Replacement {
  before: Draft;
  after: Draft;
}

export interface DraftHistory {
  draft: Draft;
  /** Sets the draft after typing. The browser undoes typing itself. */
  setDraft: (draft: Draft) => void;
  /** Replaces text of the current draft. @returns a function that undoes it */
  replaceDraft: (change: DraftChange) => Undo;
}

/** Undoes a replacement. @returns a function that brings back what was typed since; null: nothing was */
export type Undo = () => Undo | null;

const MAX_STEPS = 50;

export function useDraft(): DraftHistory {
  const [draft, setDraft] = useState<Draft>(loadDraft);
  const steps = useRef<Replacement[]>([]);
  const latest = useRef(draft);
  const show = (next: Draft) => {
    latest.current = next;
    setDraft(next);
  };
  useEffect(() => saveDraft(draft), [draft]);
  const undo = () => {
    const step = steps.current.pop();
    if (step !== undefined) show(step.before);
  };
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const isUndo = event.key.toLowerCase() === "z" && (event.ctrlKey || event.metaKey) && !event.shiftKey;
      const step = steps.current.at(-1);
      // If the user has typed since the replacement, let the browser undo the typing first.
      if (!isUndo || step === undefined || !isSame(step.after, latest.current)) return;
      event.preventDefault();
      undo();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
  const replaceDraft = (change: DraftChange): Undo => {
    const step = { before: latest.current, after: change(latest.current) };
    steps.current = [...steps.current, step].slice(-MAX_STEPS);
    show(step.after);
    return () => {
      // This also undoes all later replacements.
      const index = steps.current.indexOf(step);
      if (index < 0) return null;
      steps.current = steps.current.slice(0, index);
      if (!isSame(step.after, latest.current)) return replaceDraft(() => step.before);
      show(step.before);
      return null;
    };
  };
  return { draft, setDraft: show, replaceDraft };
}

function isSame(one: Draft, other: Draft): boolean {
  return one.files === other.files && JSON.stringify(one.values) === JSON.stringify(other.values);
}
