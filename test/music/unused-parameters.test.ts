import { createHash } from "node:crypto";
import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { analyze, createEngine, loadConfig, type MusicEngine, makeSongs } from "../../src/index.js";
import { encodeAudio } from "../../src/music/audio/encode.js";
import { writeLatents } from "../../src/music/audio/latents-file.js";
import { NO_UPLOADS } from "../../src/music/audio/uploads.js";
import { selectSlot } from "../../src/music/models/models.js";
import { parseGenerationRequest } from "../../src/music/request/parse.js";
import { generationSchema } from "../../src/music/request/schema.js";
import { type Fields, namesOf } from "../../src/parameters.js";
import { LYRIC_MODEL, lyricModel } from "./lyric-model.js";
import { SAMPLES } from "./request/samples.js";
import { temporaryDirectory } from "./tasks.js";

const NANO = fileURLToPath(new URL("../../models/carillon-nano", import.meta.url));
const BASE_MODEL = "nano-base";
/** Length of the songs: below the minimum for clients, to save time. */
const SECONDS = 1;
const LATENT_CHANNELS = 100;

/** Values of parameters that change a song of one second and four diffusion steps. */
const VALUES: Fields = {
  audio_format: "flac",
  audio_duration: 11,
  guidance_variant: "adg_w_norm",
  cfg_interval_start: 0.8,
  cfg_interval_end: 0.6,
  audio_cover_strength: 0,
  repainting_start: 0.3,
  repainting_end: 0.8,
  lm_temperature: 2,
  lm_top_k: 1,
  lm_min_p: 1,
  lm_top_p: 0.01,
  lm_repetition_penalty: 1.8,
  seed: 9,
};

/** Parameters whose effect this test cannot see: they write logs or files, call a URL, or name the default model. */
const UNSEEN = new Set([
  ...["constrained_decoding_debug", "model", "loras", "lm_model_path", "callback_url", "temporary"],
  "return_latents",
]);

/** Parameters whose value is the path of a latents file. */
const LATENTS = new Set(["src_latents_path", "ref_latents_path"]);

/** Parameters whose value is a path. Warnings show the name of the form field instead. */
const SHOWN_NAMES: Readonly<Record<string, string>> = {
  src_audio_path: "src_audio",
  reference_audio_path: "reference_audio",
  src_latents_path: "src_latents",
  ref_latents_path: "ref_latents",
};

/** Kinds of songs. `common`: fields of all requests. `about`: pattern of the parameters to test; default: all. */
const KINDS: Record<string, { common: Fields; about?: RegExp }> = {
  "an instrumental of a turbo model without a language model": { common: {} },
  "a base model": {
    common: { model: BASE_MODEL },
    about:
      /^(inference_steps|shift|timesteps|infer_method|velocity|guidance_|use_adg|eta|momentum|norm_threshold|cfg_|global_caption)/,
  },
  "a base model without guidance": {
    common: { model: BASE_MODEL, guidance_scale: 1 },
    about: /^(use_adg|guidance_variant|eta|momentum|norm_threshold|cfg_)/,
  },
  "a base model with plain guidance": {
    common: { model: BASE_MODEL, guidance_variant: "cfg" },
    about: /^(use_adg|eta|momentum|norm_threshold)$/,
  },
  "a song of one step": { common: { inference_steps: 1 }, about: /^velocity/ },
  "a corrected song": { common: { dcw_enabled: true }, about: /^dcw_/ },
  "a song corrected in its high band": { common: { dcw_enabled: true, dcw_mode: "high" }, about: /^dcw_/ },
  "given timesteps": { common: { timesteps: "0.9,0.4,0" }, about: /^(inference_steps|shift)$/ },
  "a language model that writes no text": {
    common: { thinking: true, audio_duration: 10 },
    about: /^(lm_|use_cot_|constrained|allow_|use_format|sample_|prompt|audio_cover|get_)/,
  },
  "a language model with temperature 0": {
    common: { thinking: true, audio_duration: 10, lm_temperature: 0 },
    about: /^lm_(seed|top_|min_)/,
  },
  "a model that times lyrics": {
    common: { model: LYRIC_MODEL, lyrics: "[Verse]\nla la la\nle le le" },
    about: /^(get_lrc|vocal_language|lyrics)$/,
  },
  "a model that does not time lyrics": {
    common: { lyrics: "[Verse]\nla la la\nle le le" },
    about: /^(get_lrc|vocal_language)$/,
  },
  "audio codes": {
    common: { audio_code_string: "1,2,3,4,5", use_audio_codes: true },
    about: /^(audio_|thinking|use_audio|src_audio|lm_)/,
  },
  "a cover": {
    common: { task_type: "cover" },
    about: /^(audio_|cover_|src_|repaint|thinking|sample_|use_|lm_|constrained|allow_|track_)/,
  },
  "a repaint": {
    common: { task_type: "repaint", repainting_start: 0.2, repainting_end: 0.6 },
    about: /^(repaint|chunk_|track_|thinking|use_audio|audio_)/,
  },
  "a repaint of all of its source": { common: { task_type: "repaint" }, about: /^(repaint|chunk_)/ },
  "an aggressive repaint": {
    common: { task_type: "repaint", repainting_start: 0.2, repaint_mode: "aggressive" },
    about: /^repaint_strength$/,
  },
  "an extraction": { common: { task_type: "extract" }, about: /^(track_|repaint|chunk_|instruction)/ },
  "a completion with a custom instruction": {
    common: { task_type: "complete", instruction: "Complete it:" },
    about: /^track_/,
  },
};

describe("every parameter of POST /release_task has an effect or is named in warnings", function () {
  this.timeout(120_000);
  const directory = temporaryDirectory();
  const checkpoints = join(directory, "checkpoints");
  const source = join(directory, "source.wav");
  const latents = join(directory, "source.safetensors");
  let engine: MusicEngine;

  before(async () => {
    const settings = lyricModel(checkpoints);
    cpSync(NANO, join(checkpoints, BASE_MODEL), { recursive: true });
    const path = join(checkpoints, BASE_MODEL, "config.json");
    const config = { ...JSON.parse(readFileSync(path, "utf8")), is_turbo: false, model_version: "base" };
    writeFileSync(path, JSON.stringify(config));
    engine = createEngine(loadConfig({ ...settings, SVC_DEVICE: "cpu", SVC_CONFIG_PATH3: BASE_MODEL }));
    for (const { slot } of engine.catalog.slots()) await engine.loader.loadSlot(slot, null);
    const audio = Float32Array.from({ length: 2 * SECONDS * 48_000 }, (_, i) => Math.sin(i * i * 1e-5) / 3);
    const form = { samplesPerChannel: SECONDS * 48_000, sampleRate: 48_000, format: "wav" } as const;
    await encodeAudio({ audio, ...form, path: source, signal: new AbortController().signal });
    const values = Float32Array.from({ length: 25 * LATENT_CHANNELS }, (_, i) => Math.sin(i * i));
    await writeLatents(latents, {
      values,
      frames: 25,
      samples: SECONDS * 48_000,
      silentFrame: null,
      gain: null,
    });
  });

  after(() => engine.close());

  /** Makes a song. Returns a hash of its files and descriptions, and its warnings. */
  async function make(fields: Fields): Promise<{ digest: string; warnings: readonly string[] }> {
    const request = parseGenerationRequest(
      { audio_format: "wav", inference_steps: 4, batch_size: 1, ...fields },
      {
        rangePolicy: "refuse",
        slotOf: (model) => selectSlot(engine.catalog.slots(), model),
        uploads: NO_UPLOADS,
        drawSeed: () => 77,
      },
    );
    const destination = (index: number) => ({ name: `${index}`, path: join(directory, `song-${index}`) });
    const run = request.analysis === null ? makeSongs : analyze;
    const result = await run(
      engine,
      { ...request, facts: { ...request.facts, durationSeconds: request.facts.durationSeconds ?? SECONDS } },
      { destination, maxSourceSeconds: 60, signal: new AbortController().signal, onProgress: () => {} },
    );
    const hash = createHash("sha256");
    for (const { name, description } of result.audioFiles) {
      hash.update(readFileSync(join(directory, `song-${name}`)));
      hash.update(
        JSON.stringify({ ...description, generationInfo: "", metas: { ...description?.metas, prompt: "" } }),
      );
    }
    hash.update(JSON.stringify(result.analysis));
    return { digest: hash.digest("hex"), warnings: result.warnings };
  }

  const parameters = Object.values(generationSchema.shape).map((type) => namesOf(type)[0]);

  for (const [kind, { common, about = /./ }] of Object.entries(KINDS)) {
    const names = parameters.filter((name) => about.test(name) && !(name in common) && name !== "task_type");

    it(`every parameter changes the song or causes a warning: ${kind}, ${names.length} parameters @slow`, async () => {
      const base = { ...("task_type" in common && { src_audio_path: source }), ...common };
      const { digest: plain } = await make(base);
      const wrong: string[] = [];
      for (const name of names) {
        const value =
          VALUES[name] ?? (LATENTS.has(name) ? latents : /_path$/.test(name) ? source : SAMPLES[name]?.value);
        if (
          name in base ||
          (/analysis|extract_codes|(en|de)code_only/.test(name) && !("task_type" in common))
        )
          continue;
        const { digest, warnings } = await make({ ...base, [name]: value });
        // A warning that begins with the parameter's name says that its language model step had no effect.
        if (warnings.some((line) => line.startsWith(`${name}: `))) continue;
        const hasEffect = digest !== plain;
        const lines = warnings.filter((line) => namesIgnored(line).includes(SHOWN_NAMES[name] ?? name));
        if (hasEffect === lines.length > 0 && !(UNSEEN.has(name) && lines.length === 0)) {
          wrong.push(`${name} ${hasEffect ? "acts" : "does nothing"}: ${JSON.stringify(warnings)}`);
        }
      }
      expect(wrong).to.deep.equal([]);
    });
  }

  it("lists parameters that are ignored for the same reason in one line", async () => {
    const { warnings } = await make({ use_adg: true, guidance_scale: 9, shift: 2, get_lrc: true });
    expect(warnings).to.deep.equal([
      "get_lrc was ignored: the song has no lyrics",
      "shift, guidance_scale, use_adg were ignored: carillon-nano is a turbo model",
    ]);
  });

  it("default values cause no warnings", async () => {
    const defaults = Object.fromEntries(
      Object.values(generationSchema.shape).map((type) => [namesOf(type)[0], type.parse(undefined)]),
    );
    const { warnings } = await make({ ...defaults, audio_duration: 10 });
    expect(warnings).to.deep.equal([]);
  });

  it("the published default of use_cot_caption causes no warning", async () => {
    const cover = { task_type: "cover", src_audio_path: source };
    for (const common of [{ audio_duration: 10 }, cover]) {
      const { warnings } = await make({ ...common, use_cot_caption: true });
      expect(warnings).to.deep.equal([]);
    }
  });
});

/** Names of the parameters that a warning lists as ignored. */
function namesIgnored(line: string): string[] {
  const [, names = ""] = /^(.*?) (?:was|were) ignored: /.exec(line) ?? [];
  return names.split(", ");
}
