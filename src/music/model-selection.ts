/** Which slot a task's `model` means. Names are settled when the job runs: slots may be switched meanwhile. */
import type { SlotState } from "../engine/types.js";

/**
 * The slot with the named model. No name, or one that no slot has loaded, means slot 1: clients send the
 * names of other installations, and the result says which model was used.
 */
export function selectSlot(slots: readonly SlotState[], model: string | null): SlotState {
  const named = slots.find((slot) => slot.model !== null && slot.model === model);
  return named ?? (slots[0] as SlotState);
}
