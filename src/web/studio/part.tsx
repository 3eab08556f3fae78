/** Types and layout that the parts of the workshop share. */
import type { ComponentChildren } from "preact";

/** Runs a user action, then shows the text `done` or the error as a notice. @returns whether the action succeeded */
export type Attempt = (work: () => Promise<unknown>, done?: string) => Promise<boolean>;

export function WorkshopSection({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <section class="part" aria-label={title}>
      <h3>{title}</h3>
      {children}
    </section>
  );
}
