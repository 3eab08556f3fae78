/** Seeds of a batch: parsing, drawing and assignment to items. */
import { randomInt } from "node:crypto";
import type { Seed } from "../../engine/types.js";
import { NUMERIC } from "../../parameters.js";

/** Largest seed that the native core accepts. */
export const MAX_SEED = 2n ** 64n - 1n;
const MAX_DIGITS = String(MAX_SEED).length;

/** Seeds of a request, by song index; null: random. */
export type RequestedSeeds = readonly (Seed | null)[];

/**
 * Parses a seed from a client. Truncates fractions. Returns null, for a random seed, if the value is negative or
 * blank. Returns undefined if the value is not a number or exceeds MAX_SEED.
 */
export function parseSeed(value: string | number): Seed | null | undefined {
  const text = String(value).trim();
  if (text === "") return null;
  if (!NUMERIC.test(text)) return undefined;
  const whole = typeof value === "string" ? /^\+?0*(\d+)$/.exec(text)?.[1] : undefined;
  if (whole !== undefined && whole.length > MAX_DIGITS) return undefined;
  const number = Math.trunc(Number(text));
  if (number < 0) return null;
  if (Number.isSafeInteger(number)) return Math.abs(number);
  if (!Number.isFinite(number)) return undefined;
  const seed = BigInt(whole ?? number);
  return seed <= MAX_SEED ? String(seed) : undefined;
}

/** Returns a random seed, uniform from 0 to 2^32 - 1. */
export function drawSeed(): number {
  return randomInt(2 ** 32);
}

/** Returns one seed for each song. Draws the seeds that are null or missing. */
export function assignSeeds(requested: RequestedSeeds, batchSize: number, draw: () => Seed): Seed[] {
  return Array.from({ length: batchSize }, (_, item) => requested[item] ?? draw());
}

/** Maps a seed to an index below `count`. */
export function indexFromSeed(seed: Seed, count: number): number {
  return Number(BigInt(seed) % BigInt(count));
}
