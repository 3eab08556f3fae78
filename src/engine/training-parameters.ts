/**
 * The parameters that say how an adapter is trained: the only place where a name, a default or a range of theirs stands. The
 * core's side is `TrainingOptions` (native/core/training/adapter_training.h). A run takes hours, so nothing is clamped.
 */
import { z } from "zod";
import { finiteNumber, flag, oneOf, parameter, strictInteger, within } from "../parameters.js";

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

/** What a run of either kind of adapter is told. */
const runParameters = {
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
};

function speedParameters(rate: number, epochs: number) {
  return {
    learningRate: parameter("learning_rate", learningRate.default(rate), "Of AdamW, above 0."),
    epochs: parameter("train_epochs", count.default(epochs), "How often every sample is trained on."),
  };
}

/** The design of an adapter, and the run that suits it. */
export const loraParameters = {
  design: {
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
  },
  run: { ...runParameters, ...speedParameters(0.03, 500) },
};

type Values<Shape extends z.ZodRawShape> = z.output<z.ZodObject<Shape>>;

/** Those of `values` that the parameters are about. */
export function valuesOf<Shape extends z.ZodRawShape>(shape: Shape, values: Values<Shape>): Values<Shape> {
  return Object.fromEntries(
    Object.keys(shape).map((key) => [key, values[key as keyof Values<Shape>]]),
  ) as never;
}

export type TrainingParameters = Values<typeof loraParameters.run>;
export type AdapterDesign =
  | ({ kind: "lora" } & Values<typeof loraParameters.design>)
  | ({ kind: "lokr" } & Values<typeof lokrParameters.design>);
