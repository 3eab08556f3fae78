/**
 * Rendering parameters: names, aliases, defaults, ranges, and rules that say when one has an effect, which are defined
 * only here. The groups pass unchanged to the core. Its structs are `Denoise` and `Guidance`
 * (native/core/diffusion/denoise.h) and `EditParameters` (native/core/tasks/render_job.h), whose `each_parameter` maps
 * a name to its field. The addon rejects missing and unknown parameters.
 */
import { z } from "zod";
import {
  atLeast,
  elementsOf,
  finiteNumber,
  type Grouped,
  grouped,
  integer,
  nestedPartOf,
  offByDefault,
  oneOf,
  oneOfOrFallback,
  parameter,
  type Rule,
  refuse,
  refusePart,
  replaceValue,
  type Uses,
  within,
} from "../parameters.js";

/** What the rules know at submission: parameters, and facts about the task. */
export interface SubmittedRendering {
  taskType: string;
  thinking: boolean;
  /** Whether the task uses audio codes sent by the client. */
  hasCodes: boolean;
  /** Whether the client sent latents instead of audio for the source, or for the timbre reference. */
  latents: { isSource: boolean; isReference: boolean };
  timesteps: readonly number[] | null;
  inferenceSteps: number;
  dcwEnabled: boolean;
  dcwMode: string;
  useAdg: boolean;
  guidanceVariant: string | null;
  repaintMode: string;
}

/** What the rules know about a rendered song. */
export interface RenderedSong {
  /** Name of the DiT model. */
  model: string;
  isTurbo: boolean;
  request: { guidance: { guidanceScale: number } };
  /** Whether the window of repaint or lego spans the whole source. */
  isWholeWindow: boolean;
}

/** Checks the types of rules that are written in place. */
export const uses = (own: Uses<string, SubmittedRendering, RenderedSong>): Uses => own;

export const needsTask =
  (...tasks: string[]): Rule<Pick<SubmittedRendering, "taskType">> =>
  ({ taskType }) =>
    tasks.includes(taskType) ? null : `not used by task_type ${taskType}, only by ${tasks.join(", ")}`;

const overriddenByTimesteps: Rule<SubmittedRendering> = ({ timesteps }) =>
  timesteps === null ? null : "replaced by timesteps";

const needsBaseModel: Rule<RenderedSong> = ({ isTurbo, model }) =>
  isTurbo ? `${model} is a turbo model` : null;

const needsGuidance: Rule<RenderedSong> = ({ request: { guidance } }) =>
  guidance.guidanceScale > 1 ? null : `guidance_scale ${guidance.guidanceScale} means no guidance`;

const needsProjection: Rule<SubmittedRendering> = ({ guidanceVariant, useAdg }) => {
  const variant = guidanceVariant ?? (useAdg ? "adg" : "apg_classic");
  return variant === "apg_classic" ? null : `not used by guidance_variant ${variant}`;
};

const needsCorrection: Rule<SubmittedRendering> = ({ dcwEnabled }) =>
  dcwEnabled ? null : "dcw_enabled is false";

const needsPartialWindow: Rule<RenderedSong> = ({ isWholeWindow }) =>
  isWholeWindow ? "the window spans the whole source" : null;

/** Uses of parameters of guidance, its projection, DCW and the repaint window. */
const ofGuidance = { afterSong: [needsBaseModel, needsGuidance] };
const ofProjection = { ...ofGuidance, atSubmission: [needsProjection] };
const ofCorrection = { atSubmission: [needsCorrection] };
const ofWindow = { atSubmission: [needsTask("repaint", "lego")], afterSong: [needsPartialWindow] };

const MAX_TIMESTEPS = 200;
/** Some solvers and guidance variants divide by a step or by the flow time. */
const MIN_STEP = 1e-4;
/** Frames of a minute of latents. */
const MAX_CROSSFADE_FRAMES = 1500;

/** Flow times of the steps, descending from at most 1 to 0. */
const timesteps = z
  .unknown()
  .transform((value, context): number[] => {
    const elements = elementsOf(value)?.filter((element) => element !== "");
    const rule = `must be up to ${MAX_TIMESTEPS} descending numbers from 1 to 0, at least ${MIN_STEP} apart`;
    if (elements === undefined) return refusePart(context, rule, nestedPartOf(value));
    if (elements.length === 0) return refuse(context, rule, value);
    const times = elements.map(Number);
    const isOpen = times.at(-1) !== 0;
    if (isOpen) times.push(0);
    const isDescent = (time: number, i: number) =>
      time >= 0 && time <= 1 && (i === 0 || (times[i - 1] as number) - time >= MIN_STEP);
    const wrong = times.findIndex((time, i) => !isDescent(time, i));
    if (wrong >= 0 || times.length < 2) return refusePart(context, rule, elements[Math.max(wrong, 0)]);
    const steps = times.length - 1;
    if (steps > MAX_TIMESTEPS) return refusePart(context, `must hold at most ${MAX_TIMESTEPS} steps`, steps);
    return isOpen ? replaceValue(context, "must end at 0", value, times) : times;
  })
  .meta({ type: ["string", "array"], items: { type: "number", minimum: 0, maximum: 1 } });

/** Number of denoising steps; 0 and -1 mean the default. */
export const inferenceSteps = (max: number) => {
  const message = `must be from 1 to ${max}`;
  const steps = integer
    .transform((count, context) =>
      count < 1 ? replaceValue(context, message, count, undefined, true) : count,
    )
    .pipe(z.number().max(max, message).meta({ type: "integer", minimum: 1 }));
  return parameter(
    ["inference_steps", "infer_step", "infer_steps", "num_inference_steps"],
    steps.default(8),
    "Denoising steps: 8 for a turbo model (at most 20), 32 to 64 for a base model.",
    uses({ atSubmission: [overriddenByTimesteps] }),
  );
};

/** Larger guidance gives values that are not finite. */
export const MAX_GUIDANCE = 1000;
const share = within(finiteNumber, 0, 1);

const correction = within(finiteNumber, -1, 1);

export const INFER_METHODS = ["ode", "sde", "heun", "dpm3m", "stork4"] as const;
type InferMethod = (typeof INFER_METHODS)[number];
const inferMethod = oneOfOrFallback(["euler", ...INFER_METHODS], "ode")
  .transform((method): InferMethod => (method === "euler" ? "ode" : method))
  .meta({ type: "string", enum: ["euler", ...INFER_METHODS] });

const GUIDANCE_VARIANTS = ["apg_classic", "cfg", "adg", "adg_w_norm", "adg_wo_clip"] as const;
type GuidanceVariant = (typeof GUIDANCE_VARIANTS)[number];
const guidanceVariant = oneOfOrFallback(["apg", ...GUIDANCE_VARIANTS], "apg_classic")
  .transform((variant): GuidanceVariant => (variant === "apg" ? "apg_classic" : variant))
  .meta({ type: "string", enum: ["apg", ...GUIDANCE_VARIANTS] });

export const renderParameters = {
  denoise: z.object({
    inferenceSteps: inferenceSteps(200),
    shift: parameter(
      "shift",
      within(finiteNumber, 1, 5).default(3),
      "Shifts the steps towards the noisy end; base models only.",
      uses({ atSubmission: [overriddenByTimesteps], afterSong: [needsBaseModel] }),
    ),
    timesteps: parameter(
      "timesteps",
      timesteps.nullable().default(null),
      "Flow times of the steps, descending from at most 1 to 0; replaces inference_steps and shift.",
    ),
    freeTimesteps: parameter(
      "free_timesteps",
      offByDefault,
      "Use timesteps as sent with turbo models, too. Otherwise these use the nearest times of their training.",
      uses({
        atSubmission: [({ timesteps }) => (timesteps === null ? "there are no timesteps" : null)],
      }),
    ),
    inferMethod: parameter(
      "infer_method",
      inferMethod.default("ode"),
      "Solver: ode (also euler), sde (new noise at every step), heun (two evaluations a step), dpm3m (third-order multistep), stork4 (stabilised, fourth order).",
    ),
    dcwEnabled: parameter("dcw_enabled", offByDefault, "Wavelet-domain correction (DCW) after every step."),
    dcwMode: parameter(
      "dcw_mode",
      oneOf(["low", "high", "double", "pix"]).default("double"),
      "Bands that DCW corrects: low, high, both (double) or all frequencies without a wavelet (pix).",
      ofCorrection,
    ),
    dcwScaler: parameter(
      "dcw_scaler",
      correction.default(0.05),
      "Strength of DCW in the low band and in mode pix.",
      uses({
        atSubmission: [
          needsCorrection,
          ({ dcwMode }) => (dcwMode === "high" ? "dcw_mode high corrects the high band" : null),
        ],
      }),
    ),
    dcwHighScaler: parameter(
      "dcw_high_scaler",
      correction.default(0.02),
      "Strength of DCW in the high band.",
      uses({
        atSubmission: [
          needsCorrection,
          ({ dcwMode }) =>
            dcwMode === "low" || dcwMode === "pix" ? `not used by dcw_mode ${dcwMode}` : null,
        ],
      }),
    ),
    velocityNormThreshold: parameter(
      "velocity_norm_threshold",
      atLeast(finiteNumber, 0).default(0),
      "Limits the change of every step to this multiple of the state's norm, against outliers; 0: off. Useful values: 1.5 to 3.",
    ),
    velocityEmaFactor: parameter(
      "velocity_ema_factor",
      share.default(0),
      "Share of the previous step's direction in every step, which smooths the path to the song; 0: off. Useful values: 0.05 to 0.2.",
      uses({
        atSubmission: [
          ({ timesteps, inferenceSteps }) =>
            (timesteps?.length ?? inferenceSteps + 1) > 2 ? null : "the song is made in one step",
        ],
      }),
    ),
    latentRescale: parameter(
      "latent_rescale",
      within(finiteNumber, 0.1, 10).default(1),
      "Factor of the song's latents before decoding.",
    ),
    latentShift: parameter(
      "latent_shift",
      within(finiteNumber, -10, 10).default(0),
      "Added to the song's latents before decoding, after latent_rescale.",
    ),
    audioCoverStrength: parameter(
      ["audio_cover_strength", "audioCoverStrength", "cover_strength"],
      share.default(1),
      "Share of the steps that follow the source.",
      uses({
        atSubmission: [
          ({ taskType, hasCodes, thinking }) =>
            taskType === "text2music" && !hasCodes && !thinking
              ? "there is no source and no audio codes to follow"
              : null,
        ],
      }),
    ),
    coverNoiseStrength: parameter(
      "cover_noise_strength",
      share.default(0),
      "How close to the source the first step is; 0: pure noise.",
    ),
  }),
  /** Guidance parameters. Turbo models ignore them, because guidance is distilled into their weights. */
  guidance: z.object({
    guidanceScale: parameter(
      "guidance_scale",
      atLeast(finiteNumber, 0, MAX_GUIDANCE).default(7),
      "How strongly the song follows the caption; 1 or less: no guidance. Base models only.",
      uses({ afterSong: [needsBaseModel] }),
    ),
    useAdg: parameter(
      "use_adg",
      offByDefault,
      "Adaptive dual guidance (adg); base models only.",
      uses({
        ...ofGuidance,
        atSubmission: [
          ({ guidanceVariant }) => (guidanceVariant === null ? null : "replaced by guidance_variant"),
        ],
      }),
    ),
    guidanceVariant: parameter(
      ["guidance_variant", "guidance_mode"],
      guidanceVariant.nullable().default(null),
      "Guidance: apg_classic (projected; also apg), cfg (plain), adg (angle-based), adg_w_norm (larger angles, loudness kept) or adg_wo_clip (any angle). Unset: adg with use_adg, else apg_classic. Base models only.",
      ofGuidance,
    ),
    eta: parameter(
      "eta",
      within(finiteNumber, -10, 10).default(0),
      "apg_classic: factor of the guidance along the guided direction; 1: all of it, as in cfg.",
      ofProjection,
    ),
    momentum: parameter(
      "momentum",
      within(finiteNumber, -1, 1).default(-0.75),
      "apg_classic: factor of the guidance of earlier steps that is added; negative: subtracted.",
      ofProjection,
    ),
    normThreshold: parameter(
      "norm_threshold",
      atLeast(finiteNumber, 0, MAX_GUIDANCE).default(2.5),
      "apg_classic: limit of the guidance's norm; 0: none.",
      ofProjection,
    ),
    cfgIntervalStart: parameter(
      "cfg_interval_start",
      share.default(0),
      "Lowest flow time with guidance. Flow time runs from 1 (noise) to 0 (music): 0.3 leaves the last steps without guidance.",
      ofGuidance,
    ),
    cfgIntervalEnd: parameter(
      "cfg_interval_end",
      share.default(1),
      "Highest flow time with guidance: 0.8 leaves the first steps without guidance.",
      ofGuidance,
    ),
  }),
  /** How repaint and lego treat the window and its surroundings. */
  edit: z.object({
    repaintMode: parameter(
      "repaint_mode",
      oneOf(["conservative", "balanced", "aggressive"]).default("balanced"),
      "How freely repaint blends the window into its surroundings.",
      ofWindow,
    ),
    repaintStrength: parameter(
      "repaint_strength",
      share.default(0.5),
      "In balanced mode: 1 keeps the least of the source around the window.",
      uses({
        atSubmission: [
          ...ofWindow.atSubmission,
          ({ repaintMode }) => (repaintMode === "balanced" ? null : "used only by repaint_mode balanced"),
        ],
        afterSong: ofWindow.afterSong,
      }),
    ),
    repaintLatentCrossfadeFrames: parameter(
      "repaint_latent_crossfade_frames",
      within(integer, 0, MAX_CROSSFADE_FRAMES).nullable().default(null),
      "Frames (25 a second) beside the window over which latents fade from the source to the new part. Unset: set by repaint_mode and repaint_strength.",
      ofWindow,
    ),
    repaintWavCrossfadeSeconds: parameter(
      "repaint_wav_crossfade_sec",
      within(finiteNumber, 0, 60).nullable().default(null),
      "Seconds beside the window over which the recording fades to the new part; 0: hard cut. Unset: set by repaint_mode and repaint_strength.",
      uses({
        ...ofWindow,
        atSubmission: [
          ...ofWindow.atSubmission,
          ({ latents }) => (latents.isSource ? "src_latents have no samples to fade" : null),
        ],
      }),
    ),
    chunkMaskMode: parameter(
      "chunk_mask_mode",
      oneOf(["explicit", "auto"]).default("explicit"),
      "Mask condition of the model: the window (explicit), or all frames (auto).",
      ofWindow,
    ),
    coverNofsq: parameter(
      "cover_nofsq",
      offByDefault,
      "Cover from the full source instead of its audio codes; the song stays closer to the source.",
      uses({
        atSubmission: [
          (facts) => (facts.hasCodes ? "audio codes replace the source" : needsTask("cover")(facts)),
        ],
      }),
    ),
  }),
};

export type RenderParameters = Grouped<typeof renderParameters>;

type AllParameters = RenderParameters["denoise"] & RenderParameters["guidance"] & RenderParameters["edit"];

/** Groups parameters; missing ones get their default. */
export function renderParametersOf(parameters: Partial<AllParameters>): RenderParameters {
  return grouped(renderParameters, parameters);
}
