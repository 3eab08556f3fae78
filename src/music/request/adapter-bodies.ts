/**
 * The bodies of the endpoints of adapters and of their training: the only place where a parameter's name, default or
 * range stands. A run takes hours, so nothing is clamped or replaced: what cannot be done as asked is refused.
 */
import { z } from "zod";
import { parameter } from "../../parameters/names.js";
import {
  finiteNumber,
  flag,
  oneOf,
  requiredText,
  strictInteger,
  textOrNull,
  trimmed,
  within,
} from "../../parameters/values.js";
import { strictParser } from "./fields.js";

const adapterName = parameter(
  ["adapter_name", "name"],
  textOrNull.nullable().default(null),
  "Name of the adapter; open: the last part of the path where one is loaded, else the active one.",
);

export const parseAdapterLoad = strictParser({
  path: parameter(
    ["lora_path", "path"],
    requiredText,
    "A PEFT folder, one above it, or a .safetensors file.",
  ),
  name: adapterName,
  doraEpsilon: parameter(
    "dora_epsilon",
    oneOf(["float32", "bfloat16"]).default("float32"),
    "What LyCORIS' DoRA adds: float32 as in training, bfloat16 to sound as in programs that cast adapters first.",
  ),
});

export const parseAdapterToggle = strictParser({
  enabled: parameter(["use_lora", "enabled"], flag, "Whether the active adapter acts."),
});

export const parseAdapterScale = strictParser({
  scale: parameter(
    ["scale", "lora_scale"],
    within(finiteNumber, 0, 1),
    "How strongly it acts; 0: the base model.",
  ),
  name: adapterName,
});

export type AdapterLoad = ReturnType<typeof parseAdapterLoad>;
export type AdapterScale = ReturnType<typeof parseAdapterScale>;

const MAX_COUNT = 2 ** 31 - 1;
/** The shift of the discrete flow times; 0, which the formula cannot take, stands for it. */
const DEFAULT_SHIFT = 3;

/** Parameters are updated in float32. */
const FLOAT32_MAX = 3.4028234663852886e38;
const LEARNING_RATE_RULE = "must be above 0 and a float32";

const count = within(strictInteger, 1, MAX_COUNT);
const share = within(finiteNumber, 0, 1);
const learningRate = finiteNumber.pipe(
  z.number().gt(0, LEARNING_RATE_RULE).max(FLOAT32_MAX, LEARNING_RATE_RULE),
);
const shift = finiteNumber
  .pipe(z.number().min(0, "must be 0 or more"))
  .transform((value) => value || DEFAULT_SHIFT);
const lokrFactor = strictInteger.refine(
  (value) => value === -1 || (value >= 1 && value <= 8),
  "must be -1 (automatic) or from 1 to 8",
);

/** What both kinds of adapter take. */
const runParameters = {
  tensorDir: parameter("tensor_dir", requiredText, "Directory of sample files."),
  batchSize: parameter("train_batch_size", count.default(1), "Samples in a batch."),
  gradientAccumulation: parameter("gradient_accumulation", count.default(4), "Batches in a step."),
  saveEveryEpochs: parameter("save_every_n_epochs", count.default(5), "Epochs between checkpoints."),
  shift: parameter(
    "training_shift",
    shift.default(DEFAULT_SHIFT),
    "Shift of the discrete flow times; 0 stands for 3.",
  ),
  seed: parameter(
    "training_seed",
    within(strictInteger, 0, Number.MAX_SAFE_INTEGER).default(42),
    "Of the order of samples, of noise and of dropout.",
  ),
  gradientCheckpointing: parameter(
    "gradient_checkpointing",
    flag.default(false),
    "Less memory and more time; nothing else changes.",
  ),
  timestepSampling: parameter(
    "timestep_sampling",
    oneOf(["auto", "discrete", "logit_normal"]).default("auto"),
    "How flow times are drawn; auto: discrete for turbo models, logit_normal for others.",
  ),
  trimCondition: parameter(
    "trim_condition",
    flag.default(false),
    "Leaves out the padding that other trainers store with a condition, and train on.",
  ),
  conditionDropout: parameter(
    "cfg_ratio",
    share.nullable().default(null),
    "Share of samples that train without their condition; open: 0 for turbo models, 0.15 for others.",
  ),
  resumeFrom: parameter(
    "resume_from",
    textOrNull.nullable().default(null),
    "A checkpoint folder of an earlier run, or the folder of an adapter, to go on from.",
  ),
};

/** @throws RequestError naming the field at fault, as all of these */
export const parseLoraTraining = strictParser({
  ...runParameters,
  outputDir: parameter(
    ["lora_output_dir", "output_dir"],
    trimmed.default("./lora_output"),
    "Directory of checkpoints and of the adapter.",
  ),
  learningRate: parameter("learning_rate", learningRate.default(1e-4), "Of AdamW, above 0."),
  epochs: parameter("train_epochs", count.default(10), "How often every sample is trained on."),
  rank: parameter("lora_rank", within(strictInteger, 1, 256).default(64), "Rank of the update."),
  alpha: parameter(
    "lora_alpha",
    within(strictInteger, 1, 512).default(128),
    "The update is scaled by lora_alpha / lora_rank.",
  ),
  dropout: parameter(
    "lora_dropout",
    share.default(0.1),
    "Share of inputs that the adapter does not see in training.",
  ),
  useFp8: parameter(
    "use_fp8",
    flag.default(false),
    "Accepted, without effect: frozen weights stay in the precision of the model.",
  ),
});

export const parseLokrTraining = strictParser({
  ...runParameters,
  outputDir: parameter(
    ["output_dir", "lora_output_dir"],
    trimmed.default("./lokr_output"),
    "Directory of checkpoints and of the adapter.",
  ),
  learningRate: parameter("learning_rate", learningRate.default(0.03), "Of AdamW, above 0."),
  epochs: parameter("train_epochs", count.default(500), "How often every sample is trained on."),
  dimension: parameter(
    "lokr_linear_dim",
    within(strictInteger, 1, 256).default(64),
    "Rank of the larger factor.",
  ),
  alpha: parameter(
    "lokr_linear_alpha",
    within(strictInteger, 1, 512).default(128),
    "The update is scaled by lokr_linear_alpha / lokr_linear_dim.",
  ),
  factor: parameter(
    "lokr_factor",
    lokrFactor.default(-1),
    "Size of the smaller factor, 1 to 8; -1: as square as it goes.",
  ),
  decomposeBoth: parameter(
    "lokr_decompose_both",
    flag.default(false),
    "Decomposes the smaller factor as well.",
  ),
  useTucker: parameter(
    "lokr_use_tucker",
    flag.default(false),
    "Accepted, without effect: it is for convolutions, and adapters have none.",
  ),
  useScalar: parameter("lokr_use_scalar", flag.default(false), "Trains a factor for the whole update."),
  weightDecompose: parameter(
    "lokr_weight_decompose",
    flag.default(true),
    "DoRA: the update changes directions, and lengths are trained by themselves.",
  ),
});

export type LoraTraining = ReturnType<typeof parseLoraTraining>;
export type LokrTraining = ReturnType<typeof parseLokrTraining>;

/** What POST /v1/training/export copies, and where to. */
export const parseAdapterExport = strictParser({
  exportPath: parameter(
    "export_path",
    requiredText,
    "Where the adapter goes; what is no export is not overwritten.",
  ),
  outputDir: parameter(
    ["lora_output_dir", "output_dir"],
    requiredText,
    "Directory of the run that trained the adapter.",
  ),
  foldAlpha: parameter(
    "fold_alpha",
    flag.default(false),
    "Multiplies the scale into the weights, for programs that read none.",
  ),
  comfySingleFile: parameter(
    "comfy_single_file",
    flag.default(false),
    "Makes one file, comfy_lora.safetensors, for ComfyUI and acestep.cpp.",
  ),
});

export type AdapterExport = ReturnType<typeof parseAdapterExport>;

/** The directory that POST /v1/training/load_tensor_info asks about. */
export const parseTensorInfo = strictParser({ tensorDir: runParameters.tensorDir });
