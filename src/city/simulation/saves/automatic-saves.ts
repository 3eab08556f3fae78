/**
 * Names of automatic saves: `AutoSave 3f09c1d2a7be 4`. The identity of the city is part of them, so that no automatic
 * save replaces a file of another city; the number goes round, so that each city keeps its latest ones.
 */
import { randomBytes } from "node:crypto";
import type { SaveFile } from "../../game.js";

const KEPT_PER_CITY = 5;
const CITY_ID_BYTES = 6;
const CITY_ID = /^[0-9a-f]{12}$/;
const AUTOMATIC_NAME = /^AutoSave [0-9a-f]{12} \d+$/i;

export function newCityId(): string {
  return randomBytes(CITY_ID_BYTES).toString("hex");
}

export function isCityId(value: unknown): value is string {
  return typeof value === "string" && CITY_ID.test(value);
}

/** Whether a save of that name could be the automatic save of some city. */
export function isAutomaticName(name: string): boolean {
  return AUTOMATIC_NAME.test(name);
}

/** @param saves newest first */
export function automaticSavesOf(cityId: string, saves: readonly SaveFile[]): SaveFile[] {
  const names = namesOf(cityId);
  return saves.filter(({ name }) => names.includes(name));
}

/**
 * The name for a city's next automatic save: an unused one, else that of the oldest.
 * @param saves newest first
 */
export function nextAutomaticName(cityId: string, saves: readonly SaveFile[]): string {
  const own = automaticSavesOf(cityId, saves).map(({ name }) => name);
  return namesOf(cityId).find((name) => !own.includes(name)) ?? (own.at(-1) as string);
}

function namesOf(cityId: string): string[] {
  return Array.from({ length: KEPT_PER_CITY }, (_, i) => `AutoSave ${cityId} ${i + 1}`);
}
