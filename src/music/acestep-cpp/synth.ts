/** Translates requests of /synth into the fields of a task. */
import type { Seed } from "../../engine/types.js";
import type { Fields } from "../../parameters.js";
import type { Uploads } from "../audio/uploads.js";
import { RequestError } from "../errors.js";
import { type AceRequest, DEFAULTS, seedAt } from "./ace-request.js";

/** Largest batch of a call; further songs are dropped, as by acestep.cpp. */
export const MAX_SONGS = 9;
const MAX_BATCH_SIZE = 8;
/** Length of a song without a duration, audio codes or a source. */
const DEFAULT_SECONDS = 120;
/** Values of unset fields for each kind of model. */
export const PRESETS = {
  turbo: { inference_steps: 8, guidance_scale: 1, shift: 3 },
  sft: { inference_steps: 50, guidance_scale: 1, shift: 1 },
};
const MAX_STEPS = 100;
const MAX_PEAK_CLIP = 999;

/** Our audio formats by their names in acestep.cpp. */
const FORMATS = { mp3: "mp3", wav16: "wav", wav24: "wav24", wav32: "wav32" } as const;
/** Task types whose stems describe the song, so that it needs no caption. */
const STEM_TASKS: readonly string[] = ["lego", "extract", "complete"];
const SOURCE_TASKS: readonly string[] = [...STEM_TASKS, "cover", "cover-nofsq", "repaint"];

export interface SynthContext {
  isTurbo: boolean;
  /** Our name of the model; undefined: the default. */
  model: string | undefined;
  adapter: { path: string; scale: number } | null;
  uploads: Uploads;
  drawSeed: () => Seed;
}

/** @throws RequestError naming the field of the client */
export function synthFields(requests: readonly AceRequest[], context: SynthContext): Fields {
  const [first] = requests as [AceRequest, ...AceRequest[]];
  const { uploads, model, adapter } = context;
  check(first, uploads);
  const songs = requests.flatMap((request) => songsOf(request, context.drawSeed)).slice(0, MAX_SONGS);
  const words = songs.map(({ request }) => wordsOf(request, uploads));
  const codes = songs.map(({ request }) => codesOf(request));
  return {
    task_type: first.task_type,
    model,
    loras: adapter === null ? [] : [adapter],
    ...words[0],
    ...(requests.length > 1 ? { songs: words } : countFields(songs.length)),
    verbatim: true,
    use_random_seed: false,
    seed: songs.map(({ seed }) => seed),
    ...(codes.every((text) => text === "") ? {} : { audio_codes: codes, use_audio_codes: true }),
    ...trackFields(first),
    ...stepFields(first, context.isTurbo),
    infer_method: first.solver,
    ...waveletFields(first),
    audio_cover_strength: first.audio_cover_strength,
    cover_noise_strength: first.cover_noise_strength,
    latent_shift: first.latent_shift,
    latent_rescale: first.latent_rescale,
    ...windowFields(first),
    ...outputFields(first),
    return_latents: true,
  };
}

/** Number of songs. /release_task takes at most eight without a list. */
export function countFields(count: number): Fields {
  return count > MAX_BATCH_SIZE ? { songs: Array(count).fill({}) } : { batch_size: count };
}

function check({ caption, task_type: task }: AceRequest, { sourceAudio, sourceLatents }: Uploads): void {
  if (caption === "" && !STEM_TASKS.includes(task)) throw new RequestError("caption is required");
  if (SOURCE_TASKS.includes(task) && sourceAudio === null && sourceLatents === null) {
    throw new RequestError(`task_type ${task} needs a source: send it as audio or src_latents in a form`);
  }
}

/** Songs of one request: seed, seed + 1, ... */
function songsOf(request: AceRequest, drawSeed: () => Seed): { request: AceRequest; seed: number }[] {
  const count = Math.min(Math.max(1, request.synth_batch_size), MAX_SONGS);
  const base = request.seed < 0 ? Number(drawSeed()) : request.seed;
  return Array.from({ length: count }, (_, index) => ({ request, seed: seedAt(base, index) }));
}

/** Texts and metadata of a song. */
function wordsOf(request: AceRequest, uploads: Uploads): Fields {
  const { caption, lyrics, bpm, duration, keyscale, timesignature, vocal_language } = request;
  const isFree = codesOf(request) === "" && !hasSource(request, uploads);
  return {
    ...{ caption, lyrics, bpm, keyscale, timesignature, vocal_language },
    duration: duration > 0 || !isFree ? duration : DEFAULT_SECONDS,
  };
}

function hasSource({ task_type }: AceRequest, { sourceAudio, sourceLatents }: Uploads): boolean {
  return SOURCE_TASKS.includes(task_type) && (sourceAudio !== null || sourceLatents !== null);
}

/** Codes belong to text2music; in other tasks the source counts. */
function codesOf({ task_type, audio_codes }: AceRequest): string {
  return task_type === DEFAULTS.task_type ? audio_codes.trim() : "";
}

/** Stems such as `vocals`, or `VOCALS | DRUMS`. */
function trackFields({ task_type, track }: AceRequest): Fields {
  if (!STEM_TASKS.includes(task_type)) return {};
  return task_type === "complete" ? { track_classes: track.split("|") } : { track_name: track };
}

/** Flow times. Unlike those of /release_task, steps, shift and times of turbo models act as sent. */
function stepFields(request: AceRequest, isTurbo: boolean): Fields {
  const preset = isTurbo ? PRESETS.turbo : PRESETS.sft;
  const { inference_steps, guidance_scale, shift } = Object.fromEntries(
    Object.entries(preset).map(([name, unset]) => {
      const sent = request[name as keyof typeof preset];
      return [name, sent > 0 ? sent : unset];
    }),
  ) as typeof preset;
  const steps = Math.min(inference_steps, MAX_STEPS);
  const custom = request.custom_timesteps.split(",").flatMap((text) => text.trim() || []);
  const even = Array.from({ length: steps }, (_, step) => 1 - step / steps);
  const times =
    custom.length >= 2
      ? custom.slice(0, -1).map(Number)
      : even.map((time) => (shift * time) / (1 + (shift - 1) * time));
  return {
    timesteps: [...times, 0],
    free_timesteps: true,
    // Turbo models need none. A value that the client sends causes a warning.
    ...((request.guidance_scale > 0 || !isTurbo) && { guidance_scale }),
  };
}

/** With mode high, acestep.cpp's `dcw_scaler` is the strength of the high band. */
function waveletFields({ dcw_mode: mode, dcw_scaler: scaler, dcw_high_scaler: high }: AceRequest): Fields {
  if (scaler === 0 && high === 0) return {};
  return {
    dcw_enabled: true,
    dcw_mode: mode,
    dcw_scaler: scaler,
    dcw_high_scaler: mode === "high" ? scaler : high,
  };
}

function windowFields({ task_type, repainting_start: start, repainting_end: end }: AceRequest): Fields {
  if (task_type === "lego" && end <= start) return {};
  if (task_type !== "lego" && task_type !== "repaint") return {};
  // A start before the source without an end: only the part before the source is new.
  const sent = end < 0 ? (start < 0 ? 0 : null) : end;
  // The mask alone tells the model what to keep, and the edges are hard cuts.
  return { repainting_windows: [[start, sent]], repaint_strength: 1 };
}

/** Fields of the audio file. */
export function outputFields({ output_format, mp3_bitrate, peak_clip }: AceRequest): Fields {
  if (!Object.hasOwn(FORMATS, output_format)) {
    throw new RequestError(
      `output_format must be one of ${Object.keys(FORMATS).join(", ")}, got ${JSON.stringify(output_format)}`,
    );
  }
  const format = FORMATS[output_format as keyof typeof FORMATS];
  return {
    audio_format: format,
    fade_out: 0,
    ...(format === "mp3" && { mp3_bitrate: mp3_bitrate > 0 ? mp3_bitrate : DEFAULTS.mp3_bitrate }),
    ...(format === "wav32"
      ? { enable_normalization: false }
      : { peak_clip: Math.min(Math.max(0, peak_clip), MAX_PEAK_CLIP) }),
  };
}
