/** The request object of acestep.cpp: its fields with their defaults, how it is read, and how it is written. */
import { isObject } from "../../parameters.js";
import { RequestError } from "../errors.js";
import { parseClientJson } from "../request/json.js";

interface Field<Value> {
  unset: Value;
  meaning: string;
}

function field<Value>(unset: Value, meaning: string): Field<Value> {
  return { unset, meaning };
}

/** All fields: their defaults and meanings. 0, "" and -1 mostly mean unset. */
export const FIELDS = {
  caption: field("", "Description of the song."),
  lyrics: field("", "Lyrics. [Instrumental]: none; then vocal_language is unknown."),
  bpm: field(0, "Beats per minute; 0: unset."),
  duration: field(0, "Seconds, 10 to 600; 0: unset, 120 for a song without a plan or a source."),
  keyscale: field("", 'Key, such as "F# minor".'),
  timesignature: field("", "Beats in a bar: 2, 3, 4 or 6."),
  vocal_language: field("", "Language of the lyrics, such as en; unknown is a value of its own."),
  seed: field(-1, "Seed of the noise, of which the lowest 32 bits count; song i uses seed + i. -1: random."),
  lm_batch_size: field(1, "Number of songs that /lm plans, 1 to 9."),
  synth_batch_size: field(1, "Number of songs that /synth makes of the request; 9 in a call."),
  lm_temperature: field(
    0.85,
    "Sampling temperature of the language model; /understand without a request: 0.3.",
  ),
  lm_cfg_scale: field(2, "Guidance scale of audio codes."),
  lm_top_p: field(0.9, "Top-p sampling of the language model; /understand without a request: 1."),
  lm_top_k: field(0, "Top-k sampling of the language model; 0: off."),
  lm_negative_prompt: field("", "Negative prompt of audio codes."),
  lm_seed: field(-1, "Seed of the language model; song i uses lm_seed + i. -1: random."),
  use_cot_caption: field(true, "Whether /lm may replace the caption."),
  audio_codes: field(
    "",
    "Audio codes, such as 3101,11837. /lm then changes nothing; text2music is rendered from them.",
  ),
  inference_steps: field(
    0,
    "Steps, at most 100; 0: 8 for turbo models, 50 for others. Acts on turbo models, too.",
  ),
  guidance_scale: field(0, "Guidance; 0: 1, which is none. Without effect on turbo models."),
  shift: field(0, "Shift of the steps; 0: 3 for turbo models, 1 for others. Acts on turbo models, too."),
  dcw_scaler: field(0, "Strength of the wavelet correction; in mode double that of the low band."),
  dcw_high_scaler: field(0, "Strength in the high band in mode double."),
  dcw_mode: field("low", "Bands of the wavelet correction: low, high, double or pix."),
  audio_cover_strength: field(1, "Share of the steps that follow the source."),
  cover_noise_strength: field(0, "How close to the source the first step is."),
  repainting_start: field(
    0,
    "Start of the window of repaint and lego in seconds; below 0: before the source.",
  ),
  repainting_end: field(
    -1,
    "End of the window; below 0: end of the source, or its start if repainting_start is below 0.",
  ),
  latent_shift: field(0, "Added to the latents after latent_rescale."),
  latent_rescale: field(1, "Factor of the latents."),
  custom_timesteps: field("", "Flow times in place of steps and shift; the last one is the end."),
  task_type: field("text2music", "text2music, cover, cover-nofsq, repaint, lego, extract or complete."),
  track: field("", "Stem of lego and extract, such as vocals; complete takes several: VOCALS | DRUMS."),
  solver: field("euler", "euler, sde, dpm3m or stork4."),
  stork_substeps: field(10, "Accepted without effect: our stork4 needs no substeps."),
  lm_mode: field("generate", "generate, inspire or format."),
  output_format: field("mp3", "mp3, wav16, wav24 or wav32."),
  peak_clip: field(
    10,
    "Millionths of the samples that may clip when the rest is scaled to full scale; not for wav32.",
  ),
  mp3_bitrate: field(128, "Bit rate of mp3 in kbit/s."),
  synth_model: field("", "Model, a name of /props, with or without .gguf."),
  lm_model: field("", "Language model, a name of /props, with or without .gguf."),
  adapter: field("", "Adapter, a name of /props; unset: none."),
  adapter_scale: field(1, "Strength of the adapter."),
  vae: field("", "Accepted without effect: every model has its own VAE."),
};

export type AceRequest = { [Name in keyof typeof FIELDS]: (typeof FIELDS)[Name]["unset"] };

export const DEFAULTS = Object.fromEntries(
  Object.entries(FIELDS).map(([name, { unset }]) => [name, unset]),
) as AceRequest;

type Value = AceRequest[keyof AceRequest];

/** Fields that are whole numbers; fractions are cut off. */
const INTEGERS: ReadonlySet<string> = new Set([
  ...["bpm", "seed", "lm_seed", "lm_batch_size", "synth_batch_size", "lm_top_k", "inference_steps"],
  ...["stork_substeps", "peak_clip", "mp3_bitrate"],
]);
/** Texts for which "" means the default. */
const WORDS: ReadonlySet<string> = new Set(["task_type", "solver", "lm_mode", "output_format", "dcw_mode"]);
/** Fields that an answer contains even at their defaults. */
const ALWAYS_WRITTEN: ReadonlySet<string> = new Set([
  ...["caption", "seed", "solver", "lm_mode", "output_format", "task_type"],
]);
/** Range of seeds: noise uses the lowest 32 bits. */
const SEEDS = 2n ** 32n;

export const INSTRUMENTAL = "[Instrumental]";
export const UNKNOWN_LANGUAGE = "unknown";

/**
 * Reads requests: one object, or a list of at least one. A missing field, or one of a wrong type, has its default.
 * @param value JSON, or the text of it
 * @throws RequestError if it is no JSON, or holds something else than requests
 */
export function readAceRequests(value: unknown): [AceRequest, ...AceRequest[]] {
  const read = typeof value === "string" ? parseText(value) : value;
  const [first, ...others] = Array.isArray(read) ? read : [read];
  if (first === undefined) throw new RequestError("Invalid JSON: the list of requests is empty");
  const parse = (request: unknown, index: number) => {
    if (isObject(request)) return readAceRequest(request);
    const place = Array.isArray(read) ? `element ${index} of the list` : "the body";
    throw new RequestError(`Invalid JSON: ${place} must be a request object`);
  };
  return [parse(first, 0), ...others.map((request, index) => parse(request, index + 1))];
}

function parseText(text: string): unknown {
  try {
    return parseClientJson(jsonPartOf(text), "request");
  } catch (error) {
    if (error instanceof RequestError) throw error;
    throw new RequestError(`Invalid JSON in request: ${(error as Error).message}`);
  }
}

/** Scripts send the whole answer of /understand as a request. Its first part is the JSON. */
function jsonPartOf(text: string): string {
  if (!text.startsWith("--")) return text;
  const begin = text.indexOf("\r\n\r\n") + 4;
  return text.slice(begin, text.indexOf("\r\n--", begin));
}

function readAceRequest(fields: Readonly<Record<string, unknown>>): AceRequest {
  const entries = Object.entries(DEFAULTS).map(([name, unset]) => {
    const value = Object.hasOwn(fields, name) ? readValue(name, fields[name], unset) : undefined;
    return [name, value ?? unset];
  });
  const request = Object.fromEntries(entries) as AceRequest;
  if (request.lyrics === INSTRUMENTAL) request.vocal_language = UNKNOWN_LANGUAGE;
  return request;
}

/** The value as the type of its field; undefined if it has another one. */
function readValue(name: string, value: unknown, unset: Value): Value | undefined {
  if (typeof unset === "boolean") {
    if (typeof value === "string") return value === "true" || value === "1";
    return typeof value === "boolean" ? value : undefined;
  }
  if (typeof unset === "string") {
    return typeof value === "string" && !(value === "" && WORDS.has(name)) ? value : undefined;
  }
  // Integers beyond 2^53 arrive as text, see parseClientJson.
  if (name.endsWith("seed") && typeof value === "string" && /^\d{16,}$/.test(value))
    return low32(BigInt(value));
  if (typeof value !== "number" || !Number.isFinite(value)) return undefined;
  if (!INTEGERS.has(name)) return value;
  const whole = Math.trunc(value);
  return name.endsWith("seed") && whole > 0 ? low32(BigInt(whole)) : whole;
}

function low32(seed: bigint): number {
  return Number(seed % SEEDS);
}

/** Seed of the song at `index` of a request. */
export function seedAt(seed: number, index: number): number {
  return low32(BigInt(seed) + BigInt(index));
}

/** Omits fields at their defaults. */
export function sparse(request: AceRequest): Partial<AceRequest> {
  const entries = Object.entries(request).filter(
    ([name, value]) => ALWAYS_WRITTEN.has(name) || value !== DEFAULTS[name as keyof AceRequest],
  );
  return Object.fromEntries(entries);
}
