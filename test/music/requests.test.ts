import { createHash } from "node:crypto";
import { join } from "node:path";
import { expect } from "chai";
import { encodeAudio } from "../../src/music/audio/encode.js";
import { samplesOf } from "./audio/recordings.js";
import { oneSecondSong, type SongRecord, serverForAll } from "./live-server.js";
import { temporaryDirectory } from "./tasks.js";

const SAMPLE_RATE = 48_000;
const quick = {
  prompt: "a song",
  inference_steps: 1,
  audio_duration: 10,
  audio_format: "wav32",
  use_random_seed: false,
  seed: 7,
};

const quickest = { ...oneSecondSong, audio_format: "wav32", use_random_seed: false, seed: 7 };

describe("generation requests with exact values", () => {
  const directory = temporaryDirectory();
  const server = serverForAll({}, join(directory, "server"));
  const { client } = server;

  before(async () => {
    await client.makeOne(quickest); // the model is loaded, so that submission knows its codebook
  });

  const make = (parameters: object) => client.makeOne({ ...quick, ...parameters });
  const digestOf = async (song: SongRecord) =>
    createHash("sha256")
      .update(await client.download(song))
      .digest("hex");

  const listen = async (song: SongRecord) => samplesOf(await client.download(song));

  it("an edit that keeps most of a song keeps its tempo, key and metre; the client's values win", async () => {
    const facts = { bpm: 96, key_scale: "D minor", time_signature: "3" };
    const song = await client.makeOne({ ...quickest, ...facts, return_latents: true });
    const repaint = {
      ...{ audio_duration: null, task_type: "repaint" },
      ...{ repainting_start: 0.4, repainting_end: 0.42 },
    };
    const source = { src_audio_path: song.file };
    const kept = { bpm: 96, keyscale: "D minor", timesignature: "3" };
    expect((await make({ ...repaint, ...source })).metas).to.include(kept);
    expect((await make({ ...repaint, src_latents_path: song.latents })).metas).to.include(kept);
    const again = await make({ ...repaint, ...source, bpm: 120 });
    expect(again.metas).to.include({ ...kept, bpm: 120 });
    expect(again.generation_info).to.not.include("(measured)");
    const most = { ...repaint, ...source, repainting_start: 0.1, repainting_end: 0.9 };
    expect((await make(most)).metas).to.include({ keyscale: "", timesignature: "" });
  });

  it("refuses audio codes outside the model's codebook and names the range", async () => {
    const codes = (audio_code_string: unknown) => ({ ...quick, use_audio_codes: true, audio_code_string });
    for (const stray of [4096, 999_999_999, -1]) {
      const { status, body } = await client.post("/release_task", codes([1, stray]));
      expect([status, body.detail]).to.deep.equal([
        400,
        `audio_code_string must hold codes of the model, from 0 to 4095, got ${stray}`,
      ]);
    }
    expect((await make(codes(Array(50).fill(4095)))).metas.duration).to.equal(10);
  });

  it("makes a different song from every 64-bit seed and returns the seed", async () => {
    const digests = [await digestOf(await client.makeOne({ ...quickest, seed: 5 }))];
    const seeds = ["4294967301", "18446744073709551615", "9007199254740992", "9007199254740993"];
    for (const seed of seeds) {
      // Sends the seed as a JSON number without loss of digits, as Python clients do.
      const body = JSON.stringify({ ...quickest, seed: 0 }).replace('"seed":0', `"seed":${seed}`);
      const answer = await fetch(`${client.url}/release_task`, {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body,
      });
      const { data } = (await answer.json()) as { data: { task_id: string } };
      const { records } = await client.finished(data.task_id);
      const song = records[0] as SongRecord;
      expect(song.seed_value).to.equal(seed);
      digests.push(await digestOf(song));
    }
    expect(await digestOf(await client.makeOne({ ...quickest, seed: seeds.at(-1) }))).to.equal(
      digests.at(-1),
    );
    expect(new Set(digests)).to.have.property("size", 5);
  });

  it("audio codes of a song with thinking make the same song again", async () => {
    const song = await make({ thinking: true });
    expect(song.audio_codes).to.match(/^(<\|audio_code_\d+\|>){50}$/);
    const { key_scale, time_signature, bpm } = {
      key_scale: song.metas.keyscale,
      time_signature: song.metas.timesignature,
      bpm: song.metas.bpm,
    };
    const facts = { key_scale, time_signature, bpm };
    const again = await make({ ...facts, audio_code_string: song.audio_codes, use_audio_codes: true });
    expect(await digestOf(again)).to.equal(await digestOf(song));
    expect((await make({})).audio_codes).to.equal(undefined);
  });

  it("renders exactly the requested number of samples, with and without audio codes", async () => {
    for (const thinking of [false, true]) {
      const song = await make({ audio_duration: 11.5, thinking });
      expect((await listen(song)).length / 2).to.equal(11.5 * SAMPLE_RATE);
      expect(song.metas.duration).to.equal(11.5);
    }
    const odd = await make({ audio_duration: 10.0123 });
    expect((await listen(odd)).length / 2).to.equal(Math.round(10.0123 * SAMPLE_RATE));
  });

  it("a cover keeps the length of the source, and a repaint keeps all samples outside the window", async () => {
    const samples = 97_872;
    const audio = Float32Array.from({ length: 2 * samples }, (_, i) => Math.sin((i % samples) * 0.03) / 3);
    const path = join(directory, "source.wav");
    const signal = new AbortController().signal;
    await encodeAudio({
      audio,
      samplesPerChannel: samples,
      sampleRate: SAMPLE_RATE,
      format: "wav32",
      path,
      signal,
    });
    for (const task_type of ["cover", "repaint"]) {
      const window = task_type === "repaint" ? { repainting_start: 0.5, repainting_end: 1 } : {};
      const song = await make({ task_type, src_audio_path: path, audio_duration: undefined, ...window });
      const heard = await listen(song);
      expect(heard.length / 2, task_type).to.equal(samples);
      if (task_type === "cover") continue;
      const fade = 0.05 * SAMPLE_RATE;
      const part = (song: Float32Array, from: number, to: number) => Buffer.from(song.slice(from, to).buffer);
      for (const left of [0, samples]) {
        for (const [from, to] of [
          [left, left + 0.5 * SAMPLE_RATE - fade],
          [left + SAMPLE_RATE + fade, left + samples],
        ] as const)
          expect(part(heard, from, to).equals(part(audio, from, to))).to.equal(true);
      }
    }
  });

  it("estimates the length of a song from its lyrics if none is set, with a warning", async () => {
    const lyrics = "[Verse]\nla la la la\nle le le le";
    const song = await make({ audio_duration: undefined, lyrics, bpm: 240 });
    // 12 bars of a second: two bars for each of the two lines, and eight bars for intro and outro.
    expect(song.metas.duration).to.equal(12);
    expect(song.warnings).to.include(
      "audio_duration was not set: using 12 s, estimated from 2 lines of lyrics at 240 bpm",
    );
    const silent = await make({ audio_duration: -1 });
    expect(silent.metas.duration).to.equal(30);
    expect(silent.warnings).to.include("audio_duration was not set: using 30 s, the default without lyrics");
  });

  it("warns about invalid metadata, timesteps and scales, and says what is ignored or used instead", async () => {
    const cases: [fields: object, warning: string][] = [
      [{ metas: "zzz" }, 'metas was ignored: it must be an object or JSON text of one, got "zzz"'],
      [{ metas: [1] }, "metas was ignored: it must be an object or JSON text of one, got [1]"],
      [{ param_obj: "[1]" }, 'param_obj was ignored: it must be an object or JSON text of one, got "[1]"'],
      [{ timesteps: "0.9,0.5" }, 'timesteps must end at 0, got "0.9,0.5"; [0.9, 0.5, 0] was used'],
      [{ guidance_scale: -1 }, "guidance_scale must be at least 0, got -1; 0 was used"],
      [{ lm_cfg_scale: -1 }, "lm_cfg_scale must be at least 0, got -1; 0 was used"],
      [{ lm_repetition_penalty: 0 }, "lm_repetition_penalty must be from 0.01 to 100, got 0; 1 was used"],
    ];
    for (const [fields, warning] of cases) {
      const { body } = await client.post("/release_task", { ...quickest, ...fields });
      expect(body.data.warnings, JSON.stringify(fields)).to.include(warning);
    }
  });

  it("makes all songs of a batch from the same audio codes if there is a single lm_seed", async () => {
    const plan = { thinking: true, batch_size: 2, seed: "7,8" };
    const codesOf = async (parameters: object) =>
      (await client.make({ ...quick, ...plan, ...parameters })).map((song) => song.audio_codes);
    const [first, second] = await codesOf({});
    expect(first).to.not.equal(second);
    expect(await codesOf({ lm_seed: 7 })).to.deep.equal([first, first]);
    expect(await codesOf({ lm_seed: "-1,7" })).to.deep.equal([first, first]);
    expect(await codesOf({ lm_seed: "18446744073709551615" })).to.not.deep.equal([first, first]);
  });

  it("samples only the most likely tokens with min_p 1", async () => {
    const plan = { thinking: true, bpm: 90, key_scale: "C major", time_signature: "4" };
    // Compares only the first codes. Later, two tokens can be equally likely, and sampling may pick either one.
    const codesOf = async (parameters: object) =>
      String((await make({ ...plan, ...parameters })).audio_codes)
        .split(">")
        .slice(0, 5);
    const likeliest = await codesOf({ lm_temperature: 0 });
    expect(await codesOf({ min_p: 1 })).to.deep.equal(likeliest);
    expect(await codesOf({})).to.not.deep.equal(likeliest);
  });

  it("get_scores adds scores to a song and changes nothing else", async () => {
    const facts = { bpm: 120, key_scale: "C major", time_signature: "4" };
    const plain = await make(facts);
    expect(plain.scores).to.equal(undefined);
    for (const thinking of [false, true]) {
      const song = await make({ ...facts, thinking, get_scores: true });
      // The built-in model does not score words.
      expect(song.scores).to.include({ caption: null, lyrics: null });
      expect(song.scores?.metadata).to.be.within(0.01, 1);
      expect(song.scores?.total).to.be.closeTo(song.scores?.metadata as number, 1e-9);
      expect(song.warnings.join()).to.not.include("get_scores");
      if (!thinking) expect(await digestOf(song)).to.equal(await digestOf(plain));
    }
    const missing = await make({ get_scores: true, lm_model_path: "none-of-mine" });
    expect(missing.warnings.join()).to.include('lm_model_path "none-of-mine" is not installed');
  });
});
