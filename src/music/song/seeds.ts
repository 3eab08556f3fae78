/** Seeds of a batch: how clients write them, and which one each item gets. */
import { randomInt } from "node:crypto";
import { NUMERIC } from "../../parameters.js";

/** The core takes integers from 0 to this. */
export const MAX_SEED = Number.MAX_SAFE_INTEGER;

/** A seed per batch position; null stands for a random one. */
export type SeedPositions = readonly (number | null)[];

/**
 * Reads one seed as the client wrote it. Fractions are cut off; negative numbers and blanks mean random.
 * @returns undefined where the text is no number, or is above MAX_SEED
 */
export function parseSeed(value: string | number): number | null | undefined {
  const text = typeof value === "string" ? value.trim() : value;
  if (text === "") return null;
  if (typeof text === "string" && !NUMERIC.test(text)) return undefined;
  const seed = Math.trunc(Number(text));
  if (!(seed <= MAX_SEED)) return undefined;
  return seed < 0 ? null : Math.abs(seed);
}

/** A uniform seed from 0 to 2^32 - 1. */
export function drawSeed(): number {
  return randomInt(2 ** 32);
}

/** One seed per item: the client's at its position, otherwise a drawn one. */
export function assignSeeds(positions: SeedPositions, batchSize: number, draw: () => number): number[] {
  return Array.from({ length: batchSize }, (_, item) => positions[item] ?? draw());
}
