/** Rules that say when a rendering parameter has an effect. */
import type { Rule, Uses } from "../parameters.js";

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

export const overriddenByTimesteps: Rule<SubmittedRendering> = ({ timesteps }) =>
  timesteps === null ? null : "replaced by timesteps";

export const needsBaseModel: Rule<RenderedSong> = ({ isTurbo, model }) =>
  isTurbo ? `${model} is a turbo model` : null;

const needsGuidance: Rule<RenderedSong> = ({ request: { guidance } }) =>
  guidance.guidanceScale > 1 ? null : `guidance_scale ${guidance.guidanceScale} means no guidance`;

const needsProjection: Rule<SubmittedRendering> = ({ guidanceVariant, useAdg }) => {
  const variant = guidanceVariant ?? (useAdg ? "adg" : "apg_classic");
  return variant === "apg_classic" ? null : `not used by guidance_variant ${variant}`;
};

export const needsCorrection: Rule<SubmittedRendering> = ({ dcwEnabled }) =>
  dcwEnabled ? null : "dcw_enabled is false";

const needsPartialWindow: Rule<RenderedSong> = ({ isWholeWindow }) =>
  isWholeWindow ? "the window spans the whole source" : null;

/** Uses of parameters of guidance, its projection, DCW and the repaint window. */
export const ofGuidance = { afterSong: [needsBaseModel, needsGuidance] };
export const ofProjection = { ...ofGuidance, atSubmission: [needsProjection] };
export const ofCorrection = { atSubmission: [needsCorrection] };
export const ofWindow = { atSubmission: [needsTask("repaint", "lego")], afterSong: [needsPartialWindow] };
