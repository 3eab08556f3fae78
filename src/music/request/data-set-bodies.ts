/** Bodies of the data set endpoints. */
import { INSTRUMENTAL_LYRICS } from "../../engine/prompts.js";
import {
  finiteNumber,
  flag,
  offByDefault,
  oneOf,
  optionalText,
  parameter,
  requiredText,
  strictInteger,
  trimmed,
  within,
  withinOrAuto,
} from "../../parameters.js";
import { TAG_POSITIONS } from "../dataset/data-set.js";
import { MAX_SAMPLE_BPM } from "../dataset/records.js";
import { strictParser } from "./fields.js";
import { generationSchema } from "./schema.js";
import { keyScale, language, lyrics } from "./value-types.js";

/** Body of POST /v1/dataset/scan. */
export const parseDataSetScan = strictParser({
  directory: parameter("audio_dir", requiredText, "Folder with audio files."),
  name: parameter("dataset_name", trimmed.default("my_lora_dataset"), "Name of the data set."),
  customTag: parameter("custom_tag", trimmed.default(""), "Trigger word for the trained style; blank: none."),
  tagPosition: parameter(
    "tag_position",
    oneOf(TAG_POSITIONS).default("replace"),
    "Position of the trigger word: before the caption, after it, or replacing it.",
  ),
  allInstrumental: parameter(
    "all_instrumental",
    flag.default(true),
    "Treat songs without lyrics as instrumental.",
  ),
});

export type ScanRequest = ReturnType<typeof parseDataSetScan>;

export const parseDataSetLoad = strictParser({
  path: parameter("dataset_path", requiredText, "Path of a saved data set."),
});

/** Body of POST /v1/dataset/save: path of the file, and settings of the data set. A null setting stays unchanged. */
export const parseDataSetSave = strictParser({
  path: parameter("save_path", requiredText, "Output path of the data set (JSON)."),
  name: parameter("dataset_name", requiredText, "Name of the data set."),
  customTag: parameter(
    "custom_tag",
    trimmed.nullable().default(null),
    "Trigger word for the trained style; unset: unchanged.",
  ),
  tagPosition: parameter(
    "tag_position",
    oneOf(TAG_POSITIONS).nullable().default(null),
    "Position of the trigger word; unset: unchanged.",
  ),
  allInstrumental: parameter(
    "all_instrumental",
    flag.nullable().default(null),
    "Treat songs without lyrics as instrumental; unset: unchanged.",
  ),
  genreRatio: parameter(
    "genre_ratio",
    within(finiteNumber, 0, 100).nullable().default(null),
    "Percentage of samples described by their genre; unset: unchanged.",
  ),
});

export type DataSetChange = Omit<ReturnType<typeof parseDataSetSave>, "path">;

export const parseSampleChange = strictParser({
  caption: parameter("caption", trimmed.default(""), "Description of the song."),
  genre: parameter("genre", trimmed.default(""), "Genre."),
  promptOverride: parameter(
    "prompt_override",
    oneOf(["caption", "genre"] as const)
      .nullable()
      .default(null),
    "Describe the sample by caption or genre, regardless of genre_ratio.",
  ),
  lyrics: parameter("lyrics", lyrics.default(INSTRUMENTAL_LYRICS), "Lyrics."),
  bpm: parameter("bpm", withinOrAuto(strictInteger, 1, MAX_SAMPLE_BPM).default(null), "Beats per minute."),
  keyScale: parameter(["keyscale", "key_scale"], keyScale.default(""), "Key, such as F# minor."),
  timeSignature: parameter(["timesignature", "time_signature"], trimmed.default(""), "Beats in a bar."),
  language: parameter("language", language.default("unknown"), "Language of the lyrics."),
  isInstrumental: parameter(
    "is_instrumental",
    flag.nullable().default(null),
    "Song without vocals; unset: if there are no lyrics.",
  ),
});

export type SampleChange = ReturnType<typeof parseSampleChange>;

export const parsePreparation = strictParser({
  outputDir: parameter("output_dir", requiredText, "Output directory of prepared samples."),
  skipExisting: parameter("skip_existing", offByDefault, "Keep existing files."),
});

export type PreparationOptions = ReturnType<typeof parsePreparation>;

/** Body of the labeling endpoints. Chunk and batch sizes are ignored: samples are labeled one at a time. */
export const parseLabeling = strictParser({
  skipMetas: parameter("skip_metas", offByDefault, "Keep tempo, key and metre."),
  formatLyrics: parameter(
    "format_lyrics",
    offByDefault,
    "Rewrite the existing lyrics, and write the caption from them.",
  ),
  transcribeLyrics: parameter(
    "transcribe_lyrics",
    offByDefault,
    "Transcribe the lyrics from the audio, replacing existing ones.",
  ),
  onlyUnlabeled: parameter("only_unlabeled", offByDefault, "Skip samples that have a caption."),
  languageModel: generationSchema.shape.languageModel,
  savePath: parameter(
    "save_path",
    optionalText,
    "Save the data set to this path after every sample; unset: not saved.",
  ),
});

export type LabelRequest = ReturnType<typeof parseLabeling>;
