/**
 * Bodies of the data set, adapter and training endpoints. Invalid values are refused, never clamped. The
 * hyperparameters are defined in ../../engine/training-parameters.ts.
 */
import type { z } from "zod";
import { INSTRUMENTAL_LYRICS } from "../../engine/prompts.js";
import { lokrParameters, loraParameters } from "../../engine/training-parameters.js";
import { meaningOfIgnored } from "../../ignored.js";
import {
  type Fields,
  finiteNumber,
  flag,
  namesOf,
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
import { adapterScale, doraEpsilon } from "./loras.js";
import { generationSchema } from "./schema.js";
import { unknownFieldReporter } from "./unknown-fields.js";
import { keyScale, language, lyrics } from "./value-types.js";

/** Body of POST /v1/dataset/scan. */
export const parseDataSetScan = strictParser({
  directory: parameter("audio_dir", requiredText, "Folder with audio files."),
  name: parameter("dataset_name", trimmed.default("my_lora_dataset"), "Name of the data set."),
  custom_tag: parameter(
    "custom_tag",
    trimmed.default(""),
    "Trigger word for the trained style; blank: none.",
  ),
  tag_position: parameter(
    "tag_position",
    oneOf(TAG_POSITIONS).default("replace"),
    "Position of the trigger word: before the caption, after it, or replacing it.",
  ),
  all_instrumental: parameter(
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
  custom_tag: parameter(
    "custom_tag",
    trimmed.nullable().default(null),
    "Trigger word for the trained style; unset: unchanged.",
  ),
  tag_position: parameter(
    "tag_position",
    oneOf(TAG_POSITIONS).nullable().default(null),
    "Position of the trigger word; unset: unchanged.",
  ),
  all_instrumental: parameter(
    "all_instrumental",
    flag.nullable().default(null),
    "Treat songs without lyrics as instrumental; unset: unchanged.",
  ),
  genre_ratio: parameter(
    "genre_ratio",
    within(finiteNumber, 0, 100).nullable().default(null),
    "Percentage of samples described by their genre; unset: unchanged.",
  ),
});

export type DataSetChange = Omit<ReturnType<typeof parseDataSetSave>, "path">;

export const parseSampleChange = strictParser({
  caption: parameter("caption", trimmed.default(""), "Description of the song."),
  genre: parameter("genre", trimmed.default(""), "Genre."),
  prompt_override: parameter(
    "prompt_override",
    oneOf(["caption", "genre"] as const)
      .nullable()
      .default(null),
    "Describe the sample by caption or genre, regardless of genre_ratio.",
  ),
  lyrics: parameter("lyrics", lyrics.default(INSTRUMENTAL_LYRICS), "Lyrics."),
  bpm: parameter("bpm", withinOrAuto(strictInteger, 1, MAX_SAMPLE_BPM).default(null), "Beats per minute."),
  keyscale: parameter(["keyscale", "key_scale"], keyScale.default(""), "Key, such as F# minor."),
  timesignature: parameter(["timesignature", "time_signature"], trimmed.default(""), "Beats in a bar."),
  language: parameter("language", language.default("unknown"), "Language of the lyrics."),
  is_instrumental: parameter(
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

const adapterName = (whenUnset: string) =>
  parameter(["adapter_name", "name"], optionalText, `Name of the adapter; unset: ${whenUnset}.`);

export const parseAdapterLoad = strictParser({
  path: parameter(
    ["lora_path", "path"],
    requiredText,
    "A PEFT folder, its parent folder, or a .safetensors or .bin file.",
  ),
  name: adapterName("the last part of the path, or the one before `final`"),
  doraEpsilon: parameter(
    "dora_epsilon",
    doraEpsilon.default("float32"),
    "Epsilon of LyCORIS' DoRA: float32 as in training, or bfloat16 to match programs that cast adapters first.",
  ),
});

export const parseAdapterUnload = strictParser({ name: adapterName("all of them") });

export const parseAdapterToggle = strictParser({
  enabled: parameter(["use_lora", "enabled"], flag, "Enable or disable the adapter."),
  name: adapterName("all of them"),
});

export const parseAdapterScale = strictParser({
  scale: parameter(
    ["scale", "lora_scale"],
    adapterScale,
    "Strength of the adapter: 1 as trained, 0 no effect, negative inverts it.",
  ),
  name: adapterName("the one loaded last"),
});

export type AdapterLoad = ReturnType<typeof parseAdapterLoad>;
export type AdapterToggle = ReturnType<typeof parseAdapterToggle>;
export type AdapterScale = ReturnType<typeof parseAdapterScale>;

const pathParameters = {
  tensorDir: parameter("tensor_dir", requiredText, "Directory of prepared samples."),
  resumeFrom: parameter(
    "resume_from",
    optionalText,
    "Checkpoint folder of an earlier run, or adapter folder, to resume from.",
  ),
};

/** Reports unknown fields: a misspelt hyperparameter would silently have its default. */
function trainingParser<Shape extends Record<string, z.ZodType>>(shape: Shape) {
  const parse = strictParser(shape);
  const unknownFields = unknownFieldReporter(Object.values(shape).map(namesOf), {
    others: ["ai_token"],
    meanings: { train_epochs: "epochs", learning_rate: "lr" },
  });
  return Object.assign((fields: Fields) => ({ ...parse(fields), warnings: unknownFields(fields) }), {
    shape,
  });
}

/** Body of POST /v1/training/start. */
export const parseLoraTraining = trainingParser({
  ...pathParameters,
  ...loraParameters.run,
  ...loraParameters.design,
  outputDir: parameter(
    ["lora_output_dir", "output_dir"],
    trimmed.default("./lora_output"),
    "Directory for checkpoints and the adapter.",
  ),
  useFp8: parameter("use_fp8", offByDefault, meaningOfIgnored("use_fp8")),
});

/** Body of POST /v1/training/start_lokr. */
export const parseLokrTraining = trainingParser({
  ...pathParameters,
  ...lokrParameters.run,
  ...lokrParameters.design,
  outputDir: parameter(
    ["output_dir", "lora_output_dir"],
    trimmed.default("./lokr_output"),
    "Directory for checkpoints and the adapter.",
  ),
});

export type LoraTraining = ReturnType<typeof parseLoraTraining>;
export type LokrTraining = ReturnType<typeof parseLokrTraining>;

/** Body of POST /v1/training/export. */
export const parseAdapterExport = strictParser({
  exportPath: parameter("export_path", requiredText, "Output path; only an earlier export is overwritten."),
  outputDir: parameter(
    ["lora_output_dir", "output_dir"],
    requiredText,
    "Output directory of the training run.",
  ),
  foldAlpha: parameter(
    "fold_alpha",
    offByDefault,
    "Multiplies the scale into the weights, for programs that do not read the scale.",
  ),
  comfySingleFile: parameter(
    "comfy_single_file",
    offByDefault,
    "Writes a single file, comfy_lora.safetensors, for ComfyUI and acestep.cpp.",
  ),
});

export type AdapterExport = ReturnType<typeof parseAdapterExport>;

/** Body of POST /v1/training/load_tensor_info. */
export const parseTensorInfo = strictParser({ tensorDir: pathParameters.tensorDir });
