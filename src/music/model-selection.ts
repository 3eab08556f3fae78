/** Which model a name means. Tasks settle it when they run: slots may be switched meanwhile. */
import { isAbsolute, posix } from "node:path";
import type { SlotState } from "../engine/types.js";

/**
 * The slot with the named model. No name, or one that no slot has loaded, means slot 1: clients send the
 * names of other installations, and the result says which model was used.
 */
export function selectSlot(slots: readonly SlotState[], model: string | null): SlotState {
  const loaded = slots.flatMap((slot) => slot.model ?? []);
  const name = model === null ? undefined : namedModel(loaded, model);
  const named = name === undefined ? undefined : slots.find((slot) => slot.model === name);
  return named ?? (slots[0] as SlotState);
}

/**
 * Of the models the one with exactly the name that a client asks for, else the one with its last part: clients put a
 * vendor before it. A path means that folder alone.
 */
export function namedModel(models: readonly string[], asked: string): string | undefined {
  if (models.includes(asked)) return asked;
  return models.find((model) => posix.basename(model) === posix.basename(asked));
}

/** As `namedModel` among what is installed; what is no such model stays as it is, and may be a path. */
export function installedModel(models: readonly string[], asked: string): string {
  return isAbsolute(asked) ? asked : (namedModel(models, asked) ?? asked);
}
