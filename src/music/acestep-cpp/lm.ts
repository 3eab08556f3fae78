/** Translates requests of /lm and /understand into the fields of a task, and its result into requests. */
import type { Seed } from "../../engine/types.js";
import type { Fields } from "../../parameters.js";
import { RequestError } from "../errors.js";
import type { SongPlan } from "../song/analysis.js";
import { type AceRequest, DEFAULTS, INSTRUMENTAL, seedAt, sparse, UNKNOWN_LANGUAGE } from "./ace-request.js";
import { countFields, MAX_SONGS } from "./synth.js";

const MODES = ["generate", "inspire", "format"];

/** A request with its random seeds drawn, from which the answer is made. */
export function withSeeds(request: AceRequest, drawSeed: () => Seed): AceRequest {
  const drawn = (seed: number) => (seed < 0 ? Number(drawSeed()) : seed);
  return { ...request, seed: drawn(request.seed), lm_seed: drawn(request.lm_seed) };
}

/** @throws RequestError naming the field of the client */
export function lmFields(request: AceRequest, languageModel: string | undefined): Fields {
  const { caption, lyrics, lm_mode: mode } = request;
  if (caption === "") throw new RequestError("caption is required");
  if (!MODES.includes(mode)) {
    throw new RequestError(`lm_mode must be one of ${MODES.join(", ")}, got ${JSON.stringify(mode)}`);
  }
  const hasCodes = request.audio_codes !== "";
  const count = Math.min(Math.max(1, request.lm_batch_size), MAX_SONGS);
  const seeds = (first: number) => Array.from({ length: count }, (_, index) => seedAt(first, index));
  const { bpm, duration, keyscale, timesignature, vocal_language } = request;
  return {
    plan_only: true,
    caption,
    lyrics,
    ...{ bpm, duration, keyscale, timesignature, vocal_language },
    // With audio codes there is nothing to do.
    ...(hasCodes
      ? { verbatim: true }
      : {
          ...(writesLyrics(request) && { sample_query: caption }),
          use_format: mode === "format",
          thinking: mode === "generate",
        }),
    ...countFields(count),
    use_random_seed: false,
    seed: seeds(request.seed),
    lm_seed: seeds(request.lm_seed),
    use_cot_caption: request.use_cot_caption,
    lm_model: languageModel,
    lm_temperature: request.lm_temperature,
    lm_cfg_scale: request.lm_cfg_scale,
    lm_top_p: request.lm_top_p,
    lm_top_k: request.lm_top_k,
    lm_negative_prompt: request.lm_negative_prompt,
  };
}

/** Whether the language model writes a song sheet from the caption. */
export function writesLyrics({ lm_mode, lyrics }: AceRequest): boolean {
  return lm_mode === "inspire" || (lm_mode === "generate" && lyrics === "");
}

/** The request of each song, with empty fields filled. Fields that the client set stay. */
export function filledRequests(request: AceRequest, plans: readonly SongPlan[]): Partial<AceRequest>[] {
  return plans.map((plan, index) => {
    const own = {
      seed: seedAt(request.seed, index),
      lm_seed: seedAt(request.lm_seed, index),
      lm_batch_size: 1,
    };
    if (request.audio_codes !== "") return sparse({ ...request, ...own });
    const replacesCaption = request.use_cot_caption || request.lm_mode === "inspire";
    const isFormat = request.lm_mode === "format";
    return sparse({
      ...request,
      ...(request.lm_mode === "inspire" && { use_cot_caption: true }),
      caption: (replacesCaption && plan.caption) || request.caption,
      lyrics: (isFormat && plan.lyrics) || request.lyrics || plan.lyrics,
      bpm: request.bpm || (plan.bpm ?? 0),
      duration: request.duration || (plan.duration ?? 0),
      keyscale: request.keyscale || plan.key_scale,
      timesignature: request.timesignature || plan.time_signature,
      vocal_language: request.vocal_language || languageOf(request, plan),
      audio_codes: plan.audio_codes,
      ...own,
    });
  });
}

function languageOf({ lyrics }: AceRequest, plan: SongPlan): string {
  return (lyrics || plan.lyrics) === INSTRUMENTAL ? UNKNOWN_LANGUAGE : plan.vocal_language;
}

/** Fields of a task that describes a recording. */
export function understandFields(request: AceRequest, languageModel: string | undefined): Fields {
  return {
    full_analysis_only: true,
    return_latents: true,
    verbatim: true,
    use_random_seed: false,
    seed: request.lm_seed,
    lm_model: languageModel,
    lm_temperature: request.lm_temperature,
    lm_top_p: request.lm_top_p,
    lm_top_k: request.lm_top_k,
  };
}

/** The request that describes a recording: what /understand answers. */
export function describedRequest(
  { seed, lm_seed }: AceRequest,
  analysis: Readonly<Record<string, unknown>>,
): Partial<AceRequest> {
  const text = (name: string) => String(analysis[name] ?? "");
  return sparse({
    ...DEFAULTS,
    ...{ seed, lm_seed },
    // A model that writes no text describes the music by its facts: /synth requires a caption.
    caption: text("prompt") || captionOf(text("bpm"), text("keyscale")),
    lyrics: text("lyrics"),
    bpm: Number(analysis.bpm ?? 0),
    duration: Number(analysis.duration ?? 0),
    keyscale: text("keyscale"),
    timesignature: text("timesignature"),
    vocal_language: text("language"),
    audio_codes: [...text("audio_codes").matchAll(/\d+(?=\|>)/g)].join(),
  });
}

function captionOf(bpm: string, key: string): string {
  return ["music", bpm && `at ${bpm} bpm`, key && `in ${key}`].filter(Boolean).join(" ");
}
