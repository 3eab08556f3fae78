/** Types, hooks and layout that the parts of the workshop share. */
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { carillon } from "./api.js";
import { watchChanges } from "./live.js";

/** Runs a user action, then shows the text `done` or the error as a notice. */
export type Attempt = (work: () => Promise<unknown>, done?: string) => Promise<void>;

/**
 * Returns the response of GET `path` (null if the request fails) and a function that repeats the request.
 * `notifyTabs` also repeats the request.
 */
export function useEndpoint<T>(path: string): [T | null, () => Promise<void>] {
  const [answer, setAnswer] = useState<T | null>(null);
  const read = () => carillon.call<T>("GET", path).then(setAnswer, () => setAnswer(null));
  useEffect(() => {
    void read();
    return watchChanges(() => void read());
  }, [path]);
  return [answer, read];
}

export function WorkshopSection({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <section class="part" aria-label={title}>
      <h3>{title}</h3>
      {children}
    </section>
  );
}
