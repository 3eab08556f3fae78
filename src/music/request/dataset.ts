/** The bodies of the data set endpoints (reference/music-http.md 7.5). */
import { z } from "zod";
import { instrumentalLyrics } from "../../engine/prompts.js";
import { parameter } from "../../parameters/names.js";
import {
  finiteNumber,
  flag,
  lyricsText,
  oneOf,
  requiredText,
  strictInteger,
  textOrNull,
  trimmed,
  within,
} from "../../parameters/values.js";
import { TAG_POSITIONS } from "../dataset/data-set.js";
import type { DataSetChange, SampleChange } from "../dataset/editor.js";
import type { LabelRequest } from "../dataset/label.js";
import type { ScanRequest } from "../dataset/scan.js";
import { FieldSources, type Fields } from "./fields.js";
import { parseObject } from "./validate.js";

const MAX_BPM = 1000;

const scanSchema = z.object({
  directory: parameter("audio_dir", requiredText),
  name: parameter("dataset_name", trimmed.default("my_lora_dataset")),
  customTag: parameter("custom_tag", trimmed.default("")),
  tagPosition: parameter("tag_position", oneOf(TAG_POSITIONS).default("replace")),
  allInstrumental: parameter("all_instrumental", flag.default(true)),
});

/** @throws RequestError naming the field at fault, here and below */
export function parseScan(fields: Fields): ScanRequest {
  return parse(scanSchema, fields);
}

const loadSchema = z.object({ path: parameter("dataset_path", requiredText) });

export function parseLoad(fields: Fields): { path: string } {
  return parse(loadSchema, fields);
}

const saveSchema = z.object({
  path: parameter("save_path", requiredText),
  name: parameter("dataset_name", requiredText),
  customTag: parameter("custom_tag", trimmed.nullable().default(null)),
  tagPosition: parameter("tag_position", oneOf(TAG_POSITIONS).nullable().default(null)),
  allInstrumental: parameter("all_instrumental", flag.nullable().default(null)),
  genreRatio: parameter("genre_ratio", within(finiteNumber, 0, 100).nullable().default(null)),
});

export function parseSave(fields: Fields): { path: string } & DataSetChange {
  return parse(saveSchema, fields);
}

const sampleSchema = z.object({
  caption: parameter("caption", trimmed.default("")),
  genre: parameter("genre", trimmed.default("")),
  promptOverride: parameter(
    "prompt_override",
    oneOf(["caption", "genre"] as const)
      .nullable()
      .default(null),
  ),
  lyrics: parameter("lyrics", lyricsText.default(instrumentalLyrics)),
  bpm: parameter("bpm", within(strictInteger, 1, MAX_BPM).nullable().default(null)),
  keyScale: parameter(["keyscale", "key_scale"], trimmed.default("")),
  timeSignature: parameter(["timesignature", "time_signature"], trimmed.default("")),
  language: parameter("language", textOrNull.nullable().default(null)),
  isInstrumental: parameter("is_instrumental", flag.nullable().default(null)),
});

export function parseSampleChange(fields: Fields): SampleChange {
  const { language, ...change } = parse(sampleSchema, fields);
  return { ...change, language: language ?? "unknown" };
}

const preparationSchema = z.object({
  outputDir: parameter("output_dir", requiredText),
  skipExisting: parameter("skip_existing", flag.default(false)),
});

export function parsePreparation(fields: Fields): { outputDir: string; skipExisting: boolean } {
  return parse(preparationSchema, fields);
}

/** One sample is described at a time, so sizes of chunks and batches have no meaning here. */
const labelSchema = z.object({
  skipMetas: parameter("skip_metas", flag.default(false)),
  formatLyrics: parameter("format_lyrics", flag.default(false)),
  transcribeLyrics: parameter("transcribe_lyrics", flag.default(false)),
  onlyUnlabeled: parameter("only_unlabeled", flag.default(false)),
  lmModelPath: parameter("lm_model_path", textOrNull.nullable().default(null)),
  savePath: parameter("save_path", textOrNull.nullable().default(null)),
});

export function parseLabeling(fields: Fields): LabelRequest {
  return parse(labelSchema, fields);
}

function parse<Shape extends z.ZodRawShape>(schema: z.ZodObject<Shape>, fields: Fields) {
  return parseObject(schema, new FieldSources(fields), "refuse", []);
}
