/** Data sets as JSON: the names and shapes that the ecosystem's files and clients know (reference/training.md 2.2). */
import { readFile } from "node:fs/promises";
import { basename, dirname, resolve } from "node:path";
import { z } from "zod";
import { RequestError } from "../errors.js";
import {
  type DataSet,
  type DataSetSample,
  INSTRUMENTAL,
  sampleId,
  TAG_POSITIONS,
  withOwnIds,
} from "./data-set.js";
import { writeJson } from "./json-file.js";

/** Ids become file names. */
const PLAIN_ID = /^[A-Za-z0-9_-]{1,64}$/;

/** Some tools write numbers where others write text, as in a time signature of 4. */
const text = (fallback: string) =>
  z
    .union([z.string(), z.number().transform(String)])
    .nullish()
    .transform((value) => value ?? fallback);
const flag = (fallback: boolean) =>
  z
    .boolean()
    .nullish()
    .transform((value) => value ?? fallback);
/** A number or text that spells one; null for anything else, such as "N/A". */
const wholeNumber = z.unknown().optional().transform(readWholeNumber);

export function readWholeNumber(value: unknown): number | null {
  const isText = typeof value === "string" && value.trim() !== "";
  const number = isText ? Number(value) : value;
  return typeof number === "number" && Number.isFinite(number) ? Math.trunc(number) : null;
}

/** A sample as files hold it. Unknown keys are passed over, absent and null ones have defaults. */
const sampleSchema = z.object({
  id: text(""),
  audio_path: z.string().min(1),
  filename: text(""),
  caption: text(""),
  genre: text(""),
  lyrics: text(INSTRUMENTAL),
  raw_lyrics: text(""),
  formatted_lyrics: text(""),
  bpm: wholeNumber,
  keyscale: text(""),
  timesignature: text(""),
  duration: wholeNumber.transform((value) => value ?? 0),
  language: text("unknown"),
  is_instrumental: flag(true),
  custom_tag: text(""),
  labeled: flag(false),
  prompt_override: z
    .enum(["caption", "genre"])
    .nullish()
    .transform((value) => value ?? null),
});

const metadataSchema = z.object({
  name: text("untitled_dataset"),
  custom_tag: text(""),
  tag_position: z
    .enum(TAG_POSITIONS)
    .nullish()
    .transform((value) => value ?? "prepend"),
  created_at: z
    .string()
    .nullish()
    .transform((value) => value ?? new Date().toISOString()),
  all_instrumental: flag(true),
  genre_ratio: z
    .number()
    .min(0)
    .max(100)
    .nullish()
    .transform((value) => value ?? 0),
});

/** A bare array of samples counts as well. */
const fileSchema = z.preprocess(
  (value) => (Array.isArray(value) ? { samples: value } : value),
  z.object({ metadata: metadataSchema.prefault({}), samples: z.array(sampleSchema) }),
);

/**
 * Reads a data set. Relative audio paths start at the folder of the file; whether they exist is not looked at.
 * @throws RequestError naming the file and what is wrong with it
 */
export async function loadDataSet(path: string): Promise<DataSet> {
  const content = await readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
    const reason = error.code === "ENOENT" ? "not found" : `cannot be read: ${error.message}`;
    throw new RequestError(`Dataset ${path} ${reason}`, { cause: error });
  });
  return parseDataSet(content, path);
}

/** @param path what relative audio paths are relative to, and errors call the text */
export function parseDataSet(content: string, path: string): DataSet {
  let value: unknown;
  try {
    value = JSON.parse(content);
  } catch (error) {
    // The parser's own words quote the file, which may be any that the path leads to.
    throw new RequestError(`Dataset ${path} is not JSON`, { cause: error });
  }
  const parsed = fileSchema.safeParse(value);
  if (!parsed.success) {
    const issue = parsed.error.issues[0] as z.core.$ZodIssue;
    throw new RequestError(`Dataset ${path}: ${issue.path.join(".") || "its content"}: ${issue.message}`);
  }
  const { metadata, samples } = parsed.data;
  return {
    name: metadata.name,
    customTag: metadata.custom_tag,
    tagPosition: metadata.tag_position,
    createdAt: metadata.created_at,
    allInstrumental: metadata.all_instrumental,
    genreRatio: metadata.genre_ratio,
    samples: withOwnIds(samples.map((fields) => sampleOf(fields, dirname(path)))),
  };
}

function sampleOf(fields: z.output<typeof sampleSchema>, folder: string): DataSetSample {
  const audioPath = resolve(folder, fields.audio_path);
  return {
    id: PLAIN_ID.test(fields.id) ? fields.id : sampleId(fields.audio_path),
    audioPath,
    filename: fields.filename || basename(audioPath),
    caption: fields.caption,
    genre: fields.genre,
    lyrics: fields.lyrics,
    rawLyrics: fields.raw_lyrics,
    formattedLyrics: fields.formatted_lyrics,
    bpm: fields.bpm,
    keyScale: fields.keyscale,
    timeSignature: fields.timesignature,
    durationSeconds: fields.duration,
    language: fields.language,
    isInstrumental: fields.is_instrumental,
    customTag: fields.custom_tag,
    labeled: fields.labeled,
    promptOverride: fields.prompt_override,
  };
}

/** Writes the whole file or leaves the old one; its folder is made. */
export async function saveDataSet(dataSet: DataSet, path: string): Promise<void> {
  await writeJson(path, {
    metadata: metadataFields(dataSet),
    samples: dataSet.samples.map(sampleFields),
  });
}

/** What files and manifests say of the set as a whole. */
export function metadataFields(dataSet: DataSet) {
  return {
    name: dataSet.name,
    custom_tag: dataSet.customTag,
    tag_position: dataSet.tagPosition,
    created_at: dataSet.createdAt,
    num_samples: dataSet.samples.length,
    all_instrumental: dataSet.allInstrumental,
    genre_ratio: dataSet.genreRatio,
  };
}

/** A sample in full, as files hold it. */
export function sampleFields(sample: DataSetSample) {
  return {
    id: sample.id,
    audio_path: sample.audioPath,
    filename: sample.filename,
    caption: sample.caption,
    genre: sample.genre,
    lyrics: sample.lyrics,
    raw_lyrics: sample.rawLyrics,
    formatted_lyrics: sample.formattedLyrics,
    bpm: sample.bpm,
    keyscale: sample.keyScale,
    timesignature: sample.timeSignature,
    duration: sample.durationSeconds,
    language: sample.language,
    is_instrumental: sample.isInstrumental,
    custom_tag: sample.customTag,
    labeled: sample.labeled,
    prompt_override: sample.promptOverride,
  };
}

/** A sample as lists show it. */
export function sampleSummary(sample: DataSetSample, index: number) {
  const { id, raw_lyrics, formatted_lyrics, custom_tag, ...fields } = sampleFields(sample);
  return { index, ...fields };
}

export type SampleSummary = ReturnType<typeof sampleSummary>;
