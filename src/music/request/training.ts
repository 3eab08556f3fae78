/**
 * The bodies of the training endpoints: the only place where a parameter's name, default or range stands
 * (spec: POST /v1/training/start_lokr; reference/training.md 9.1, 9.2, 9.6). A run takes hours, so nothing is clamped
 * or replaced: what cannot be done as asked is refused.
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
import { FieldSources, type Fields } from "./fields.js";
import { parseObject } from "./validate.js";

const MAX_COUNT = 2 ** 31 - 1;
/** Of the discrete flow times; 0, which the formula cannot take, stands for it. */
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

const loraSchema = z.object({
  ...runParameters,
  outputDir: parameter(["lora_output_dir", "output_dir"], trimmed.default("./lora_output")),
  learningRate: parameter("learning_rate", learningRate.default(1e-4)),
  epochs: parameter("train_epochs", count.default(10)),
  rank: parameter("lora_rank", within(strictInteger, 1, 256).default(64)),
  alpha: parameter("lora_alpha", within(strictInteger, 1, 512).default(128)),
  dropout: parameter("lora_dropout", share.default(0.1)),
  useFp8: parameter("use_fp8", flag.default(false)),
});

const lokrSchema = z.object({
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

export type LoraTraining = z.output<typeof loraSchema>;
export type LokrTraining = z.output<typeof lokrSchema>;

const exportSchema = z.object({
  exportPath: parameter("export_path", requiredText),
  outputDir: parameter(["lora_output_dir", "output_dir"], requiredText),
  foldAlpha: parameter("fold_alpha", flag.default(false)),
  comfySingleFile: parameter("comfy_single_file", flag.default(false)),
});

/** What POST /v1/training/export copies, and where to. */
export type AdapterExport = z.output<typeof exportSchema>;

const tensorInfoSchema = z.object({ tensorDir: runParameters.tensorDir });

/** @throws RequestError naming the field at fault, as all of these */
export function parseLoraTraining(fields: Fields): LoraTraining {
  return parse(loraSchema, fields);
}

export function parseLokrTraining(fields: Fields): LokrTraining {
  return parse(lokrSchema, fields);
}

export function parseAdapterExport(fields: Fields): AdapterExport {
  return parse(exportSchema, fields);
}

/** The directory that POST /v1/training/load_tensor_info asks about. */
export function parseTensorDirectory(fields: Fields): string {
  return parse(tensorInfoSchema, fields).tensorDir;
}

function parse<Shape extends z.ZodRawShape>(schema: z.ZodObject<Shape>, fields: Fields) {
  return parseObject(schema, new FieldSources(fields), "refuse", []);
}
