/** Reads descriptions from sidecar files: text, JSON and tables in the folder of the audio. */

import { readdir } from "node:fs/promises";
import { join, parse } from "node:path";
import { parse as parseCsv } from "csv-parse/sync";
import { isObject } from "../../parameters.js";
import { readRegular, UnusableFileError } from "../../system/regular-file.js";
import { readWholeNumber } from "./data-set.js";

/** Description of a piece of music; unknown fields are absent. */
export interface Description {
  caption?: string;
  lyrics?: string;
  bpm?: number;
  keyScale?: string;
  timeSignature?: string;
  language?: string;
}

/** Reads a text file; null if it does not exist or is not readable. */
export type ReadSidecarFile = (path: string) => Promise<string | null>;

/** Descriptions from tables, by audio file name. */
export type TableDescriptions = ReadonlyMap<string, Description>;

const BYTE_ORDER_MARK = "\uFEFF";
/** Size limit of a sidecar file: enough for a table of ten thousand songs with a hundred words each. */
const MAX_SIDECAR_BYTES = 8 * 2 ** 20;

/**
 * Reads a text file; null if it does not exist.
 * @throws UnusableFileError if it is not a regular file or is too large
 */
export async function readText(path: string): Promise<string | null> {
  try {
    return (await readRegular(path, MAX_SIDECAR_BYTES)).toString("utf8");
  } catch (error) {
    if (error instanceof UnusableFileError && error.reason === "absent") return null;
    throw error;
  }
}

/**
 * Description of the recording `audioPath`. `<name>.json` overrides `<name>.caption.txt`, and tables override both.
 * Lyrics come from `<name>.lyrics.txt`, or else from `<name>.txt`.
 * @param warn called for unusable files
 */
export async function describeAudio(
  audioPath: string,
  tables: TableDescriptions,
  read: ReadSidecarFile,
  warn: (message: string) => void,
): Promise<Description> {
  const { dir, name, base } = parse(audioPath);
  const sidecar = async (suffix: string) => (await read(join(dir, name + suffix)))?.trim() || undefined;
  const json = await sidecar(".json");
  return {
    ...withoutUndefined({ caption: await sidecar(".caption.txt") }),
    ...withoutUndefined({ lyrics: (await sidecar(".lyrics.txt")) ?? (await sidecar(".txt")) }),
    ...(json === undefined ? {} : parseSidecarJson(json, `${name}.json`, warn)),
    ...tables.get(base),
  };
}

/** @param name file name in warnings */
export function parseSidecarJson(
  content: string,
  name: string,
  warn: (message: string) => void,
): Description {
  let value: unknown;
  try {
    value = JSON.parse(content);
  } catch {
    value = undefined;
  }
  if (!isObject(value)) {
    warn(`${name} is not a JSON object and was skipped`);
    return {};
  }
  return withoutUndefined({
    caption: textOf(value.caption),
    bpm: readWholeNumber(value.bpm) ?? undefined,
    keyScale: textOf(value.keyscale),
    timeSignature: textOf(value.timesignature),
    language: textOf(value.language),
  });
}

/** Reads all tables in `directory`, in the order of their names. Later tables override earlier ones. */
export async function readTables(
  directory: string,
  read: ReadSidecarFile,
  warn: (message: string) => void,
): Promise<TableDescriptions> {
  const tables = new Map<string, Description>();
  const names = (await readdir(directory)).filter((name) => name.toLowerCase().endsWith(".csv")).sort();
  for (const name of names) {
    const content = await read(join(directory, name));
    if (content === null) continue;
    for (const [file, description] of parseTable(content, name, warn)) {
      tables.set(file, { ...tables.get(file), ...description });
    }
  }
  return tables;
}

/** Parses a table with the columns File, BPM, Key and Caption in any order; separator: comma, semicolon or tab. */
export function parseTable(
  content: string,
  name: string,
  warn: (message: string) => void,
): TableDescriptions {
  let rows: Record<string, string>[];
  try {
    rows = parseCsv(content, {
      bom: true,
      columns: (header: string[]) => header.map((column) => column.trim().toLowerCase()),
      delimiter: delimiterOf(content),
      relax_column_count: true,
      skip_empty_lines: true,
      trim: true,
    });
  } catch (error) {
    warn(`${name} is not a valid table and was skipped: ${(error as Error).message}`);
    return new Map();
  }
  const described = rows.filter((row) => row.file);
  if (described.length === 0) warn(`${name} has no values in a column "File" and was skipped`);
  return new Map(
    described.map((row) => [
      row.file as string,
      withoutUndefined({
        caption: textOf(row.caption),
        bpm: readWholeNumber(row.bpm) ?? undefined,
        keyScale: textOf(row.key),
      }),
    ]),
  );
}

/** The most frequent separator of the header. */
function delimiterOf(content: string): string {
  const [header = ""] = content.replace(BYTE_ORDER_MARK, "").split(/\r?\n/, 1);
  const count = (separator: string) => header.split(separator).length;
  return [",", ";", "\t"].reduce((best, separator) => (count(separator) > count(best) ? separator : best));
}

function textOf(value: unknown): string | undefined {
  if (typeof value === "number") return String(value);
  return typeof value === "string" ? value.trim() || undefined : undefined;
}

/** Removes undefined fields, so that they do not override the fields of another description. */
function withoutUndefined(parts: { [K in keyof Description]?: Description[K] | undefined }): Description {
  return Object.fromEntries(Object.entries(parts).filter(([, value]) => value !== undefined));
}
