/** The stages of a job, and how long they take. */
import { CODES_PER_SECOND, type MusicEngine } from "../../engine/types.js";
import type { GenerationRequest } from "../request/generation-request.js";
import { usesLanguageModel, writesCodes, writesTextBeforePlanning } from "./language-model.js";
import { estimateLength } from "./lyric-length.js";

/** What the time of a stage is proportional to: the length of the song, that times the steps, or neither. */
type Measure = "song" | "second" | "step";

interface Stage {
  /** Shown as `stage`, with # for the songs. Clients match it. */
  name: string;
  /**
   * Start of the progress line. Clients match "processing source", "LLM usage", "DiT diffusion", "decoding", "saving".
   */
  label: string;
  per: Measure;
  /** Seconds for each song, second or step, until a job has measured them: carillon-nano on two threads. */
  seconds: number;
}

/** Stages in their order, by step, and by step and what the engine reports. */
export const STAGES = {
  load: { name: "Initializing...", label: "Initializing", per: "song", seconds: 0 },
  source: {
    name: "Reading source audio...",
    label: "Processing source audio",
    per: "second",
    seconds: 0.003,
  },
  codes: {
    name: "Extracting audio codes...",
    label: "Processing source audio",
    per: "second",
    seconds: 0.02,
  },
  understand: {
    name: "Describing the recording...",
    label: "LLM usage (understanding)",
    per: "song",
    seconds: 0.5,
  },
  sample: { name: "Writing a song sheet...", label: "LLM usage (song sheet)", per: "song", seconds: 0.3 },
  format: {
    name: "Formatting caption and lyrics...",
    label: "LLM usage (format)",
    per: "song",
    seconds: 0.3,
  },
  plan: {
    name: "Phase 1: Generating CoT metadata (#)...",
    label: "LLM usage (metadata)",
    per: "song",
    seconds: 0.1,
  },
  "plan codes": {
    name: "Phase 2: Generating audio codes (#)...",
    label: "LLM usage (audio codes)",
    per: "second",
    seconds: 0.01,
  },
  render: { name: "Preparing inputs...", label: "Preparing inputs", per: "song", seconds: 0.03 },
  "render denoise": {
    name: "Generating music (#)...",
    label: "DiT diffusion",
    per: "step",
    seconds: 0.002,
  },
  "render decode": { name: "Decoding audio...", label: "Decoding audio", per: "second", seconds: 0.02 },
  encode: { name: "Preparing audio data...", label: "Saving audio", per: "second", seconds: 0.01 },
} as const satisfies Record<string, Stage>;

export type StageName = keyof typeof STAGES;
export const STAGE_NAMES = Object.keys(STAGES) as StageName[];

/** Seconds that the stages of a job take for each song; stages that the job does not have are absent. */
export type StageSeconds = ReadonlyMap<StageName, number>;

/** Measured seconds of stages, for each song, second or step. */
const measurements = new WeakMap<MusicEngine, Map<string, number>>();

/** @param usesLmByDefault whether the language model plans songs that do not require it */
export function expectedStages(
  engine: MusicEngine,
  request: GenerationRequest,
  usesLmByDefault: boolean,
): StageSeconds {
  const known = measurements.get(engine);
  const secondsOf = (name: StageName) =>
    (known?.get(keyOf(name, request)) ?? STAGES[name].seconds) * amountOf(name, request);
  return new Map(stagesOf(request, usesLmByDefault).map((name) => [name, secondsOf(name)]));
}

/** @param measured seconds of the stages of a finished job, for each song */
export function learnStages(engine: MusicEngine, request: GenerationRequest, measured: StageSeconds): void {
  const known = measurements.get(engine) ?? new Map<string, number>();
  measurements.set(engine, known);
  for (const [name, seconds] of measured) {
    // Models are loaded once.
    if (name !== "load") known.set(keyOf(name, request), seconds / amountOf(name, request));
  }
}

/** Models differ in speed. */
function keyOf(name: StageName, { model, planning }: GenerationRequest): string {
  return [name, model, planning.languageModel].join(" ");
}

function amountOf(name: StageName, { words, facts, denoise, songs }: GenerationRequest): number {
  const { per } = STAGES[name];
  if (per === "song") return 1;
  const codes = songs[0]?.codes;
  const length = codes
    ? codes.length / CODES_PER_SECOND
    : (facts.durationSeconds ?? estimateLength(words.lyrics, facts).seconds);
  return per === "second" ? length : length * denoise.inferenceSteps;
}

function stagesOf(request: GenerationRequest, usesLmByDefault: boolean): StageName[] {
  const { analysis, words, source, reference } = request;
  const plans = usesLanguageModel(request, usesLmByDefault);
  const composes = analysis === null || analysis === "plan";
  const writes = plans && composes && writesTextBeforePlanning(request);
  const isSampled = words.sampleMode || words.sampleQuery !== "";
  const has: Readonly<Record<StageName, boolean>> = {
    load: true,
    source: source !== null || reference !== null,
    codes: analysis === "latents" || analysis === "codes" || analysis === "full",
    understand: analysis === "full",
    sample: writes && isSampled,
    format: writes && !isSampled,
    plan: plans && (composes || analysis === "metadata"),
    "plan codes": plans && composes && writesCodes(request),
    render: analysis === null,
    "render denoise": analysis === null,
    "render decode": analysis === null || analysis === "audio",
    encode: analysis === null || analysis === "audio",
  };
  return STAGE_NAMES.filter((name) => has[name]);
}
