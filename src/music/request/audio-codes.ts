/** The client's audio codes: what was sent as any, and how it is read where codes act. */
import { z } from "zod";
import { describe } from "../../parameters.js";
import { RequestError } from "../errors.js";

/** The vocabulary has slots above this code, the codebook has not. */
const MAX_CODE = 63_999;
/** Ten minutes at 5 codes a second. */
const MAX_CODES = 3000;
/** Twice as long as the longest codes spelled out. */
const MAX_CHARACTERS = 120_000;

/**
 * A value per item, unread: what is wrong with codes matters only where they act. Null, as for a list of nothing but
 * blanks: there are none.
 */
export const codeItems = z
  .unknown()
  .transform((value): unknown[] | null => {
    const items = Array.isArray(value) && !isIntegerList(value) ? value : [value];
    return items.every(isBlank) ? null : items;
  })
  .meta({
    type: ["string", "array"],
    items: { type: ["string", "integer", "array"], items: { type: "integer" } },
  });

/**
 * Codes for every item of the batch, all of one length. An item is text of codes (`<|audio_code_7|>…` or `7,8,9`) or a
 * list of integers; a single one serves all.
 * @throws RequestError
 */
export function readCodes(items: unknown[], batchSize: number): number[][] {
  if (items.length > 1 && items.length !== batchSize) throw wrongCount(items.length, batchSize);
  const codes = items.map(codesOf);
  if (!codes.every((item) => item !== undefined && item.length > 0 && item.length <= MAX_CODES)) {
    throw new RequestError(
      `audio_code_string must hold 1 to ${MAX_CODES} codes per item, as <|audio_code_N|> or comma-separated integers, got ${describe(items.length === 1 ? items[0] : items)}`,
    );
  }
  return codesPerItem(codes as number[][], batchSize);
}

/** All items of a batch are rendered at one length. */
function codesPerItem(codes: number[][], batchSize: number): number[][] {
  const perItem = codes.length === 1 ? Array.from({ length: batchSize }, () => codes[0] as number[]) : codes;
  if (new Set(perItem.map((item) => item.length)).size > 1) {
    throw new RequestError("audio_code_string must hold the same number of codes for every item");
  }
  return perItem;
}

function wrongCount(count: number, batchSize: number): RequestError {
  return new RequestError(
    `audio_code_string must hold codes for one item or for each of batch_size ${batchSize}, got ${count}`,
  );
}

function isBlank(value: unknown): boolean {
  return value === null || (typeof value === "string" && value.trim() === "");
}

function isIntegerList(value: unknown[]): boolean {
  return value.length > 0 && value.every(Number.isInteger);
}

/** Undefined where the value is neither text nor a list of integers. */
function codesOf(value: unknown): number[] | undefined {
  if (Array.isArray(value)) return isIntegerList(value) ? value.map(toCode) : undefined;
  if (typeof value !== "string" || value.length > MAX_CHARACTERS) return undefined;
  if (/^[\d\s,]+$/.test(value)) {
    return value
      .split(",")
      .filter((part) => part.trim() !== "")
      .map(toCode);
  }
  return [...value.matchAll(/<\|audio_code_(\d+)\|>/g)].map(([, code]) => toCode(code));
}

function toCode(value: unknown): number {
  return Math.min(Math.max(Number(value), 0), MAX_CODE);
}
