/** The stages of a job, and how long they take. */
import type { MusicEngine } from "../../engine/types.js";
import type { GenerationRequest } from "../request/generation-request.js";
import { usesLanguageModel, writesCodes, writesTextBeforePlanning } from "./language-model.js";

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

/** The stages of one job. */
export class JobStages {
  /** Seconds that each stage should take for each song: what it took in the last job, or what `STAGES` says. */
  readonly expected: StageSeconds;
  readonly #known: Map<string, number>;
  readonly #keyOf: (name: StageName) => string;
  readonly #amountOf: (name: StageName) => number;

  /**
   * @param songSeconds length of a song, as far as known
   * @param usesLmByDefault whether the language model plans songs that do not require it
   */
  constructor(
    engine: MusicEngine,
    request: GenerationRequest,
    songSeconds: number,
    usesLmByDefault: boolean,
  ) {
    const { model, planning, denoise } = request;
    const amounts = { song: 1, second: songSeconds, step: songSeconds * denoise.inferenceSteps };
    this.#known = measurements.get(engine) ?? new Map<string, number>();
    measurements.set(engine, this.#known);
    // Models differ in speed.
    this.#keyOf = (name) => [name, model, planning.languageModel].join(" ");
    this.#amountOf = (name) => amounts[STAGES[name].per];
    const secondsOf = (name: StageName) =>
      (this.#known.get(this.#keyOf(name)) ?? STAGES[name].seconds) * this.#amountOf(name);
    this.expected = new Map(stagesOf(request, usesLmByDefault).map((name) => [name, secondsOf(name)]));
  }

  /** @param measured seconds of the stages of the finished job, for each song */
  learn(measured: StageSeconds): void {
    for (const [name, seconds] of measured) {
      // Models are loaded once.
      if (name !== "load") this.#known.set(this.#keyOf(name), seconds / this.#amountOf(name));
    }
  }
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
