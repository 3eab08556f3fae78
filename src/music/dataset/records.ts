/** Reads descriptions of recordings whose field names and value types vary by tool. */
import { parse as parseCsv } from "csv-parse/sync";
import { canonicalLanguage } from "../../engine/metadata.js";
import {
  abbreviateList,
  BPM_UNIT,
  describe,
  FALSE_WORDS,
  type Fields,
  isObject,
  meansUnset,
  TRUE_WORDS,
  withoutClock,
  withoutUnit,
} from "../../parameters.js";

/** Maximum tempo of a sample. */
export const MAX_SAMPLE_BPM = 1000;
const MAX_SAMPLE_SECONDS = 24 * 3600;

/** A value that is no number, or too large. */
class BadNumber {
  constructor(readonly max: number) {}
}

const field = <Value>(read: (value: unknown) => Value | null | undefined, ...names: string[]) => ({
  read,
  names,
});
const readLines = (value: unknown) => readText(value, "\n");

/**
 * How each field is read, and its names in lower case without spaces, underscores and hyphens; the first that has a value
 * counts. `norm_lyrics` and lists of `tags` are of ACE-Step 1, `file_name` and `text` of Hugging Face, `signature` of
 * Side-Step.
 */
const FIELDS = {
  id: field(readText, "id"),
  audio_path: field(
    readAudioPath,
    ...["audiopath", "audiofile", "filepath", "path", "file", "filename", "audio", "location"],
  ),
  filename: field(readText, "filename"),
  caption: field(readText, "caption", "prompt", "tags", "text", "description"),
  genre: field(readText, "genre", "genres"),
  lyrics: field(readLines, "lyrics", "lyric", "normlyrics"),
  raw_lyrics: field(readLines, "rawlyrics"),
  formatted_lyrics: field(readLines, "formattedlyrics"),
  /** A number, or a text such as "98.6 BPM". */
  bpm: field((value) => readPositive(withoutUnit(value, BPM_UNIT), MAX_SAMPLE_BPM), "bpm", "tempo"),
  keyscale: field(readFact, "keyscale", "key", "scale"),
  timesignature: field(readFact, "timesignature", "timesig", "signature", "meter", "metre"),
  /** A number of seconds, or a text such as "205.3 s" or "3:25". */
  duration: field(
    (value) => readPositive(withoutClock(value), MAX_SAMPLE_SECONDS),
    ...["duration", "durationseconds", "audioduration", "seconds"],
  ),
  language: field(readLanguage, "language", "lang", "vocallanguage"),
  is_instrumental: field(readFlag, "isinstrumental", "instrumental"),
  custom_tag: field(readText, "customtag", "trigger", "triggerword", "activationtag"),
  labeled: field(readFlag, "labeled", "labelled"),
  prompt_override: field(readText, "promptoverride"),
};

/** Fields of a record that have a value, by their names in data set files. */
export type RecordFields = {
  [Name in keyof typeof FIELDS]?: Exclude<NonNullable<ReturnType<(typeof FIELDS)[Name]["read"]>>, BadNumber>;
};

/** Numbers of records that were ignored, because they are none or too large. */
export class IgnoredNumbers {
  readonly #byRule = new Map<string, string[]>();

  /** @param recording what the value describes */
  add(rule: string, value: unknown, recording: string): void {
    const values = this.#byRule.get(rule) ?? [];
    values.push(`${describe(value)} of ${recording}`);
    this.#byRule.set(rule, values);
  }

  /** One line for each field. */
  get warnings(): string[] {
    return [...this.#byRule].map(([rule, values]) => `${rule}; ignored: ${abbreviateList(values)}`);
  }
}

/**
 * Reads the known fields of a record.
 * @param recording what the record describes; by default the recording that it names
 */
export function readRecord(record: Fields, ignored: IgnoredNumbers, recording?: string): RecordFields {
  const given = new Map(
    Object.entries(record)
      .filter(([, value]) => !isBlank(value))
      .map(([name, value]) => [plainName(name), value]),
  );
  const found = Object.entries(FIELDS).flatMap(([field, { read, names }]) => {
    const name = names.find((each) => given.has(each));
    const sent = name === undefined ? undefined : given.get(name);
    const value = read(sent);
    return value == null ? [] : [{ field, sent, value }];
  });
  const fields: RecordFields = Object.fromEntries(
    found.flatMap(({ field, value }) => (value instanceof BadNumber ? [] : [[field, value]])),
  );
  const owner = recording ?? fields.filename ?? fields.audio_path ?? "a recording";
  for (const { field, sent, value } of found) {
    if (value instanceof BadNumber) ignored.add(`${field} must be a number up to ${value.max}`, sent, owner);
  }
  return fields;
}

function isBlank(value: unknown): boolean {
  if (Array.isArray(value)) return value.every(isBlank);
  return value == null || (typeof value === "string" && value.trim() === "");
}

function namesOf(field: keyof typeof FIELDS): readonly string[] {
  return FIELDS[field].names;
}

function plainName(name: string): string {
  return name.toLowerCase().replace(/[\s_-]/g, "");
}

/** Text, a number or a list of texts; undefined if it is blank or of another type. */
export function readText(value: unknown, separator = ", "): string | undefined {
  if (typeof value === "number") return String(value);
  if (Array.isArray(value)) return readText(value.flatMap((part) => readText(part) ?? []).join(separator));
  return typeof value === "string" ? value.trim() || undefined : undefined;
}

/** Like `readText`, but words such as "N/A" and "auto" are undefined too. */
function readFact(value: unknown): string | undefined {
  const text = readText(value);
  return text === undefined || meansUnset(text) ? undefined : text;
}

/** Code of a language, or its text if it is not supported; undefined for none. */
function readLanguage(value: unknown): string | undefined {
  const text = readFact(value);
  return text === undefined ? undefined : (canonicalLanguage(text) ?? text);
}

/** A whole positive number. Undefined for words such as "N/A" and for less than 1, which mean unknown. */
function readPositive(value: unknown, max: number): number | BadNumber | undefined {
  if (value == null || (typeof value === "string" && meansUnset(value))) return undefined;
  const number = typeof value === "string" ? Number(value) : value;
  if (typeof number !== "number" || !(number <= max)) return new BadNumber(max);
  return number < 1 ? undefined : Math.trunc(number);
}

/** A boolean, a number or a word such as "yes"; undefined for anything else. */
export function readFlag(value: unknown): boolean | undefined {
  if (typeof value === "boolean") return value;
  if (typeof value !== "string" && typeof value !== "number") return undefined;
  const word = String(value).trim().toLowerCase();
  if (TRUE_WORDS.includes(word) || word === "1") return true;
  return FALSE_WORDS.includes(word) || word === "0" ? false : undefined;
}

/** Where the recording is, as written. */
function readAudioPath(value: unknown): string | undefined {
  return readText(isObject(value) ? value.path : value);
}

/** Matches names of tables: one record per row or line. The log of automatic labels is no table. */
const TABLE = /(?<!\.autolabel)\.(csv|tsv|jsonl)$/i;

export function isTable(name: string): boolean {
  return TABLE.test(name);
}

/** Records of a table, by the extension of its name. @throws Error that says what is wrong with the table */
export function parseRecords(content: string, name: string): Fields[] {
  return name.toLowerCase().endsWith(".jsonl") ? parseLines(content) : parseRows(content);
}

function parseLines(content: string): Fields[] {
  return content.split(/\r?\n/).flatMap((line, index) => {
    if (line.trim() === "") return [];
    const record = parseObject(line);
    if (record === null) throw new Error(`line ${index + 1} is not a JSON object`);
    return [record];
  });
}

/** Parses a JSON object; null for anything else. */
export function parseObject(text: string): Fields | null {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}

/** Excel names the separator in a first line. */
const SEPARATOR_LINE = /^sep=.\r?\n/i;

/** Rows with comma, semicolon or tab as separator. */
function parseRows(content: string): Fields[] {
  const table = content.replace(SEPARATOR_LINE, "");
  return parseCsv(table, {
    columns: true,
    delimiter: delimiterOf(table),
    relax_column_count: true,
    skip_empty_lines: true,
    trim: true,
  });
}

/** The most frequent separator of the header. */
function delimiterOf(table: string): string {
  const [header = ""] = table.split(/\r?\n/, 1);
  const count = (separator: string) => header.split(separator).length;
  return [",", ";", "\t"].reduce((best, separator) => (count(separator) > count(best) ? separator : best));
}

/** Names that begin a line in Side-Step's text files. */
const LINE_NAMES: ReadonlySet<string> = new Set([
  ...["caption", "tags", "repeat", "repeats", "tagposition", "promptoverride"],
  ...(["genre", "lyrics", "bpm", "keyscale", "timesignature", "duration"] as const).flatMap(namesOf),
  ...(["language", "is_instrumental", "custom_tag"] as const).flatMap(namesOf),
]);

/**
 * Record of a text file with lines such as `caption: a waltz`, as Side-Step writes them. Lyrics come last and take all
 * further lines. Null for other texts.
 */
export function parseNamedLines(text: string): Fields | null {
  const record: Record<string, string> = {};
  let name = "";
  for (const line of text.split(/\r?\n/)) {
    const [, word = "", value = ""] = /^\s*([A-Za-z _]{2,20}):(.*)$/.exec(line) ?? [];
    if (name !== "lyrics" && LINE_NAMES.has(plainName(word))) {
      name = plainName(word);
      record[name] = value.trim();
    } else if (name !== "") record[name] += `\n${line}`;
    else if (line.trim() !== "") return null;
  }
  const { caption, lyrics } = readRecord(record, new IgnoredNumbers());
  return caption === undefined && lyrics === undefined ? null : record;
}
