/** The bodies of the data set endpoints. */
import { INSTRUMENTAL_LYRICS } from "../../engine/prompts.js";
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
import { strictParser } from "./fields.js";

const MAX_BPM = 1000;

/** @throws RequestError naming the field at fault, as all of these */
export const parseScan = strictParser({
  directory: parameter("audio_dir", requiredText),
  name: parameter("dataset_name", trimmed.default("my_lora_dataset")),
  customTag: parameter("custom_tag", trimmed.default("")),
  tagPosition: parameter("tag_position", oneOf(TAG_POSITIONS).default("replace")),
  /** What a song without lyrics counts as. */
  allInstrumental: parameter("all_instrumental", flag.default(true)),
});

export type ScanRequest = ReturnType<typeof parseScan>;

export const parseLoad = strictParser({ path: parameter("dataset_path", requiredText) });

/** What changes of the set as a whole; null leaves a value as it is. */
export const parseSave = strictParser({
  path: parameter("save_path", requiredText),
  name: parameter("dataset_name", requiredText),
  customTag: parameter("custom_tag", trimmed.nullable().default(null)),
  tagPosition: parameter("tag_position", oneOf(TAG_POSITIONS).nullable().default(null)),
  allInstrumental: parameter("all_instrumental", flag.nullable().default(null)),
  genreRatio: parameter("genre_ratio", within(finiteNumber, 0, 100).nullable().default(null)),
});

export type DataSetChange = Omit<ReturnType<typeof parseSave>, "path">;

export const parseSampleChange = strictParser({
  caption: parameter("caption", trimmed.default("")),
  genre: parameter("genre", trimmed.default("")),
  promptOverride: parameter(
    "prompt_override",
    oneOf(["caption", "genre"] as const)
      .nullable()
      .default(null),
  ),
  lyrics: parameter("lyrics", lyricsText.default(INSTRUMENTAL_LYRICS)),
  bpm: parameter("bpm", within(strictInteger, 1, MAX_BPM).nullable().default(null)),
  keyScale: parameter(["keyscale", "key_scale"], trimmed.default("")),
  timeSignature: parameter(["timesignature", "time_signature"], trimmed.default("")),
  language: parameter("language", trimmed.default("unknown")),
  /** Null: whether there are lyrics decides. */
  isInstrumental: parameter("is_instrumental", flag.nullable().default(null)),
});

export type SampleChange = ReturnType<typeof parseSampleChange>;

export const parsePreparation = strictParser({
  outputDir: parameter("output_dir", requiredText),
  /** Leave files that are there already as they are. */
  skipExisting: parameter("skip_existing", flag.default(false)),
});

/** One sample is described at a time, so sizes of chunks and batches have no meaning here. */
export const parseLabeling = strictParser({
  /** Leave tempo, key and metre as they are. */
  skipMetas: parameter("skip_metas", flag.default(false)),
  /** Have the lyrics that came with the audio rewritten, and the caption made of them. */
  formatLyrics: parameter("format_lyrics", flag.default(false)),
  /** Write down what is sung, in place of the lyrics that came with the audio. */
  transcribeLyrics: parameter("transcribe_lyrics", flag.default(false)),
  onlyUnlabeled: parameter("only_unlabeled", flag.default(false)),
  /** Null: the default language model. */
  lmModelPath: parameter("lm_model_path", textOrNull.nullable().default(null)),
  /** Where the data set is saved after every sample; null: nowhere. */
  savePath: parameter("save_path", textOrNull.nullable().default(null)),
});

export type LabelRequest = ReturnType<typeof parseLabeling>;
