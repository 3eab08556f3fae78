/**
 * Training parameters of adapters; names, defaults and ranges are defined only here. The core's struct is
 * `TrainingOptions` (native/core/training/adapter_training.h). Out-of-range values are rejected, not clamped, since
 * a run takes hours.
 */
import { z } from "zod";
import { meaningOfIgnored } from "../ignored.js";
import { finiteNumber, flag, offByDefault, oneOf, parameter, strictInteger, within } from "../parameters.js";

const MAX_COUNT = 2 ** 31 - 1;
/**
 * Default shift of the discrete flow times. A shift of 0 selects it too, because the formula is undefined at 0.
 */
const DEFAULT_SHIFT = 3;

/** Largest float32 number. Learning rates must not exceed it, because weights are updated in float32. */
const FLOAT32_MAX = 3.4028234663852886e38;
const LEARNING_RATE_RULE = "must be above 0 and fit in float32";

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

/** Parameters of a training run that LoRA and LoKr share. */
const runParameters = {
  batchSize: parameter("train_batch_size", count.default(1), "Batch size."),
  gradientAccumulation: parameter("gradient_accumulation", count.default(4), "Batches per optimizer step."),
  saveEveryEpochs: parameter("save_every_n_epochs", count.default(5), "Epochs between checkpoints."),
  shift: parameter(
    "training_shift",
    shift.default(DEFAULT_SHIFT),
    "Shift of the discrete flow times; 0 means 3.",
  ),
  seed: parameter(
    "training_seed",
    within(strictInteger, 0, Number.MAX_SAFE_INTEGER).default(42),
    "Seed of sample order, noise and dropout.",
  ),
  gradientCheckpointing: parameter(
    "gradient_checkpointing",
    offByDefault,
    "Saves memory for time; results are the same.",
  ),
  timestepSampling: parameter(
    "timestep_sampling",
    oneOf(["auto", "discrete", "logit_normal"]).default("auto"),
    "Distribution of flow times; auto: discrete for turbo models, logit_normal for others.",
  ),
  trimCondition: parameter(
    "trim_condition",
    offByDefault,
    "Removes the padding that other trainers store and train on.",
  ),
  conditionDropout: parameter(
    "cfg_ratio",
    share.nullable().default(null),
    "Condition dropout; default: 0 for turbo models, 0.15 for others.",
  ),
};

function speedParameters(rate: number, epochs: number) {
  return {
    learningRate: parameter("learning_rate", learningRate.default(rate), "Learning rate of AdamW, above 0."),
    epochs: parameter("train_epochs", count.default(epochs), "Number of epochs."),
  };
}

export const loraParameters = {
  design: {
    rank: parameter("lora_rank", within(strictInteger, 1, 256).default(64), "Rank of the update."),
    alpha: parameter(
      "lora_alpha",
      within(strictInteger, 1, 512).default(128),
      "Scales the update by lora_alpha / lora_rank.",
    ),
    dropout: parameter("lora_dropout", share.default(0.1), "Dropout of the adapter's inputs in training."),
  },
  run: { ...runParameters, ...speedParameters(1e-4, 10) },
};

export const lokrParameters = {
  design: {
    dimension: parameter(
      "lokr_linear_dim",
      within(strictInteger, 1, 256).default(64),
      "Rank of the larger factor.",
    ),
    alpha: parameter(
      "lokr_linear_alpha",
      within(strictInteger, 1, 512).default(128),
      "Scales the update by lokr_linear_alpha / lokr_linear_dim.",
    ),
    factor: parameter(
      "lokr_factor",
      lokrFactor.default(-1),
      "Size of the smaller factor, 1 to 8; -1: as square as possible.",
    ),
    decomposeBoth: parameter("lokr_decompose_both", offByDefault, "Also decomposes the smaller factor."),
    useTucker: parameter("lokr_use_tucker", offByDefault, meaningOfIgnored("lokr_use_tucker")),
    useScalar: parameter("lokr_use_scalar", offByDefault, "Trains a scalar factor of the whole update."),
    weightDecompose: parameter(
      "lokr_weight_decompose",
      flag.default(true),
      "DoRA: trains direction and magnitude separately.",
    ),
  },
  run: { ...runParameters, ...speedParameters(0.03, 500) },
};

type Values<Shape extends z.ZodRawShape> = z.output<z.ZodObject<Shape>>;

export function pickValues<Shape extends z.ZodRawShape>(shape: Shape, values: Values<Shape>): Values<Shape> {
  return Object.fromEntries(
    Object.keys(shape).map((key) => [key, values[key as keyof Values<Shape>]]),
  ) as never;
}

export type TrainingParameters = Values<typeof loraParameters.run>;
export type AdapterDesign =
  | ({ kind: "lora" } & Values<typeof loraParameters.design>)
  | ({ kind: "lokr" } & Values<typeof lokrParameters.design>);
