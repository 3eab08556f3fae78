/**
 * Requests that public clients of the ACE-Step 1.5 API server send, and the response fields that they read. Only the
 * lengths of songs differ from the originals.
 */
import { existsSync } from "node:fs";
import { expect } from "chai";
import type { TaskStatusItem } from "../../src/music/queue/task-status.js";
import { type Client, type SongRecord, shortSong } from "../music/live-server.js";

export interface PublicClient {
  name: string;
  headers: Record<string, string>;
  /** Path that the client's user appends to the server's address. */
  base?: string;
  /** Multipart clients send every value as text, and files as Blob. */
  encoding: "json" | "multipart";
  song: Record<string, unknown>;
  /** Sends the requests of the client other than submitting, polling and downloading. */
  sendOtherRequests: (client: Client, headers: Record<string, string>) => Promise<void>;
  /** Path from which the client downloads a song; the song's `file` by default. */
  download?: (song: SongRecord) => string;
  /** Checks the response fields that the client reads of a finished task. */
  checkFields: (songs: readonly SongRecord[], item: TaskStatusItem) => void;
}

/**
 * Submits a task with the client's defaults or limits. It must be accepted with a warning for each adjusted value. The
 * task is cancelled, since the song would take long.
 */
async function expectAdjusted(
  client: Client,
  { body, isForm = false }: { body: Record<string, string | number | boolean>; isForm?: boolean },
  headers: Record<string, string>,
  mentions: readonly string[],
): Promise<void> {
  const answer = isForm
    ? await client.postForm("/release_task", body, headers)
    : await client.post("/release_task", body, headers);
  expect(answer.status, JSON.stringify(answer.body)).to.equal(200);
  expect(answer.body).to.include({ code: 200, error: null });
  for (const word of mentions) expect(answer.body.data.warnings.join("\n")).to.include(word);
  await client.post("/cancel_task", { task_id: answer.body.data.task_id }, headers);
}

/** Absolute file path in the URL of a song. */
function pathOf({ file }: SongRecord): string {
  return decodeURIComponent(file.slice("/v1/audio?path=".length));
}

/** A tenth of a second of silence: 16-bit stereo at 48 kHz. */
function silentWav(): Blob {
  const dataBytes = 4800 * 4;
  const wav = Buffer.alloc(44 + dataBytes);
  wav.write("RIFF", 0);
  wav.writeUInt32LE(36 + dataBytes, 4);
  wav.write("WAVEfmt ", 8);
  wav.writeUInt32LE(16, 16);
  wav.writeUInt16LE(1, 20);
  wav.writeUInt16LE(2, 22);
  wav.writeUInt32LE(48_000, 24);
  wav.writeUInt32LE(192_000, 28);
  wav.writeUInt16LE(4, 32);
  wav.writeUInt16LE(16, 34);
  wav.write("data", 36);
  wav.writeUInt32LE(dataBytes, 40);
  return new Blob([new Uint8Array(wav)], { type: "audio/wav" });
}

const acestepShell: PublicClient = {
  name: "acestep.sh",
  headers: { Authorization: "Bearer k1" },
  encoding: "json",
  song: {
    prompt: "warm lo-fi",
    lyrics: "[Verse]\nRain again",
    sample_query: "",
    thinking: true,
    use_format: false,
    use_cot_caption: true,
    use_cot_language: true,
    vocal_language: "en",
    audio_format: "mp3",
    use_random_seed: false,
    seed: 42,
    model: "acestep-v15-turbo",
    inference_steps: 1,
    guidance_scale: 7,
    audio_duration: 10,
    bpm: 90,
    batch_size: 1,
    key_scale: "C Major",
    time_signature: "4/4",
  },
  sendOtherRequests: async (client, headers) => {
    expect((await client.get("/health")).status).to.equal(200);
    // The client's random mode. The model decides the length, so the task is cancelled.
    const random = await client.post("/release_task", { sample_mode: true, thinking: true }, headers);
    expect(random.status).to.equal(200);
    await client.post("/cancel_task", { task_id: random.body.data.task_id }, headers);
    // By default the client selects the first model of the list, or a fixed name if the list is empty.
    const list = (await client.get("/v1/models", headers)).body.data;
    expect(Array.isArray(list)).to.equal(false);
    const { status, body } = await client.post(
      "/v1/chat/completions",
      {
        model: "acemusic/acestep-v15-turbo",
        messages: [
          { role: "user", content: "<prompt>warm lo-fi</prompt><lyrics>[Verse]\nRain again</lyrics>" },
        ],
        stream: false,
        thinking: false,
        use_format: false,
        sample_mode: false,
        use_cot_caption: true,
        use_cot_language: true,
        audio_config: { format: "mp3", vocal_language: "en", duration: 10, bpm: 90, key_scale: "C Major" },
        inference_steps: 1,
      },
      headers,
    );
    expect(status, JSON.stringify(body)).to.equal(200);
    const [{ message, finish_reason }] = body.choices;
    expect(finish_reason).to.equal("stop");
    expect(message.content).to.include("Rain again");
    const [head, data] = message.audio[0].audio_url.url.split(";base64,");
    expect(head).to.equal("data:audio/mpeg");
    expect(Buffer.from(data, "base64").length).to.be.above(1000);
  },
  checkFields: ([song]) => {
    expect(song?.file).to.match(/^\/v1\/audio\?path=.+\.mp3$/);
    expect(song?.metas).to.include({ bpm: 90, keyscale: "C Major", timesignature: "4", duration: 10 });
    expect(song?.seed_value).to.equal("42");
    expect(song?.lm_model).to.equal("carillon-nano/lm");
  },
};

const studioPage: PublicClient = {
  name: "studio.html",
  headers: { Origin: "null" },
  encoding: "multipart",
  song: {
    task_type: "text2music",
    prompt: "piano",
    lyrics: "",
    vocal_language: "unknown",
    thinking: "false",
    batch_size: "2",
    inference_steps: "1",
    guidance_scale: "7.0",
    audio_duration: "10",
    audio_cover_strength: "1.0",
    track_name: "",
    repainting_start: "0",
    repainting_end: "-1",
    src_audio: new Blob([]),
  },
  sendOtherRequests: async (client, headers) => {
    const { headers: answered } = await client.get("/health", headers);
    expect(answered.get("access-control-allow-origin")).to.equal("null");
  },
  checkFields: (songs, item) => {
    expect(songs).to.have.length(2);
    expect(songs[0]).to.include({ prompt: "piano", lyrics: "[Instrumental]" });
    expect(songs[0]?.metas).to.include.keys("bpm", "keyscale", "duration");
    expect(item.progress_text).to.be.a("string");
  },
};

const daw: PublicClient = {
  name: "ACE-Step-DAW",
  headers: { Origin: "http://localhost:5173" },
  encoding: "multipart",
  song: {
    src_audio: silentWav(),
    task_type: "text2music",
    prompt: "drums",
    global_caption: "",
    lyrics: "",
    instruction: "Fill the audio semantic mask based on the given conditions:",
    audio_duration: "10",
    bpm: "120",
    key_scale: "",
    time_signature: "",
    inference_steps: "1",
    guidance_scale: "7",
    shift: "3",
    batch_size: "1",
    audio_format: "wav",
    thinking: "false",
    model: "",
    chunk_mask_mode: "auto",
    repaint_mode: "balanced",
    repaint_strength: "0.5",
  },
  sendOtherRequests: async (client, headers) => {
    const inventory = await client.get("/v1/model_inventory", headers);
    expect(inventory.body.data.models).to.satisfy((models: { is_loaded: boolean }[]) =>
      models.some((model) => model.is_loaded),
    );
    const sample = await client.post("/create_random_sample", { sample_type: "custom_mode" }, headers);
    expect(sample.body.data).to.include.keys("caption", "lyrics", "keyscale", "timesignature", "language");
    const formatted = await client.post(
      "/format_input",
      { prompt: "drums", lyrics: "", param_obj: "{}" },
      headers,
    );
    expect(formatted.body.data).to.include.keys(
      ...["caption", "lyrics", "bpm", "key_scale", "time_signature", "duration", "vocal_language"],
    );
    const wish = { query: "a slow blues", vocal_language: "en", instrumental: false };
    const sheet = await client.post("/v1/create_sample", wish, headers);
    expect(sheet.status, JSON.stringify(sheet.body)).to.equal(200);
    expect(sheet.body.data).to.include.keys(
      ...["caption", "lyrics", "bpm", "keyscale", "timesignature", "duration", "vocal_language"],
    );
    expect(sheet.body.data.caption).to.not.equal("");
    // The client's values for a new project with a short, slow clip.
    const fresh = { task_type: "text2music", prompt: "drums", thinking: "true", shift: "3", batch_size: "1" };
    await expectAdjusted(
      client,
      {
        body: { ...fresh, inference_steps: "50", audio_duration: "6", bpm: "20", negative_prompt: "noise" },
        isForm: true,
      },
      headers,
      ["inference_steps must be from 1 to 20", "audio_duration must be", "bpm must be", "negative_prompt"],
    );
    const stems = await client.post("/release_task", { task_type: "stem_separation" }, headers);
    expect(stems.status).to.equal(400);
  },
  checkFields: ([song], item) => {
    expect(item.progress_text).to.be.a("string");
    expect(song).to.include({ stage: "succeeded", progress: 1, dit_model: "carillon-nano", prompt: "drums" });
    expect(song?.metas).to.include({ bpm: 120, duration: 10 });
    expect(song?.seed_value).to.match(/^\d+$/);
    expect(song?.file).to.match(/\.wav$/);
  },
};

const plugin: PublicClient = {
  name: "acestep.vst3",
  headers: {},
  encoding: "json",
  song: {
    prompt: "synth bass",
    lyrics: "",
    task_type: "text2music",
    audio_duration: 10,
    batch_size: 1,
    audio_format: "wav",
    thinking: false,
    use_random_seed: false,
    seed: 7,
    inference_steps: 6,
    guidance_scale: 7,
    model: "acestep-v15-turbo",
    reference_audio_path: "",
    src_audio_path: "",
    audio_cover_strength: 1,
    audio_code_string: "",
  },
  sendOtherRequests: async (client) => {
    expect((await client.get("/health")).body.data.status).to.equal("ok");
    // The client shows `error`, or only the status if there is none.
    const refused = await client.post("/release_task", { task_type: "cover", prompt: "strings" });
    expect(refused.status).to.equal(400);
    expect(refused.body.error).to.be.a("string").that.includes("src_audio_path");
  },
  checkFields: ([song]) => {
    expect(song?.file).to.match(/\.wav$/);
    expect(song?.dit_model).to.equal("carillon-nano");
    expect(song?.warnings?.join()).to.include("acestep-v15-turbo");
  },
};

const wrangler: PublicClient = {
  name: "Ace-Step-Wrangler",
  headers: {},
  // The client appends its port setting to the address, so the setting may also contain a path.
  base: "/openrouter",
  encoding: "json",
  song: {
    sample_query: "a quiet waltz. English vocals.",
    prompt: "",
    lyrics: "",
    audio_duration: 10,
    inference_steps: 1,
    batch_size: 1,
    shift: 3,
    seed: -1,
    use_random_seed: true,
    guidance_scale: 7,
    audio_guidance_scale: 7,
    lm_model_path: "acestep-5Hz-lm-1.7B",
    thinking: false,
    audio_code_string: "<|audio_code_1|><|audio_code_2|>",
    repaint_mode: "balanced",
    repaint_strength: 0.5,
    cover_noise_strength: 0,
    full_analysis_only: false,
    audio_format: "mp3",
  },
  sendOtherRequests: async (client) => {
    const { data } = (await client.get("/v1/models")).body;
    expect(data.map(({ id }: { id: string }) => id.split("/").at(-1))).to.deep.equal(["carillon-nano"]);
    const formatted = await client.post("/format_input", { lyrics: "la la la" });
    expect(formatted.status).to.equal(200);
  },
  checkFields: ([song]) => {
    expect(existsSync(pathOf(song as SongRecord))).to.equal(true);
    expect(song?.prompt).to.be.a("string").and.not.equal("");
    expect(song?.metas).to.include({ duration: 10 });
    expect(song?.warnings?.join()).to.include("acestep-5Hz-lm-1.7B").and.include("audio_code_string");
  },
};

/** ace-step-ui in the version that used this API. */
const stepUi: PublicClient = {
  name: "ace-step-ui",
  headers: {},
  encoding: "json",
  song: {
    prompt: "city pop",
    lyrics: "",
    batch_size: 1,
    inference_steps: 1,
    guidance_scale: 9,
    audio_format: "mp3",
    vocal_language: "en",
    use_random_seed: true,
    shift: 3,
    thinking: false,
    use_cot_caption: false,
    use_cot_language: false,
    use_cot_metas: false,
    lm_backend: "pt",
    lm_model_path: "acestep-5Hz-lm-0.6B",
    audio_duration: 10,
    instruction: "Fill the audio semantic mask based on the given conditions:",
  },
  sendOtherRequests: async (client, headers) => {
    expect((await client.get("/health")).body.data.status).to.equal("ok");
    // The limits of the client's sliders.
    await expectAdjusted(
      client,
      { body: { prompt: "city pop", batch_size: 16, inference_steps: 60, audio_duration: 5 } },
      headers,
      ["batch_size must be from 1 to 8", "inference_steps must be from 1 to 20", "audio_duration must be"],
    );
    // The client shows the error text unchanged.
    const refused = await client.post("/release_task", { prompt: "city pop", task_type: "audio2audio" });
    expect(refused.status).to.equal(400);
    expect(refused.body.detail).to.include("audio2audio");
  },
  checkFields: ([song], item) => {
    expect(item.task_id).to.be.a("string");
    expect(song?.file).to.match(/^\/v1\/audio\?path=.+\.mp3$/);
    expect(song?.metas).to.include({ duration: 10 });
  },
};

/** A client that sends the values of all its controls. Most of these fields exist only in the client's own server. */
const hotStep: PublicClient = {
  name: "HOT-Step",
  headers: { "x-api-key": "k1" },
  encoding: "json",
  song: {
    ...{
      prompt: "metal",
      lyrics: "[Instrumental]",
      instrumental: true,
      title: "",
      style: "metal",
      artist: "",
    },
    ...{ task_type: "text2music", duration: 10, inference_steps: 1, guidance_scale: 9, batch_size: 1 },
    ...{ use_random_seed: false, seed: -1, audio_format: "flac", dit_model: "acestep-v15-merge", shift: 3 },
    ...{ thinking: false, enhance: false, infer_method: "heun", scheduler: "linear", sampler_mode: "euler" },
    ...{ key_scale: "", time_signature: "", vocal_language: "unknown", negative_prompt: "", timesteps: "" },
    ...{ lm_backend: "custom-vllm", lm_model_path: "", lm_temperature: 0.85, lm_cfg_scale: 2.5, lm_top_k: 0 },
    ...{
      lm_top_p: 0.9,
      lm_repetition_penalty: 1,
      lm_negative_prompt: "NO USER INPUT",
      lm_batch_chunk_size: 8,
    },
    ...{ use_cot_metas: true, use_cot_caption: false, use_cot_language: false, use_cot_lyrics: false },
    ...{
      constrained_decoding: true,
      constrained_decoding_debug: false,
      allow_lm_batch: true,
      is_format_caption: false,
    },
    ...{ use_adg: false, cfg_interval_start: 0, cfg_interval_end: 1, guidance_variant: "apg_classic" },
    ...{
      guidance_params: { eta: 0, momentum: -0.75, norm: 2.5 },
      guidance_interval_decay: 0,
      min_guidance: 3,
    },
    ...{ velocity_norm_threshold: 0, velocity_ema_factor: 0, latent_shift: 0, latent_rescale: 1, eta: 0 },
    ...{ momentum: -0.75, pag_start: 0.3, pag_end: 0.8, pag_scale: 0, use_pag: false, anti_autotune: 0 },
    ...{ steering_enabled: false, steering_loaded: [], steering_alphas: {}, lora_path: null, lora_scale: 1 },
    ...{ lora_loaded: false, adapters: [], adapter_group_scales: { self_attn: 1, cross_attn: 1, mlp: 1 } },
    ...{ reference_audio_path: null, source_audio_path: null, src_audio_path: null, audio_codes: null },
    ...{ repainting_start: 0, repainting_end: -1, audio_cover_strength: 1, cover_noise_strength: 0 },
    ...{ tempo_scale: 1, pitch_shift: 0, extract_codes_only: false, track_name: null, track_classes: [] },
    ...{
      auto_master: false,
      mastering_params: { mode: "builtin" },
      normalization_db: -1,
      enable_normalization: true,
    },
    ...{ fade_in: 0, fade_out: 0, chunk_mask_mode: "auto", repaint_mode: "balanced", repaint_strength: 0.5 },
    ...{ get_lrc: false, get_scores: false, score_scale: 0.5, use_tiled_decode: true, disable_tqdm: false },
  },
  sendOtherRequests: async (client, headers) => {
    expect((await client.get("/v1/stats", { "x-api-key": "" })).status).to.equal(401);
    const id = await client.submit({ prompt: "never made", audio_duration: 600, ai_token: "k1" });
    const cancelled = await client.post("/cancel_task", { job_id: id }, headers);
    expect(cancelled.body.data).to.deep.equal({ job_id: id, status: "cancelled" });
  },
  checkFields: ([song]) => {
    expect(song?.file).to.match(/\.flac$/);
    expect(song?.seed_value).to.match(/^\d+$/);
    expect(song?.generation_info).to.match(/Steps:\s*1\b/);
    expect(song?.warnings?.join()).to.include("acestep-v15-merge");
  },
};

/**
 * An MCP server. Like several other clients, it downloads a song with the whole `file` of the result as `path`.
 * While a task waits, the response has one record without a file. Another MCP server takes such a record for a
 * failure, but clients that show waiting tasks need it.
 */
const mcpServer: PublicClient = {
  name: "an MCP server",
  headers: {},
  encoding: "json",
  song: {
    prompt: "cinematic strings",
    lyrics: "",
    audio_duration: 10,
    thinking: false,
    inference_steps: 1,
    batch_size: 1,
    audio_format: "mp3",
  },
  sendOtherRequests: async (client) => {
    const busy = await client.submit({ prompt: "blocks the queue", audio_duration: 60, batch_size: 1 });
    const id = await client.submit(shortSong);
    const { item, records } = await client.query(id);
    expect(item.status).to.equal(0);
    expect(records).to.have.length(1);
    expect(records[0]).to.include({ status: 0, stage: "queued", file: "", error: null });
    for (const task_id of [busy, id]) await client.post("/cancel_task", { task_id });
  },
  checkFields: () => {},
  download: ({ file }) => `/v1/audio?path=${encodeURIComponent(file)}`,
};

export const OPEN_SERVER_CLIENTS = [studioPage, daw, stepUi, plugin, wrangler, mcpServer];
/** Clients that can send a key, here `k1`. */
export const KEYED_SERVER_CLIENTS = [acestepShell, hotStep];
