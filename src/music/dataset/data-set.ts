/**
 * Data sets: music files with descriptions. Reads and writes them as JSON with the field names of other tools,
 * and builds the training prompt of each sample.
 */
import { createHash, randomUUID } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, resolve, win32 } from "node:path";
import { z } from "zod";
import { UNKNOWN_LANGUAGE } from "../../engine/metadata.js";
import { INSTRUMENTAL_LYRICS, isInstrumentalTag } from "../../engine/prompts.js";
import { isObject } from "../../parameters.js";
import { writeAtomically } from "../../system/atomic-file.js";
import { MAX_TEXT_BYTES, readTextFile, UnusableFileError } from "../../system/regular-file.js";
import { RequestError } from "../errors.js";
import {
  IgnoredNumbers,
  isTable,
  parseRecords,
  type RecordFields,
  readFlag,
  readRecord,
  readText,
} from "./records.js";

export const TAG_POSITIONS = ["prepend", "append", "replace"] as const;
export type TagPosition = (typeof TAG_POSITIONS)[number];

/** Pattern of valid sample ids. The ids become file names. */
const PLAIN_ID = /^[A-Za-z0-9_-]{1,64}$/;

const text = z.string().default("");

/** The fields of a sample. Missing ones get defaults. */
const fieldsSchema = z
  .object({
    /** Name of the sample file; unique in its data set. */
    id: text,
    /** In a file, the path may be relative to the data set file. Loading the file makes the path absolute. */
    audio_path: z.string(),
    filename: text,
    caption: text,
    genre: text,
    lyrics: text,
    /** Lyrics from a sidecar file; "" for none. */
    raw_lyrics: text,
    /** Lyrics rewritten by a language model, "" for none. */
    formatted_lyrics: text,
    bpm: z.number().nullable().default(null),
    keyscale: text,
    timesignature: text,
    /** Length of the music in whole seconds. */
    duration: z.number().default(0),
    /** Language of the lyrics: a code such as "en", or "unknown". */
    language: z.string().default(UNKNOWN_LANGUAGE),
    /** By default, whether there are no lyrics. */
    is_instrumental: z.boolean().optional(),
    custom_tag: text,
    /** Only labeled samples are used for training. By default, whether the sample has a caption. */
    labeled: z.boolean().optional(),
    /** Field that becomes the training prompt; null: chosen by `genre_ratio`. */
    prompt_override: z.enum(["caption", "genre"]).nullable().default(null),
  })
  .transform(({ is_instrumental, labeled, ...fields }) => {
    const lyrics = fields.lyrics || fields.raw_lyrics;
    return {
      ...fields,
      lyrics: lyrics || INSTRUMENTAL_LYRICS,
      is_instrumental: is_instrumental ?? (lyrics === "" || isInstrumentalTag(lyrics)),
      labeled: labeled ?? fields.caption.trim() !== "",
    };
  });

/** A sample as stored in files, in the spelling of any tool. Unknown keys are ignored. */
const sampleSchema = (ignored: IgnoredNumbers) =>
  z.preprocess((record) => (isObject(record) ? readRecord(record, ignored) : record), fieldsSchema);

/** A value that may be missing, null or of any type. */
const any = z.unknown().optional();
const orElse = <T>(type: z.ZodType<T>, fallback: () => NoInfer<T>) =>
  type.nullish().transform((value) => value ?? fallback());

const metadataSchema = z.object({
  name: any.transform((value) => readText(value) ?? "untitled_dataset"),
  /** Trigger word for the trained style; "" for none. */
  custom_tag: any.transform((value) => readText(value) ?? ""),
  tag_position: orElse(z.enum(TAG_POSITIONS), (): TagPosition => "prepend"),
  created_at: orElse(z.string(), () => new Date().toISOString()),
  all_instrumental: any.transform((value) => readFlag(value) ?? true),
  /** Percentage of samples described by their genre. */
  genre_ratio: orElse(z.number().min(0).max(100), () => 0),
});

/** A data set file; a bare array of samples is accepted, too. */
const fileSchema = (ignored: IgnoredNumbers) =>
  z.preprocess(
    (value) => (Array.isArray(value) ? { samples: value } : value),
    z.object({ metadata: metadataSchema.prefault({}), samples: z.array(sampleSchema(ignored)) }),
  );

export type DataSetSample = z.output<typeof fieldsSchema>;
export type DataSet = z.output<typeof metadataSchema> & { samples: DataSetSample[] };

/**
 * Reads a data set file: JSON, or a table. Makes audio paths absolute, but does not check them.
 * @throws RequestError
 */
export async function loadDataSet(path: string) {
  const content = await readTextFile(path, MAX_TEXT_BYTES).catch((error: unknown) => {
    if (!(error instanceof UnusableFileError)) throw error;
    const fault = error.reason === "absent" ? "not found" : error.fault;
    throw new RequestError(`Dataset ${path} ${fault}`, { cause: error });
  });
  return parseDataSet(content, path);
}

/**
 * @param path path of the file. Relative audio paths start at the folder of the file.
 * @returns the data set, and warnings about ignored values
 */
export function parseDataSet(content: string, path: string) {
  const ignored = new IgnoredNumbers();
  const parsed = fileSchema(ignored).safeParse(parseContent(content, path));
  if (!parsed.success) {
    const issue = parsed.error.issues[0] as z.core.$ZodIssue;
    throw new RequestError(`Dataset ${path}: ${issue.path.join(".") || "its content"}: ${issue.message}`);
  }
  const { metadata, samples } = parsed.data;
  const dataSet: DataSet = {
    ...metadata,
    samples: withUniqueIds(samples.map((fields) => sampleOf(fields, dirname(path)))),
  };
  return { dataSet, warnings: ignored.warnings };
}

/** The messages do not quote the parser, because it would quote the file, whose content may be private. */
function parseContent(content: string, path: string): unknown {
  const format = isTable(path) ? "a table" : "JSON";
  try {
    return isTable(path) ? parseRecords(content, path) : JSON.parse(content);
  } catch (error) {
    throw new RequestError(`Dataset ${path} is not ${format}`, { cause: error });
  }
}

/** @param fields those of a valid sample */
export function toSample(fields: RecordFields): DataSetSample {
  return fieldsSchema.parse(fields);
}

function sampleOf(fields: DataSetSample, folder: string): DataSetSample {
  return {
    ...fields,
    id: PLAIN_ID.test(fields.id) ? fields.id : sampleId(fields.audio_path),
    audio_path: resolve(folder, fields.audio_path),
    filename: win32.basename(fields.filename || fields.audio_path),
  };
}

export async function saveDataSet(dataSet: DataSet, path: string): Promise<void> {
  await writeJson(path, { metadata: metadataFields(dataSet), samples: dataSet.samples });
}

/** Writes indented JSON atomically and creates the folder. */
export async function writeJson(path: string, value: unknown): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  const text = `${JSON.stringify(value, null, 2)}\n`;
  await writeAtomically(path, (partial) => writeFile(partial, text, { flag: "wx" }));
}

/** Fields that describe the whole data set, for files and manifests. */
export function metadataFields({ samples, ...metadata }: DataSet) {
  return { ...metadata, num_samples: samples.length };
}

/** Returns the fields of a sample that lists of samples show. */
export function sampleSummary(sample: DataSetSample, index: number) {
  const { id, raw_lyrics, formatted_lyrics, custom_tag, ...fields } = sample;
  return { index, ...fields };
}

export type SampleSummary = ReturnType<typeof sampleSummary>;

/**
 * Returns eight characters of a hash of the text. Equal texts give equal ids, so preprocessing finds the files of an
 * earlier run.
 */
export function sampleId(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 8);
}

/** Makes ids unique; the first sample with an id keeps it. */
export function withUniqueIds(samples: readonly DataSetSample[]): DataSetSample[] {
  const taken = new Set<string>();
  return samples.map((sample) => {
    const id = taken.has(sample.id) ? sampleId(randomUUID()) : sample.id;
    taken.add(id);
    return { ...sample, id };
  });
}

/**
 * Returns the training prompt of each labeled sample, by sample id. A prompt is the caption or the genre, with the
 * trigger word. Hashes of the ids choose between caption and genre, so that a new sample changes few other prompts.
 */
export function trainingPrompts(dataSet: DataSet): Map<string, string> {
  const labeled = dataSet.samples.filter((sample) => sample.labeled);
  const genreCount = Math.floor((labeled.length * dataSet.genre_ratio) / 100);
  const ranked = labeled.map(({ id }) => id).sort((a, b) => (sampleId(a) < sampleId(b) ? -1 : 1));
  const byGenre = new Set(ranked.slice(0, genreCount));
  return new Map(
    labeled.map((sample) => {
      const kind = sample.prompt_override ?? (byGenre.has(sample.id) ? "genre" : "caption");
      const text = kind === "genre" ? sample.genre || sample.caption : sample.caption;
      return [sample.id, withTag(text, sample.custom_tag || dataSet.custom_tag, dataSet.tag_position)];
    }),
  );
}

function withTag(text: string, tag: string, position: TagPosition): string {
  if (tag === "") return text;
  if (text === "" || position === "replace") return tag;
  return position === "prepend" ? `${tag}, ${text}` : `${text}, ${tag}`;
}
