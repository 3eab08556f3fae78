/** A value for every parameter of POST /release_task. */
import { z } from "zod";
import { renderParameters } from "../../../src/engine/render-parameters.js";
import { type Fields, namesOf } from "../../../src/parameters.js";
import { RANDOM_SEED } from "./request-parsing.js";

interface Sample {
  value: unknown;
  key: string;
  /** The parsed value if parsing changes it. */
  read?: unknown;
}

/** A value that a schema allows, other than its default. */
function anotherValue(schema: z.ZodType): unknown {
  const json = z.toJSONSchema(schema, { io: "input" });
  const { type, enum: choices, minimum, maximum } = json.anyOf?.[0] ?? json;
  const usual = schema.parse(undefined);
  if (type === "boolean") return !usual;
  if (choices !== undefined) return choices.find((choice) => choice !== usual);
  const [least, most] = [minimum ?? Number(usual), maximum ?? Number(usual) + 1];
  return type === "integer" ? most : (least + 2 * most) / 3;
}

/** Samples of rendering parameters, so that a new one needs none here. */
const ofRendering = Object.values(renderParameters).flatMap(({ shape }) =>
  Object.entries(shape).map(([key, schema]): [string, Sample] => [
    namesOf(schema)[0] as string,
    { key, value: anotherValue(schema) },
  ]),
);

/** For each parameter, a value other than the default. */
export const SAMPLES: Record<string, Sample> = {
  ...Object.fromEntries(ofRendering),
  prompt: { value: "jazz", key: "prompt" },
  lyrics: { value: "la la", key: "lyrics" },
  instrumental: { value: true, key: "lyrics", read: "[Instrumental]" },
  thinking: { value: true, key: "thinking" },
  verbatim: { value: true, key: "verbatim" },
  vocal_language: { value: "ja", key: "vocalLanguage" },
  audio_format: { value: "wav", key: "audioFormat" },
  mp3_bitrate: { value: "192k", key: "mp3Bitrate" },
  sample_rate: { value: 44_100, key: "sampleRate" },
  normalization_db: { value: -3, key: "normalizationDb" },
  loudness: { value: -14, key: "loudness" },
  peak_clip: { value: 10, key: "peakClip" },
  enable_normalization: { value: false, key: "normalizes" },
  fade_in: { value: 1.5, key: "fadeInSeconds" },
  fade_out: { value: 2.5, key: "fadeOutSeconds" },
  sample_mode: { value: true, key: "sampleMode" },
  sample_query: { value: "a sad song", key: "sampleQuery" },
  use_format: { value: true, key: "useFormat" },
  model: { value: "other", key: "model" },
  bpm: { value: 90, key: "bpm" },
  key_scale: { value: "F# minor", key: "keyScale" },
  time_signature: { value: "3", key: "timeSignature" },
  get_scores: { value: true, key: "getScores" },
  get_lrc: { value: true, key: "timesLyrics" },
  callback_url: { value: "https://example.org/hook", key: "callbackUrl" },
  temporary: { value: true, key: "isTemporary" },
  audio_duration: { value: 42.5, key: "durationSeconds" },
  inference_steps: { value: 12, key: "inferenceSteps" },
  guidance_scale: { value: 4.5, key: "guidanceScale" },
  use_random_seed: { value: false, key: "seeds", read: [5, RANDOM_SEED] },
  seed: { value: 9, key: "seeds", read: [9, RANDOM_SEED] },
  batch_size: { value: 3, key: "seeds", read: Array(3).fill(RANDOM_SEED) },
  shift: { value: 1.5, key: "shift" },
  infer_method: { value: "sde", key: "inferMethod" },
  dcw_enabled: { value: true, key: "dcwEnabled" },
  dcw_mode: { value: "pix", key: "dcwMode" },
  dcw_scaler: { value: 0.5, key: "dcwScaler" },
  dcw_high_scaler: { value: 0.5, key: "dcwHighScaler" },
  velocity_norm_threshold: { value: 0.5, key: "velocityNormThreshold" },
  velocity_ema_factor: { value: 0.1, key: "velocityEmaFactor" },
  latent_rescale: { value: 1.25, key: "latentRescale" },
  latent_shift: { value: 0.2, key: "latentShift" },
  songs: { value: [{}, { bpm: 99 }], key: "own", read: [{}, { bpm: 99 }] },
  free_timesteps: { value: true, key: "freeTimesteps" },
  timesteps: { value: "0.9,0.4,0", key: "timesteps", read: [0.9, 0.4, 0] },
  use_adg: { value: true, key: "useAdg" },
  guidance_variant: { value: "apg", key: "guidanceVariant", read: "apg_classic" },
  eta: { value: 0.5, key: "eta" },
  momentum: { value: 0.5, key: "momentum" },
  norm_threshold: { value: 0.1, key: "normThreshold" },
  cfg_interval_start: { value: 0.25, key: "cfgIntervalStart" },
  cfg_interval_end: { value: 0.75, key: "cfgIntervalEnd" },
  lm_model_path: { value: "acestep-5Hz-lm-4B", key: "languageModel" },
  lm_backend: { value: "pt", key: "lmBackend" },
  lm_temperature: { value: 0.5, key: "temperature" },
  lm_cfg_scale: { value: 3, key: "cfgScale" },
  lm_negative_prompt: { value: "noise", key: "negativePrompt" },
  lm_top_k: { value: 40, key: "topK" },
  lm_top_p: { value: 0.5, key: "topP" },
  lm_min_p: { value: 0.1, key: "minP" },
  lm_seed: { value: 11, key: "lmSeeds", read: [11, 11] },
  lm_repetition_penalty: { value: 1.1, key: "repetitionPenalty" },
  use_cot_caption: { value: false, key: "useCotCaption" },
  use_cot_language: { value: false, key: "useCotLanguage" },
  constrained_decoding: { value: false, key: "constrained" },
  constrained_decoding_debug: { value: true, key: "debug" },
  allow_lm_batch: { value: false, key: "sharesBatch" },
  instruction: { value: "Do it:", key: "instruction" },
  repainting_start: { value: 1.5, key: "repaintingStartSeconds" },
  repainting_end: { value: 9, key: "repaintingEndSeconds" },
  audio_cover_strength: { value: 0.5, key: "audioCoverStrength" },
  audio_code_string: {
    value: "1,2",
    key: "codes",
    read: [
      [1, 2],
      [1, 2],
    ],
  },
  use_audio_codes: { value: true, key: "codes", read: [[3], [3]] },
  task_type: { value: "cover", key: "taskType" },
  src_audio_path: {
    value: "a.wav",
    key: "source",
    read: { kind: "sourceAudio", path: "a.wav", isUpload: false },
  },
  reference_audio_path: {
    value: "/b.wav",
    key: "reference",
    read: { kind: "referenceAudio", path: "/b.wav", isUpload: false },
  },
  src_latents_path: {
    value: "a.st",
    key: "source",
    read: { kind: "sourceLatents", path: "a.st", isUpload: false },
  },
  ref_latents_path: {
    value: "/b.st",
    key: "reference",
    read: { kind: "referenceLatents", path: "/b.st", isUpload: false },
  },
  return_latents: { value: true, key: "returnLatents" },
  loras: {
    value: [{ path: "style", scale: "-0.5" }, { name: "warm" }],
    key: "loras",
    read: [
      { path: "style", name: null, scale: -0.5, doraEpsilon: "float32" },
      { path: null, name: "warm", scale: 1, doraEpsilon: "float32" },
    ],
  },
  track_name: { value: "bass", key: "tracks", read: [["bass"], ["bass"]] },
  track_classes: { value: ["drums", "bass"], key: "tracks", read: [["drums"], ["bass"]] },
  repainting_windows: { value: "0.1,0.3", key: "repaintingWindows", read: [[0.1, 0.3]] },
  global_caption: { value: "funk", key: "globalCaption" },
  cover_noise_strength: { value: 0.25, key: "coverNoiseStrength" },
  repaint_mode: { value: "aggressive", key: "repaintMode" },
  repaint_strength: { value: 0.75, key: "repaintStrength" },
  repaint_latent_crossfade_frames: { value: 2, key: "repaintLatentCrossfadeFrames" },
  repaint_wav_crossfade_sec: { value: 0.1, key: "repaintWavCrossfadeSeconds" },
  chunk_mask_mode: { value: "auto", key: "chunkMaskMode" },
  cover_nofsq: { value: true, key: "coverNofsq" },
  analysis_only: { value: true, key: "analysis", read: "metadata" },
  full_analysis_only: { value: true, key: "analysis", read: "full" },
  extract_codes_only: { value: true, key: "analysis", read: "codes" },
  plan_only: { value: true, key: "analysis", read: "plan" },
  encode_only: { value: true, key: "analysis", read: "latents" },
  decode_only: { value: true, key: "analysis", read: "audio" },
};

/** For each parameter, other fields that it needs to have an effect. */
export const COMPANIONS: Record<string, Fields> = {
  seed: { use_random_seed: false },
  use_random_seed: { seed: 5 },
  audio_code_string: { use_audio_codes: true },
  use_audio_codes: { audio_code_string: "3" },
  task_type: { src_audio_path: "a.wav" },
  src_audio_path: { task_type: "cover" },
  src_latents_path: { task_type: "cover" },
  full_analysis_only: { src_audio_path: "a.wav" },
  extract_codes_only: { src_audio_path: "a.wav" },
  encode_only: { src_audio_path: "a.wav" },
  decode_only: { src_latents_path: "a.safetensors" },
  track_name: { task_type: "lego", src_audio_path: "a.wav" },
  track_classes: { task_type: "lego", src_audio_path: "a.wav" },
};
