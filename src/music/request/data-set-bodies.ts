/** The bodies of the data set endpoints. */
import { INSTRUMENTAL_LYRICS } from "../../engine/prompts.js";
import {
  finiteNumber,
  flag,
  lyricsText,
  oneOf,
  parameter,
  requiredText,
  strictInteger,
  textOrNull,
  trimmed,
  within,
} from "../../parameters.js";
import { TAG_POSITIONS } from "../dataset/data-set.js";
import { strictParser } from "./fields.js";
import { generationSchema } from "./schema.js";

const MAX_BPM = 1000;

/** @throws RequestError naming the field at fault, as all of these */
export const parseScan = strictParser({
  directory: parameter("audio_dir", requiredText, "Folder of music."),
  name: parameter("dataset_name", trimmed.default("my_lora_dataset"), "Name of the data set."),
  customTag: parameter(
    "custom_tag",
    trimmed.default(""),
    "Word that calls the trained style; none where it is blank.",
  ),
  tagPosition: parameter(
    "tag_position",
    oneOf(TAG_POSITIONS).default("replace"),
    "Where the tag stands: before the caption, after it, or in its place.",
  ),
  allInstrumental: parameter(
    "all_instrumental",
    flag.default(true),
    "Whether songs without lyrics count as instrumental.",
  ),
});

export type ScanRequest = ReturnType<typeof parseScan>;

export const parseLoad = strictParser({
  path: parameter("dataset_path", requiredText, "A data set that was saved."),
});

/** What changes of the set as a whole; null leaves a value as it is. */
export const parseSave = strictParser({
  path: parameter("save_path", requiredText, "Where the data set goes, as JSON."),
  name: parameter("dataset_name", requiredText, "Name of the data set."),
  customTag: parameter(
    "custom_tag",
    trimmed.nullable().default(null),
    "Word that calls the trained style; open: as it is.",
  ),
  tagPosition: parameter(
    "tag_position",
    oneOf(TAG_POSITIONS).nullable().default(null),
    "Where the tag stands; open: as it is.",
  ),
  allInstrumental: parameter(
    "all_instrumental",
    flag.nullable().default(null),
    "Whether songs without lyrics count as instrumental; open: as it is.",
  ),
  genreRatio: parameter(
    "genre_ratio",
    within(finiteNumber, 0, 100).nullable().default(null),
    "Percentage of samples that are described by their genre; open: as it is.",
  ),
});

export type DataSetChange = Omit<ReturnType<typeof parseSave>, "path">;

export const parseSampleChange = strictParser({
  caption: parameter("caption", trimmed.default(""), "What the song sounds like."),
  genre: parameter("genre", trimmed.default(""), "Its genre."),
  promptOverride: parameter(
    "prompt_override",
    oneOf(["caption", "genre"] as const)
      .nullable()
      .default(null),
    "What the sample is described by, whatever genre_ratio says.",
  ),
  lyrics: parameter("lyrics", lyricsText.default(INSTRUMENTAL_LYRICS), "Its words."),
  bpm: parameter("bpm", within(strictInteger, 1, MAX_BPM).nullable().default(null), "Beats per minute."),
  keyScale: parameter(["keyscale", "key_scale"], trimmed.default(""), "Key, such as F# minor."),
  timeSignature: parameter(["timesignature", "time_signature"], trimmed.default(""), "Beats in a bar."),
  language: parameter("language", trimmed.default("unknown"), "Of the lyrics."),
  isInstrumental: parameter(
    "is_instrumental",
    flag.nullable().default(null),
    "Whether nobody sings; open: whether there are lyrics decides.",
  ),
});

export type SampleChange = ReturnType<typeof parseSampleChange>;

export const parsePreparation = strictParser({
  outputDir: parameter("output_dir", requiredText, "Directory of sample files."),
  skipExisting: parameter(
    "skip_existing",
    flag.default(false),
    "Leaves files that are there already as they are.",
  ),
});

/** One sample is described at a time, so sizes of chunks and batches have no meaning here. */
export const parseLabeling = strictParser({
  skipMetas: parameter("skip_metas", flag.default(false), "Leaves tempo, key and metre as they are."),
  formatLyrics: parameter(
    "format_lyrics",
    flag.default(false),
    "Has the lyrics that came with the audio rewritten, and the caption made of them.",
  ),
  transcribeLyrics: parameter(
    "transcribe_lyrics",
    flag.default(false),
    "Writes down what is sung, in place of the lyrics that came with the audio.",
  ),
  onlyUnlabeled: parameter(
    "only_unlabeled",
    flag.default(false),
    "Leaves samples with a caption as they are.",
  ),
  lmModelPath: generationSchema.shape.lmModelPath,
  savePath: parameter(
    "save_path",
    textOrNull.nullable().default(null),
    "Where the data set is saved after every sample; open: nowhere.",
  ),
});

export type LabelRequest = ReturnType<typeof parseLabeling>;
