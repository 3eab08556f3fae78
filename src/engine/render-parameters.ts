/**
 * The parameters that say how a song is rendered, in groups that go whole from the request to the core: the only place
 * where a name, an alias, a default or a range of theirs stands. The core's side is `Denoise`, `Guidance`
 * (native/core/diffusion/denoise.h) and `Edit` (native/core/tasks/render_job.h), read by native/addon/renderer_object.cpp,
 * which refuses a group that lacks a parameter or holds one that it does not know.
 */
import { z } from "zod";
import {
  elementsOf,
  finiteNumber,
  flag,
  integer,
  oneOf,
  oneOfElse,
  outOfRange,
  parameter,
  refuse,
  within,
} from "../parameters.js";

const MAX_TIMESTEPS = 200;

/** From at most 1 down to 0, the 0 optional. */
const timesteps = z
  .unknown()
  .transform((value, context): number[] => {
    const elements = elementsOf(value)?.filter((element) => element !== "");
    const rule = `must be up to ${MAX_TIMESTEPS} numbers from 1 down to 0, each below the one before`;
    if (elements === undefined || elements.length === 0) return refuse(context, rule, value);
    const times = elements.map(Number);
    if (times.at(-1) === 0) times.pop();
    times.push(0);
    const isDescending = times.every((time, i) => i === 0 || time < (times[i - 1] as number));
    const isInRange = times.every((time) => time >= 0 && time <= 1);
    const steps = times.length - 1;
    if (!isDescending || !isInRange || steps < 1 || steps > MAX_TIMESTEPS)
      return refuse(context, rule, value);
    return times;
  })
  .meta({ type: ["string", "array"], items: { type: "number", minimum: 0, maximum: 1 } });

/** Clients write 0 and -1 for the default. */
export const inferenceSteps = (max: number) => {
  const message = `must be from 1 to ${max}`;
  const steps = integer
    .transform((count, context) => (count < 1 ? outOfRange(context, message, count, undefined) : count))
    .pipe(z.number().max(max, message).meta({ type: "integer", minimum: 1 }));
  return parameter(
    "inference_steps",
    steps.default(8),
    "Steps of denoising: 8 for a turbo model, which takes 20 at most; 32 to 64 for a base model.",
  );
};

const share = within(finiteNumber, 0, 1);

export const renderParameters = {
  denoise: z.object({
    inferenceSteps: inferenceSteps(200),
    shift: parameter(
      "shift",
      within(finiteNumber, 1, 5).default(3),
      "Moves the steps towards the noisy end; base models only.",
    ),
    timesteps: parameter(
      "timesteps",
      timesteps.nullable().default(null),
      "Flow times of the steps, from at most 1 down to 0; they take the place of inference_steps and shift.",
    ),
    inferMethod: parameter(
      "infer_method",
      oneOfElse(["ode", "sde"], "ode").default("ode"),
      "Solver: ode is deterministic, sde adds noise at every step.",
    ),
    audioCoverStrength: parameter(
      ["audio_cover_strength", "audioCoverStrength", "cover_strength"],
      share.default(1),
      "Share of the steps that follow the source.",
    ),
    coverNoiseStrength: parameter(
      "cover_noise_strength",
      share.default(0),
      "How close to the source the steps begin; 0: with noise alone.",
    ),
  }),
  /** Turbo models have guidance distilled in and use none. */
  guidance: z.object({
    guidanceScale: parameter(
      "guidance_scale",
      finiteNumber.default(7),
      "How strongly the song follows the caption; base models only.",
    ),
    useAdg: parameter("use_adg", flag.default(false), "Adaptive dual guidance; base models only."),
    cfgIntervalStart: parameter(
      "cfg_interval_start",
      share.default(0),
      "Where guidance begins, as a share of the steps.",
    ),
    cfgIntervalEnd: parameter(
      "cfg_interval_end",
      share.default(1),
      "Where guidance ends, as a share of the steps.",
    ),
  }),
  /** How repaint and lego treat the window and what lies around it. */
  edit: z.object({
    repaintMode: parameter(
      "repaint_mode",
      oneOf(["conservative", "balanced", "aggressive"]).default("balanced"),
      "How freely repaint joins the window to what lies around it.",
    ),
    repaintStrength: parameter(
      "repaint_strength",
      share.default(0.5),
      "In balanced mode: 1 keeps the least of the source around the window.",
    ),
    chunkMaskMode: parameter(
      "chunk_mask_mode",
      oneOf(["explicit", "auto"]).default("explicit"),
      "Whether the model is told the window (explicit), or that every frame is open to change (auto).",
    ),
  }),
};

type Groups = typeof renderParameters;
export type RenderParameters = { [Group in keyof Groups]: z.output<Groups[Group]> };
/** The same side by side, as requests hold them. */
export type FlatRenderParameters = RenderParameters["denoise"] &
  RenderParameters["guidance"] &
  RenderParameters["edit"];

/** The groups out of a request. One may lack a parameter: its default takes the place. */
export function renderParametersOf(request: Partial<FlatRenderParameters>): RenderParameters {
  const flat: Readonly<Record<string, unknown>> = request;
  const groups = Object.entries(renderParameters).map(([group, { shape }]) => {
    const values = Object.entries(shape).map(([key, type]) => [key, flat[key] ?? type.parse(undefined)]);
    return [group, Object.fromEntries(values)];
  });
  return Object.fromEntries(groups);
}
