/** Zod types of values that a client may write as a list or as text: seeds, tracks. */
import { z } from "zod";
import { elementsOf, instead, isTooLong, NUMERIC, outOfRange, refuse } from "../../parameters/values.js";
import { parseSeed, type SeedPositions } from "../song/seeds.js";
import { readClientJson } from "./json.js";

const MAX_SEEDS = 8;
const MAX_TEXTS = 64;
/** Characters. */
const MAX_LISTED_TEXT = 256;

/** `42`, `"42,123"` or `[42, 123]`: a seed per item; -1 and blanks are random (reference/music-http.md 2.7). */
export const seedPositions = z.unknown().transform((value, context): SeedPositions => {
  const elements = elementsOf(value)?.slice(0, MAX_SEEDS);
  if (elements?.some(isSeed) !== true) {
    return refuse(context, "must be an integer or a list of integers", value);
  }
  const seeds = elements.map((element) => parseSeed(element));
  const used = seeds.map((seed) => seed ?? null);
  if (seeds.every((seed, i) => seed === null || seed === Number(elements[i]))) return used;
  const isTooLarge = seeds.some((seed, i) => seed === undefined && isSeed(elements[i] as string | number));
  const report = isTooLarge ? outOfRange : instead;
  return report(
    context,
    "must hold integers from -1 to 9007199254740991",
    value,
    used.map((seed) => seed ?? -1),
  );
});

/** Also a blank, a place that the client leaves open. */
function isSeed(element: string | number): boolean {
  const text = String(element).trim();
  return text === "" || NUMERIC.test(text);
}

/** Texts: one, a list of them, or JSON text of a list; blank ones are dropped. */
export const textList = z.unknown().transform((value, context): string[] => {
  const list = readJsonList(value) ?? (Array.isArray(value) ? value : [value]);
  const isText = (element: unknown) => typeof element === "string" || typeof element === "number";
  if (!list.every(isText)) return refuse(context, "must be text or a list of texts", value);
  if (list.length > MAX_TEXTS) {
    return refuse(context, `must hold at most ${MAX_TEXTS} texts and holds ${list.length}`, value);
  }
  const texts = list.map(String);
  if (texts.some((text) => isTooLong(text, MAX_LISTED_TEXT, context))) return z.NEVER;
  return texts.map((text) => text.trim()).filter((text) => text !== "");
});

function readJsonList(value: unknown): unknown[] | undefined {
  if (typeof value !== "string" || !value.trim().startsWith("[")) return undefined;
  return readClientJson(value, "a list of texts") as unknown[] | undefined;
}
