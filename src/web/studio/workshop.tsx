/** Disclosure with models and their slots, adapters, and the training of adapters. */
import { useState } from "preact/hooks";
import { t } from "./language.js";
import { lazy } from "./lazy.js";
import type { Attempt } from "./part.js";

const WorkshopParts = lazy(() => import("./workshop-parts.js").then((module) => module.WorkshopParts));

export function Workshop({ attempt }: { attempt: Attempt }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details class="group workshop" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{t("Models and adapters")}</summary>
      {isOpen && <WorkshopParts attempt={attempt} />}
    </details>
  );
}
