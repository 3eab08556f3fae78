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

const adapterName = parameter(["adapter_name", "name"], textOrNull.nullable().default(null));

export const parseAdapterLoad = strictParser({
  path: parameter(["lora_path", "path"], requiredText),
  /** Null: the last part of the path. */
  name: adapterName,
  /** What LyCORIS' DoRA adds: float32 as in training; bfloat16 to sound as in programs that cast adapters. */
  doraEpsilon: parameter("dora_epsilon", oneOf(["float32", "bfloat16"]).default("float32")),
});

export const parseAdapterToggle = strictParser({ enabled: parameter(["use_lora", "enabled"], flag) });

export const parseAdapterScale = strictParser({
  scale: parameter(["scale", "lora_scale"], within(finiteNumber, 0, 1)),
  /** Null: the active adapter. */
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
  tensorDir: parameter("tensor_dir", requiredText),
  batchSize: parameter("train_batch_size", count.default(1)),
  gradientAccumulation: parameter("gradient_accumulation", count.default(4)),
  saveEveryEpochs: parameter("save_every_n_epochs", count.default(5)),
  shift: parameter("training_shift", shift.default(DEFAULT_SHIFT)),
  seed: parameter("training_seed", within(strictInteger, 0, Number.MAX_SAFE_INTEGER).default(42)),
  gradientCheckpointing: parameter("gradient_checkpointing", flag.default(false)),
  timestepSampling: parameter(
    "timestep_sampling",
    oneOf(["auto", "discrete", "logit_normal"]).default("auto"),
  ),
  /** Leaves out the padding that other trainers store with a condition, and train on. */
  trimCondition: parameter("trim_condition", flag.default(false)),
  /** Null: by the kind of model. */
  conditionDropout: parameter("cfg_ratio", share.nullable().default(null)),
  /** A checkpoint folder of an earlier run, the folder of an adapter, or null. */
  resumeFrom: parameter("resume_from", textOrNull.nullable().default(null)),
};

/** @throws RequestError naming the field at fault, as all of these */
export const parseLoraTraining = strictParser({
  ...runParameters,
  outputDir: parameter(["lora_output_dir", "output_dir"], trimmed.default("./lora_output")),
  learningRate: parameter("learning_rate", learningRate.default(1e-4)),
  epochs: parameter("train_epochs", count.default(10)),
  rank: parameter("lora_rank", within(strictInteger, 1, 256).default(64)),
  alpha: parameter("lora_alpha", within(strictInteger, 1, 512).default(128)),
  dropout: parameter("lora_dropout", share.default(0.1)),
  useFp8: parameter("use_fp8", flag.default(false)),
});

export const parseLokrTraining = strictParser({
  ...runParameters,
  outputDir: parameter(["output_dir", "lora_output_dir"], trimmed.default("./lokr_output")),
  learningRate: parameter("learning_rate", learningRate.default(0.03)),
  epochs: parameter("train_epochs", count.default(500)),
  dimension: parameter("lokr_linear_dim", within(strictInteger, 1, 256).default(64)),
  alpha: parameter("lokr_linear_alpha", within(strictInteger, 1, 512).default(128)),
  factor: parameter("lokr_factor", lokrFactor.default(-1)),
  decomposeBoth: parameter("lokr_decompose_both", flag.default(false)),
  useTucker: parameter("lokr_use_tucker", flag.default(false)),
  useScalar: parameter("lokr_use_scalar", flag.default(false)),
  /** DoRA. */
  weightDecompose: parameter("lokr_weight_decompose", flag.default(true)),
});

export type LoraTraining = ReturnType<typeof parseLoraTraining>;
export type LokrTraining = ReturnType<typeof parseLokrTraining>;

/** What POST /v1/training/export copies, and where to. */
export const parseAdapterExport = strictParser({
  exportPath: parameter("export_path", requiredText),
  outputDir: parameter(["lora_output_dir", "output_dir"], requiredText),
  foldAlpha: parameter("fold_alpha", flag.default(false)),
  comfySingleFile: parameter("comfy_single_file", flag.default(false)),
});

export type AdapterExport = ReturnType<typeof parseAdapterExport>;

/** The directory that POST /v1/training/load_tensor_info asks about. */
export const parseTensorInfo = strictParser({ tensorDir: runParameters.tensorDir });
