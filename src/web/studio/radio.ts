/** Whether the radio is on. A reload of the tab goes on with it; a new tab starts without. */
import type { Parameters } from "./api.js";
import { type Fields, forgetText, isFields, isTexts, keepText, readFields } from "./kept.js";
import { Store } from "./store.js";

export interface RadioMemory {
  /** Time of the start, which tells it from earlier ones. */
  startedMs: number;
  /** Parameters of all songs. */
  parameters: Parameters;
  /** Parameters of songs like the one that was asked for more of. */
  likeness: Parameters;
  /** Ids of the song that plays and of the one after it, as far as they are known. */
  songs: readonly string[];
  /** How much of the song was played, 0 to 1. */
  played: number;
}

const ITEM = "carillon-radio";

/** The radio as it was started; null while it is off. */
export const radio = new Store<RadioMemory | null>(load());

function load(): RadioMemory | null {
  // The page of a single song plays no radio. It goes on when the tab shows the studio again.
  if (location.pathname !== "/") return null;
  const kept = readFields(ITEM, "sessionStorage");
  return isMemory(kept) ? kept : null;
}

function isMemory(kept: Fields): kept is Fields & RadioMemory {
  const { startedMs, parameters, likeness, songs, played } = kept;
  const areNumbers = typeof startedMs === "number" && typeof played === "number";
  return areNumbers && isFields(parameters) && isFields(likeness) && isTexts(songs);
}

export function startRadio(parameters: Parameters): void {
  radio.set({ startedMs: Date.now(), parameters, likeness: {}, songs: [], played: 0 });
}

export function stopRadio(): void {
  forgetText(ITEM, "sessionStorage");
  radio.set(null);
}

/** Remembers how far the radio is. */
export function rememberRadio(memory: RadioMemory): void {
  keepText(ITEM, JSON.stringify(memory), "sessionStorage");
}
