/** What people put beside their audio to describe it. */
import { readdir, readFile } from "node:fs/promises";
import { join, parse } from "node:path";
import { parse as parseCsv } from "csv-parse/sync";
import { isObject } from "../request/json.js";
import { readWholeNumber } from "./data-set.js";

/** What is said of one piece of music; absent where nothing is. */
export interface Description {
  caption?: string;
  lyrics?: string;
  bpm?: number;
  keyScale?: string;
  timeSignature?: string;
  language?: string;
}

/** Reads the text of a file, or null where it does not exist or may not be read. */
export type ReadSideFile = (path: string) => Promise<string | null>;

/** Descriptions by the name of the audio file. */
export type Tables = ReadonlyMap<string, Description>;

const BYTE_ORDER_MARK = "\uFEFF";

/** @returns null where there is no such file */
export async function readText(path: string): Promise<string | null> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if (["ENOENT", "EISDIR"].includes((error as NodeJS.ErrnoException).code ?? "")) return null;
    throw error;
  }
}

/**
 * The description of `audioPath`: `<name>.caption.txt`, then `<name>.json` over it, then the tables over both; lyrics
 * from `<name>.lyrics.txt`, else from `<name>.txt`.
 * @param warn is told of a file that cannot be understood
 */
export async function describeAudio(
  audioPath: string,
  tables: Tables,
  read: ReadSideFile,
  warn: (message: string) => void,
): Promise<Description> {
  const { dir, name, base } = parse(audioPath);
  const beside = async (suffix: string) => (await read(join(dir, name + suffix)))?.trim() || undefined;
  const json = await beside(".json");
  return {
    ...given({ caption: await beside(".caption.txt") }),
    ...given({ lyrics: (await beside(".lyrics.txt")) ?? (await beside(".txt")) }),
    ...(json === undefined ? {} : parseSideJson(json, `${name}.json`, warn)),
    ...tables.get(base),
  };
}

/** @param name what a warning calls the text */
export function parseSideJson(content: string, name: string, warn: (message: string) => void): Description {
  let value: unknown;
  try {
    value = JSON.parse(content);
  } catch {
    value = undefined;
  }
  if (!isObject(value)) {
    warn(`${name} is not a JSON object and was left out`);
    return {};
  }
  return given({
    caption: textOf(value.caption),
    bpm: readWholeNumber(value.bpm) ?? undefined,
    keyScale: textOf(value.keyscale),
    timeSignature: textOf(value.timesignature),
    language: textOf(value.language),
  });
}

/** The tables in `directory`, later names winning over earlier ones. */
export async function readTables(
  directory: string,
  read: ReadSideFile,
  warn: (message: string) => void,
): Promise<Tables> {
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

/**
 * A table with the columns File, BPM, Key and Caption in any order and case, separated by comma, semicolon or tab.
 * @param name what a warning calls the text
 */
export function parseTable(content: string, name: string, warn: (message: string) => void): Tables {
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
    warn(`${name} cannot be read as a table and was left out: ${(error as Error).message}`);
    return new Map();
  }
  const described = rows.filter((row) => row.file);
  if (described.length === 0) warn(`${name} names no file in a column "File" and was left out`);
  return new Map(
    described.map((row) => [
      row.file as string,
      given({
        caption: textOf(row.caption),
        bpm: readWholeNumber(row.bpm) ?? undefined,
        keyScale: textOf(row.key),
      }),
    ]),
  );
}

/** The separator that the header uses most. */
function delimiterOf(content: string): string {
  const [header = ""] = content.replace(BYTE_ORDER_MARK, "").split(/\r?\n/, 1);
  const count = (separator: string) => header.split(separator).length;
  return [",", ";", "\t"].reduce((best, separator) => (count(separator) > count(best) ? separator : best));
}

function textOf(value: unknown): string | undefined {
  if (typeof value === "number") return String(value);
  return typeof value === "string" ? value.trim() || undefined : undefined;
}

/** Without the parts that are not there, so that one description can lie over another. */
function given(parts: { [K in keyof Description]?: Description[K] | undefined }): Description {
  return Object.fromEntries(Object.entries(parts).filter(([, value]) => value !== undefined));
}
