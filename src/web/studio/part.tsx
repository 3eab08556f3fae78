/** What the parts of the workshop share. */
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { call } from "./api.js";
import { watchChanges } from "./live.js";

/** Does what a person asked for; what went wrong is told. */
export type Attempt = (work: () => Promise<unknown>, done?: string) => Promise<void>;

/** What the service answers, read again whenever something was changed; null where it has no such thing. */
export function useAnswer<T>(path: string): [T | null, () => Promise<void>] {
  const [answer, setAnswer] = useState<T | null>(null);
  const read = () => call<T>("GET", path).then(setAnswer, () => setAnswer(null));
  useEffect(() => {
    void read();
    return watchChanges(() => void read());
  }, [path]);
  return [answer, read];
}

export function Part({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <section class="part" aria-label={title}>
      <h3>{title}</h3>
      {children}
    </section>
  );
}
