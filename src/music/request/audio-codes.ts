/** Parses audio codes sent by the client, if the task uses them. */
import { z } from "zod";
import { describe, withoutBrackets } from "../../parameters.js";
import { RequestError } from "../errors.js";

/** Codebook size that is assumed before a model is loaded: the largest of the public models. */
const MAX_CODEBOOK_SIZE = 64_000;
/** Maximum number of codes per song: ten minutes at 5 codes per second. */
const MAX_CODES = 3000;
/** Maximum length of a text of codes: twice what MAX_CODES codes need. */
const MAX_CHARACTERS = 120_000;

/**
 * Codes as sent, one element per song; null if all are blank. They are not parsed, because unused codes may be
 * invalid.
 */
export const unparsedCodes = z
  .unknown()
  .transform((value): unknown[] | null => {
    const items = Array.isArray(value) && !isIntegerList(value) ? value : [value];
    return items.every(isBlank) ? null : items;
  })
  .meta({
    type: ["string", "array"],
    items: { type: ["string", "integer", "array"], items: { type: "integer" } },
  });

interface CodesParameters {
  analysis: string | null;
  audioCodes: unknown[] | null;
  taskType: string;
  thinking: boolean;
  useAudioCodes: boolean;
  batchSize: number;
  songs: readonly unknown[] | null;
}

/**
 * Returns the audio codes of the client if the task uses them, else null. A task uses the codes if `use_audio_codes`
 * or `thinking` is set. In a cover the codes replace the source. Other task types with a source ignore the codes.
 * Unused codes are not parsed.
 * @param codebookSize number of different codes of the rendering model; null if not known yet
 */
export function codesInUse(
  { analysis, audioCodes, taskType, thinking, useAudioCodes, batchSize, songs }: CodesParameters,
  codebookSize: number | null,
): (number[] | null)[] | null {
  const isTask = analysis === null && (taskType === "text2music" || taskType === "cover");
  if (audioCodes === null || !isTask || !(thinking || useAudioCodes)) return null;
  if (songs === null) return readCodes(audioCodes, batchSize, codebookSize);
  // Songs with parts of their own may have codes of any length, or none.
  return Array.from({ length: batchSize }, (_, index) => {
    const item = audioCodes.length === 1 ? audioCodes[0] : audioCodes[index];
    return isBlank(item) ? null : (readCodes([item], 1, codebookSize)[0] as number[]);
  });
}

function isBlank(item: unknown): boolean {
  return item == null || (typeof item === "string" && item.trim() === "");
}

/**
 * Parses the codes of every song of the batch; all songs must have the same number of codes. The codes of a song
 * are text (`<|audio_code_7|>…` or `7,8,9`) or a list of integers. A single item applies to all songs.
 * @throws RequestError
 */
function readCodes(items: unknown[], batchSize: number, codebookSize: number | null): number[][] {
  if (items.length > 1 && items.length !== batchSize)
    throw new RequestError(
      `audio_code_string must hold codes for one song or for each song of batch_size ${batchSize}, got ${items.length}`,
    );
  const codes = items.map(codesOf);
  const isCodes = (item: number[] | undefined) =>
    item !== undefined && item.length > 0 && item.length <= MAX_CODES;
  const wrong = codes.findIndex((item) => !isCodes(item));
  if (wrong >= 0) {
    throw new RequestError(
      `audio_code_string must hold 1 to ${MAX_CODES} codes per song, as <|audio_code_N|> or comma-separated integers, got ${describeCodes(items[wrong])}`,
    );
  }
  const size = codebookSize ?? MAX_CODEBOOK_SIZE;
  const invalid = (codes as number[][]).flat().find((code) => code < 0 || code >= size);
  if (invalid !== undefined) {
    throw new RequestError(
      `audio_code_string must hold codes of the model, from 0 to ${size - 1}, got ${invalid}`,
    );
  }
  const perSong = codes.length === 1 ? Array.from({ length: batchSize }, () => codes[0]) : codes;
  if (new Set(perSong.map((song) => song?.length)).size > 1) {
    throw new RequestError("audio_code_string must hold the same number of codes for every song");
  }
  return perSong as number[][];
}

/** The part of invalid codes that an error shows. */
function describeCodes(item: unknown): string {
  const count = codesOf(item)?.length;
  if (count !== undefined && count > MAX_CODES) return `${count} codes`;
  const isCode = (element: unknown) => isIntegerList([element]);
  return describe(Array.isArray(item) ? (item.find((element) => !isCode(element)) ?? item) : item);
}

function isIntegerList(value: unknown[]): boolean {
  // Accept text, too: `parseClientJson` turns integers beyond the safe range into text.
  const isInteger = (element: unknown) =>
    Number.isInteger(element) || (typeof element === "string" && /^\d{16,}$/.test(element));
  return value.length > 0 && value.every(isInteger);
}

/** Parses one item; undefined for a value that is neither text nor a list of integers. */
function codesOf(value: unknown): number[] | undefined {
  if (Array.isArray(value)) return isIntegerList(value) ? value.map(Number) : undefined;
  if (typeof value !== "string" || value.length > MAX_CHARACTERS) return undefined;
  const list = withoutBrackets(value);
  if (/^[-\d\s,]+$/.test(list)) {
    const parts = list.split(",").filter((part) => part.trim() !== "");
    return parts.every((part) => /^\s*-?\d+\s*$/.test(part)) ? parts.map(Number) : undefined;
  }
  return [...value.matchAll(/<\|audio_code_(-?\d+)\|>/g)].map(([, code]) => Number(code));
}
