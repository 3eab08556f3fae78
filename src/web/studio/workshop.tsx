/** A view of its own: models and their slots, adapters, and the training of adapters. */

import { Button } from "./button.js";
import { t } from "./language.js";
import { lazy } from "./lazy.js";
import type { Attempt } from "./part.js";

const WorkshopParts = lazy(() => import("./lazy-parts.js").then((module) => module.WorkshopParts));

interface WorkshopProps {
  attempt: Attempt;
  onLeave: () => void;
}

export function Workshop({ attempt, onLeave }: WorkshopProps) {
  return (
    <section class="workshop" aria-labelledby="workshop-title">
      <div class="row head">
        <h2 id="workshop-title">{t("Models and adapters")}</h2>
        <Button onClick={onLeave}>{t("Back to the songs")}</Button>
      </div>
      <WorkshopParts attempt={attempt} />
    </section>
  );
}
