/** Reads descriptions from sidecar files: text, JSON and tables below the folder of the audio. */

import { basename, dirname, join, parse, posix } from "node:path";
import type { Fields } from "../../parameters.js";
import { isWithin } from "../storage/permitted-root.js";
import { looseName } from "./file-names.js";
import {
  IgnoredNumbers,
  parseNamedLines,
  parseObject,
  parseRecords,
  type RecordFields,
  readRecord,
} from "./records.js";

/** Description of a piece of music; unknown fields are absent. */
export type Description = Pick<
  RecordFields,
  | "caption"
  | "genre"
  | "lyrics"
  | "bpm"
  | "keyscale"
  | "timesignature"
  | "language"
  | "is_instrumental"
  | "custom_tag"
>;

/** Reads a text file; null if it does not exist or is not readable. */
export type ReadSidecarFile = (path: string) => Promise<string | null>;

/** Descriptions of a table, by the name or path of the recording, as written. */
export type TableDescriptions = ReadonlyMap<string, Description>;

/** Size limit of a sidecar file: enough for a table of ten thousand songs with a hundred words each. */
export const MAX_SIDECAR_BYTES = 8 * 2 ** 20;
/** Number of recordings that a warning names. */
const MAX_NAMED = 5;

/** Endings of caption and lyrics files. ACE-Step 1 writes `_prompt.txt` and `_lyrics.txt`. */
const CAPTION_FILES = [".caption.txt", "_caption.txt", "_prompt.txt", ".prompt.txt"];
const LYRICS_FILES = [".lyrics.txt", "_lyrics.txt", ".lrc"];

/**
 * Description of the recording `audioPath`. `<name>.json` overrides `<name>.caption.txt`, and tables override both.
 * Lyrics come from `<name>.lyrics.txt`, else from the JSON file, else from `<name>.txt`. Beside a lyrics file
 * `<name>.txt` has the caption.
 * @param fromTables what tables say about the recording
 * @param warn called for unusable files
 */
export async function describeAudio(
  audioPath: string,
  fromTables: Description,
  read: ReadSidecarFile,
  warn: (message: string) => void,
): Promise<Description> {
  const { dir, name } = parse(audioPath);
  const sidecar = async (suffix: string) => (await read(join(dir, name + suffix)))?.trim() || undefined;
  const first = async (suffixes: readonly string[]) => {
    for (const suffix of suffixes) {
      const text = await sidecar(suffix);
      if (text !== undefined) return text;
    }
    return undefined;
  };
  const [caption, lyrics] = [await first(CAPTION_FILES), await first(LYRICS_FILES)];
  const json = await sidecar(".json");
  return {
    ...describeText(await sidecar(".txt"), lyrics === undefined ? "lyrics" : "caption", `${name}.txt`, warn),
    ...withoutUndefined({ caption }),
    ...(json === undefined ? {} : parseSidecarJson(json, `${name}.json`, warn)),
    ...withoutUndefined({ lyrics }),
    ...fromTables,
  };
}

/** `<name>.txt` has one field, or lines of named fields. */
function describeText(
  text: string | undefined,
  field: "lyrics" | "caption",
  name: string,
  warn: (message: string) => void,
): Description {
  const record = text === undefined ? null : parseNamedLines(text);
  return record === null ? withoutUndefined({ [field]: text }) : describeFile(record, name, warn);
}

/** @param name file name in warnings */
export function parseSidecarJson(
  content: string,
  name: string,
  warn: (message: string) => void,
): Description {
  const record = parseObject(content);
  if (record === null) warn(`${name} is not a JSON object and was skipped`);
  return record === null ? {} : describeFile(record, name, warn);
}

function describeFile(record: Fields, name: string, warn: (message: string) => void): Description {
  const ignored = new IgnoredNumbers();
  const description = describeRecord(readRecord(record, ignored, name));
  for (const warning of ignored.warnings) warn(warning);
  return description;
}

function describeRecord(record: RecordFields): Description {
  const { raw_lyrics, lyrics = raw_lyrics, ...fields } = record;
  const { id, audio_path, filename, formatted_lyrics, duration, labeled, prompt_override, ...own } = fields;
  return withoutUndefined({ ...own, lyrics });
}

/** Descriptions from tables, by the path of the recording. Later tables override earlier ones. */
export async function readTables(
  tablePaths: readonly string[],
  audioPaths: readonly string[],
  read: ReadSidecarFile,
  warn: (message: string) => void,
): Promise<ReadonlyMap<string, Description>> {
  const found = new Map<string, Description>();
  const byName = groupByName(audioPaths, basename);
  const byStem = groupByName(audioPaths, (path) => parse(path).name);
  /** Recordings that a table in `folder` names: by path, else by file name, else by name without extension. */
  const recordingsOf = (file: string, folder: string): string[] => {
    const path = file.replaceAll("\\", "/");
    const name = looseName(posix.basename(path));
    const below = (byName.get(name) ?? byStem.get(name) ?? []).filter((each) => isWithin(folder, each));
    const exact = path.includes("/") ? looseName(join(folder, path)) : null;
    const choices = [
      below.filter((each) => looseName(each) === exact),
      below.filter((each) => basename(each) === posix.basename(path)),
    ];
    return choices.find((choice) => choice.length > 0) ?? below;
  };
  for (const path of tablePaths) {
    const content = await read(path);
    if (content === null) continue;
    const unmatched: string[] = [];
    for (const [file, description] of parseTable(content, basename(path), warn)) {
      const recordings = recordingsOf(file, dirname(path));
      if (recordings.length === 0) unmatched.push(file);
      for (const each of recordings) found.set(each, { ...found.get(each), ...description });
    }
    if (unmatched.length > 0) {
      const more = unmatched.length > MAX_NAMED ? ` and ${unmatched.length - MAX_NAMED} more` : "";
      const named = unmatched.slice(0, MAX_NAMED).join(", ");
      warn(`${basename(path)} describes recordings that are not in its folder: ${named}${more}`);
    }
  }
  return found;
}

function groupByName(paths: readonly string[], nameOf: (path: string) => string): Map<string, string[]> {
  const groups = new Map<string, string[]>();
  for (const path of paths) {
    const name = looseName(nameOf(path));
    groups.set(name, [...(groups.get(name) ?? []), path]);
  }
  return groups;
}

/** Parses a table that has the name of a recording in each record. Its columns may have any order and case. */
export function parseTable(
  content: string,
  name: string,
  warn: (message: string) => void,
): TableDescriptions {
  let records: Fields[];
  try {
    records = parseRecords(content, name);
  } catch (error) {
    warn(`${name} is not a valid table and was skipped: ${(error as Error).message}`);
    return new Map();
  }
  const ignored = new IgnoredNumbers();
  const described = records.flatMap((record): [string, Description][] => {
    const fields = readRecord(record, ignored);
    return fields.audio_path === undefined ? [] : [[fields.audio_path, describeRecord(fields)]];
  });
  for (const warning of ignored.warnings) warn(`${name}: ${warning}`);
  if (described.length === 0) warn(`${name} has no values in a column "File" and was skipped`);
  return new Map(described);
}

/** Removes undefined fields, so that they do not override the fields of another description. */
function withoutUndefined(parts: { [K in keyof Description]?: Description[K] | undefined }): Description {
  return Object.fromEntries(Object.entries(parts).filter(([, value]) => value !== undefined));
}
