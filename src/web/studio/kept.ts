/**
 * What this browser keeps for the page. Its values can be damaged or of another version, and the browser can refuse to
 * store more, or anything.
 */
import { Store } from "./store.js";

type Area = "localStorage" | "sessionStorage";

/** Whether the browser stores what the page keeps. If not, the page keeps it until it is closed. */
export const isStored = new Store(true);

/** Values that the browser did not store. */
const unstored = new Map<string, string>();

export function readText(name: string, area: Area = "localStorage"): string | null {
  try {
    return unstored.get(area + name) ?? window[area].getItem(name);
  } catch {
    return null;
  }
}

export function keepText(name: string, text: string, area: Area = "localStorage"): void {
  try {
    unstored.delete(area + name);
    window[area].setItem(name, text);
  } catch {
    unstored.set(area + name, text);
    isStored.set(false);
  }
}

export function forgetText(name: string, area: Area = "localStorage"): void {
  unstored.delete(area + name);
  try {
    window[area].removeItem(name);
  } catch {
    // Nothing is stored either.
  }
}

export type Fields = Readonly<Record<string, unknown>>;

export function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function isText(value: unknown): value is string {
  return typeof value === "string";
}

export function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every(isText);
}

/** The object that is kept under a name; empty if there is none or it is damaged. */
export function readFields(name: string, area?: Area): Fields {
  try {
    const value: unknown = JSON.parse(readText(name, area) ?? "");
    return isFields(value) ? value : {};
  } catch {
    return {};
  }
}

/** The entries of a kept object, without those whose value is not as expected. */
export function readEntries<Value>(
  name: string,
  isValue: (value: unknown) => value is Value,
): Readonly<Record<string, Value>> {
  const entries = Object.entries(readFields(name));
  return Object.fromEntries(entries.filter((entry): entry is [string, Value] => isValue(entry[1])));
}
