/**
 * A data set: pieces of music with their descriptions, its JSON form with the names that the ecosystem's files and
 * clients know, and what a trained adapter is told of each piece.
 */
import { createHash, randomUUID } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { basename, dirname, resolve } from "node:path";
import { z } from "zod";
import { INSTRUMENTAL_LYRICS } from "../../engine/prompts.js";
import { writeWhole } from "../../whole-file.js";
import { RequestError } from "../errors.js";

export const TAG_POSITIONS = ["prepend", "append", "replace"] as const;
export type TagPosition = (typeof TAG_POSITIONS)[number];

/** Ids become file names. */
const PLAIN_ID = /^[A-Za-z0-9_-]{1,64}$/;

const orElse = <T>(type: z.ZodType<T>, fallback: () => NoInfer<T>) =>
  type.nullish().transform((value) => value ?? fallback());
/** Some tools write numbers where others write text, as in a time signature of 4. */
const text = (fallback: string) =>
  orElse(z.union([z.string(), z.number().transform(String)]), () => fallback);
const flag = (fallback: boolean) => orElse(z.boolean(), () => fallback);
/** A number or text that spells one; null for anything else, such as "N/A". */
const wholeNumber = z.unknown().optional().transform(readWholeNumber);

export function readWholeNumber(value: unknown): number | null {
  const isText = typeof value === "string" && value.trim() !== "";
  const number = isText ? Number(value) : value;
  return typeof number === "number" && Number.isFinite(number) ? Math.trunc(number) : null;
}

/** A sample as files hold it. Unknown keys are passed over, absent and null ones have defaults. */
const sampleSchema = z.object({
  /** Names the sample file; unique in its data set. */
  id: text(""),
  /** Absolute once it is read. */
  audio_path: z.string().min(1),
  filename: text(""),
  caption: text(""),
  genre: text(""),
  lyrics: text(INSTRUMENTAL_LYRICS),
  /** As found beside the audio, "" for none. */
  raw_lyrics: text(""),
  /** As a language model wrote them, "" for none. */
  formatted_lyrics: text(""),
  bpm: wholeNumber,
  keyscale: text(""),
  timesignature: text(""),
  /** Whole seconds. */
  duration: wholeNumber.transform((value) => value ?? 0),
  /** A language code such as "en", or "unknown". */
  language: text("unknown"),
  is_instrumental: flag(true),
  custom_tag: text(""),
  /** Only described samples are trained on. */
  labeled: flag(false),
  /** Which text the prompt takes; null: as the genre ratio has it. */
  prompt_override: orElse(z.enum(["caption", "genre"]).nullable(), () => null),
});

const metadataSchema = z.object({
  name: text("untitled_dataset"),
  /** The word that calls the trained style; "" for none. */
  custom_tag: text(""),
  tag_position: orElse(z.enum(TAG_POSITIONS), (): TagPosition => "prepend"),
  /** ISO 8601 */
  created_at: orElse(z.string(), () => new Date().toISOString()),
  all_instrumental: flag(true),
  /** Percentage of samples described by their genre. */
  genre_ratio: orElse(z.number().min(0).max(100), () => 0),
});

/** A bare array of samples counts as well. */
const fileSchema = z.preprocess(
  (value) => (Array.isArray(value) ? { samples: value } : value),
  z.object({ metadata: metadataSchema.prefault({}), samples: z.array(sampleSchema) }),
);

/** What values of files are called here, where that differs. */
const OWN_NAMES = {
  audio_path: "audioPath",
  raw_lyrics: "rawLyrics",
  formatted_lyrics: "formattedLyrics",
  keyscale: "keyScale",
  timesignature: "timeSignature",
  duration: "durationSeconds",
  is_instrumental: "isInstrumental",
  custom_tag: "customTag",
  prompt_override: "promptOverride",
  tag_position: "tagPosition",
  created_at: "createdAt",
  all_instrumental: "allInstrumental",
  genre_ratio: "genreRatio",
} as const;
const FILE_NAMES: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(OWN_NAMES).map(([file, own]) => [own, file]),
);

type Own<Fields> = {
  [Name in keyof Fields as Name extends keyof typeof OWN_NAMES
    ? (typeof OWN_NAMES)[Name]
    : Name]: Fields[Name];
};
type SampleFields = z.output<typeof sampleSchema>;
type MetadataFields = z.output<typeof metadataSchema>;
export type DataSetSample = Own<SampleFields>;
export type DataSet = Own<MetadataFields> & { samples: DataSetSample[] };

function renamed<T>(value: object, names: Readonly<Record<string, string>>): T {
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [names[name] ?? name, part])) as T;
}

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
    ...renamed<Own<MetadataFields>>(metadata, OWN_NAMES),
    samples: withOwnIds(samples.map((fields) => sampleOf(fields, dirname(path)))),
  };
}

function sampleOf(fields: SampleFields, folder: string): DataSetSample {
  const audioPath = resolve(folder, fields.audio_path);
  return {
    ...renamed<DataSetSample>(fields, OWN_NAMES),
    id: PLAIN_ID.test(fields.id) ? fields.id : sampleId(fields.audio_path),
    audioPath,
    filename: fields.filename || basename(audioPath),
  };
}

/** Writes the whole file or leaves the old one; its folder is made. */
export async function saveDataSet(dataSet: DataSet, path: string): Promise<void> {
  await writeJson(path, {
    metadata: metadataFields(dataSet),
    samples: dataSet.samples.map(sampleFields),
  });
}

/** Writes indented JSON, whole or not at all; the folder is made. */
export async function writeJson(path: string, value: unknown): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  const text = `${JSON.stringify(value, null, 2)}\n`;
  await writeWhole(path, (partial) => writeFile(partial, text, { flag: "wx" }));
}

/** What files and manifests say of the set as a whole. */
export function metadataFields({ samples, ...metadata }: DataSet) {
  return { ...renamed<MetadataFields>(metadata, FILE_NAMES), num_samples: samples.length };
}

/** A sample in full, as files hold it. */
export function sampleFields(sample: DataSetSample): SampleFields {
  return renamed(sample, FILE_NAMES);
}

/** A sample as lists show it. */
export function sampleSummary(sample: DataSetSample, index: number) {
  const { id, raw_lyrics, formatted_lyrics, custom_tag, ...fields } = sampleFields(sample);
  return { index, ...fields };
}

export type SampleSummary = ReturnType<typeof sampleSummary>;

/** Eight characters of a hash: the same text gives the same id, so that a set prepared twice finds its own files. */
export function sampleId(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 8);
}

/** Ids made unique: the first sample of an id keeps it. */
export function withOwnIds(samples: readonly DataSetSample[]): DataSetSample[] {
  const taken = new Set<string>();
  return samples.map((sample) => {
    const id = taken.has(sample.id) ? sampleId(randomUUID()) : sample.id;
    taken.add(id);
    return { ...sample, id };
  });
}

/**
 * The prompt of every labeled sample, by id: its caption or genre with the tag. The share of genres goes to the samples
 * whose ids hash lowest, which stay the same when others come or go.
 */
export function trainingPrompts(dataSet: DataSet): Map<string, string> {
  const labeled = dataSet.samples.filter((sample) => sample.labeled);
  const genreCount = Math.floor((labeled.length * dataSet.genreRatio) / 100);
  const ranked = labeled.map(({ id }) => id).sort(byHash);
  const byGenre = new Set(ranked.slice(0, genreCount));
  return new Map(
    labeled.map((sample) => {
      const kind = sample.promptOverride ?? (byGenre.has(sample.id) ? "genre" : "caption");
      const text = kind === "genre" ? sample.genre || sample.caption : sample.caption;
      return [sample.id, withTag(text, sample.customTag || dataSet.customTag, dataSet.tagPosition)];
    }),
  );
}

function byHash(a: string, b: string): number {
  return sampleId(a) < sampleId(b) ? -1 : 1;
}

function withTag(text: string, tag: string, position: TagPosition): string {
  if (tag === "") return text;
  if (text === "" || position === "replace") return tag;
  return position === "prepend" ? `${tag}, ${text}` : `${text}, ${tag}`;
}
