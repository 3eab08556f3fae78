import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { Checkpoints } from "../../src/engine/checkpoints.js";
import { decodeAudio } from "../../src/music/audio/decode.js";
import { RECORDING_FORMATS, samplesOf, uploadOf, writeRecording } from "../music/audio/recordings.js";
import { type Client, type LiveServer, type SongRecord, startLiveServer } from "../music/live-server.js";
import { temporaryDirectory } from "../music/tasks.js";

const SAMPLE_RATE = 48_000;
const SOURCE_SECONDS = 2;
/** Maximum length of a fade beyond a repaint window. */
const FADE_SECONDS = 0.05;

/** Half the receptive field of a VAE decoder. Its convolutions have width 7 and dilations 1, 3 and 9. */
function decoderReachSeconds(vaeDirectory: string): number {
  const { downsampling_ratios } = JSON.parse(readFileSync(join(vaeDirectory, "config.json"), "utf8"));
  let rate = SAMPLE_RATE / downsampling_ratios.reduce((product: number, ratio: number) => product * ratio, 1);
  let reach = 3 / rate;
  for (const ratio of downsampling_ratios.toReversed()) {
    reach += 1 / rate; // Reach of the transposed convolution in seconds.
    rate *= ratio;
    reach += (3 * (1 + 3 + 9)) / rate;
  }
  return reach + 3 / rate;
}

const quick = {
  prompt: "a song",
  inference_steps: 2,
  use_random_seed: false,
  seed: 7,
  audio_format: "wav32",
};
/** A turbo model whose name differs from the built-in model's. */
const TURBO_MODEL = "acestep-v15-turbo-copy";
/** A song from text and codes may be shorter than the minimum of audio_duration. */
const CODES = Array.from({ length: 5 * SOURCE_SECONDS }, (_, i) => `<|audio_code_${i}|>`).join("");
const SOURCE_TASKS = ["cover", "repaint", "lego", "extract", "complete"];

describe("the six task types over HTTP", () => {
  const directory = temporaryDirectory();
  let server: LiveServer;
  let client: Client;
  let source: string;
  let other: string;
  let decoderReach: number;

  before(async () => {
    source = writeRecording(join(directory, "source.wav"), { seconds: SOURCE_SECONDS });
    other = writeRecording(join(directory, "other.wav"), { seconds: SOURCE_SECONDS, pitch: 500 });
    const checkpoints = join(directory, "checkpoints");
    const nano = new Checkpoints(checkpoints).renderer("carillon-nano");
    decoderReach = decoderReachSeconds(nano.vae.path);
    cpSync(nano.model.path, join(checkpoints, TURBO_MODEL), { recursive: true, dereference: true });
    const config = join(checkpoints, TURBO_MODEL, "config.json");
    const { supported_tasks: _, ...published } = JSON.parse(readFileSync(config, "utf8"));
    writeFileSync(config, JSON.stringify(published));
    const settings = { SVC_CHECKPOINTS: checkpoints, SVC_CONFIG_PATH2: TURBO_MODEL };
    server = await startLiveServer(join(directory, "server"), settings);
    client = server.client;
  });

  after(() => server.close());

  const listen = async (record: SongRecord) => samplesOf(await client.download(record));

  async function audioOf(parameters: object): Promise<Float32Array> {
    return listen(await client.makeOne({ ...quick, ...parameters }));
  }

  const secondsOf = (audio: Float32Array): number => audio.length / 2 / SAMPLE_RATE;

  function isSame(a: Float32Array, b: Float32Array): boolean {
    return Buffer.from(a.buffer).equals(Buffer.from(b.buffer));
  }

  it("makes a song from text only", async () => {
    const song = await client.makeOne({ ...quick, audio_duration: 10 });
    expect(song.metas.duration).to.equal(10);
    expect(song.generation_info).to.include("Task: text2music");
  });

  for (const task_type of SOURCE_TASKS) {
    it(`${task_type} uses length and content of an uploaded source`, async () => {
      const task = { task_type, track_name: "bass", track_classes: ["drums", "bass"], audio_duration: 20 };
      const window = task_type === "repaint" ? { repainting_start: 0.5, repainting_end: 1 } : {};
      const song = await client.makeOne({ ...quick, ...task, ...window, src_audio: uploadOf(source) });
      expect(song.metas.duration).to.equal(SOURCE_SECONDS);
      expect(song.warnings.join()).to.include("audio_duration was ignored");
      expect(song.generation_info).to.include(`Task: ${task_type}`);
      const audio = await listen(song);
      expect(secondsOf(audio)).to.equal(SOURCE_SECONDS);
      expect(audio.some((sample) => sample !== 0)).to.equal(true);
      const elsewhere = await audioOf({ ...task, ...window, src_audio_path: other });
      expect(isSame(audio, elsewhere), "of another source").to.equal(false);
    });
  }

  it("makes the same song from the path of a source as from its upload", async () => {
    const cover = { task_type: "cover", inference_steps: 1 };
    const uploaded = await audioOf({ ...cover, src_audio: uploadOf(source) });
    expect(isSame(uploaded, await audioOf({ ...cover, src_audio_path: source }))).to.equal(true);
  });

  for (const [index, format] of RECORDING_FORMATS.entries()) {
    const field = ["src_audio", "ctx_audio"][index % 2] as string;
    const [sampleRate, channels] = index % 2 === 0 ? ([22_050, 1] as const) : ([44_100, 2] as const);
    const tag = index < 2 ? "" : " @slow";
    it(`reads ${format} of ${channels} channels at ${sampleRate} Hz from ${field}${tag}`, async () => {
      const recording = { seconds: SOURCE_SECONDS, sampleRate, channels };
      const path = writeRecording(join(directory, `source-${channels}.${format}`), recording);
      const task = { ...quick, task_type: "cover", inference_steps: 1, [field]: uploadOf(path) };
      const song = await client.makeOne(task);
      expect(song.metas.duration).to.be.closeTo(SOURCE_SECONDS, 0.15);
    });
  }

  it("makes different songs for different stems @slow", async () => {
    for (const [task_type, ...variants] of [
      ["extract", { track_name: "bass" }, { track_name: "drums" }],
      ["lego", { track_name: "bass" }, {}],
      ["complete", { track_classes: ["drums"] }, { track_classes: ["drums", "bass"] }],
    ] as const) {
      const task = { task_type, src_audio_path: source, inference_steps: 1 };
      const [one, two] = variants.map((tracks) => audioOf({ ...task, ...tracks }));
      expect(isSame((await one) as Float32Array, (await two) as Float32Array), task_type).to.equal(false);
    }
  });

  it("extracts several stems in one task: one song per stem, the same as from separate tasks", async () => {
    const task = { ...quick, task_type: "extract", src_audio_path: source, inference_steps: 1 };
    const stems = ["drums", "backing_vocals"];
    const id = await client.submit({ ...task, track_classes: ["Drums", "backing vocals"] });
    const { item, records } = await client.finished(id);
    expect(item.status).to.equal(1);
    expect(records.map(({ track_name }) => track_name)).to.deep.equal(stems);
    expect(records.map(({ warnings }) => warnings)).to.deep.equal([[], []]);
    expect(records[0]?.seed_value).to.equal("7,7");
    const { body } = await client.get(`/v1/tasks/${id}`);
    expect(body.data.songs.map((song: { track_name: string }) => song.track_name)).to.deep.equal(stems);
    for (const [index, track_name] of stems.entries()) {
      const together = await listen(records[index] as SongRecord);
      expect(isSame(together, await audioOf({ ...task, track_name })), track_name).to.equal(true);
    }
    const again = await client.finished(
      await client.submit({ ...body.data.parameters, src_audio_path: source }),
    );
    expect(again.records.map(({ track_name }) => track_name)).to.deep.equal(stems);
  });

  it("lists the task types that a model supports, and warns about others", async () => {
    const { body } = await client.get("/v1/model_inventory");
    expect(body.data.models).to.deep.include({
      name: TURBO_MODEL,
      is_default: false,
      is_loaded: true,
      supported_task_types: ["text2music", "cover", "repaint"],
      infer_methods: ["ode", "sde", "heun", "dpm3m", "stork4"],
      sings: true,
    });
    const warningsOf = async (model: string, task_type: string) => {
      const stem = task_type === "lego" ? { track_name: "bass" } : {};
      const task = { ...quick, model, task_type, ...stem, src_audio_path: source, inference_steps: 1 };
      return (await client.makeOne(task)).warnings;
    };
    expect((await warningsOf(TURBO_MODEL, "lego")).join())
      .to.include(TURBO_MODEL)
      .and.include("lego");
    expect(await warningsOf(TURBO_MODEL, "cover")).to.deep.equal([]);
    expect(await warningsOf("carillon-nano", "lego")).to.deep.equal([]);
  });

  describe("repaint tasks", () => {
    let original: Float32Array;

    before(async () => {
      original = await decodeAudio({ path: source, name: "source", maxSeconds: 600 });
    });

    /** Largest difference between the samples of `another` in `seconds` and those of `song` `later` seconds later. */
    function difference(
      song: Float32Array,
      seconds: [from: number, to: number],
      later = 0,
      another = original,
    ): number {
      let largest = 0;
      const [from, to] = seconds.map((time) => Math.round(time * SAMPLE_RATE)) as [number, number];
      const shift = Math.round(later * SAMPLE_RATE);
      for (const channel of [0, 1]) {
        const a = song.subarray((channel * song.length) / 2);
        const b = another.subarray((channel * another.length) / 2);
        for (let i = from; i < to; i++) {
          largest = Math.max(largest, Math.abs((a[i + shift] as number) - (b[i] as number)));
        }
      }
      return largest;
    }

    for (const repaint_mode of ["conservative", "balanced"]) {
      it(`repaint_mode ${repaint_mode} keeps the source outside the window and changes it inside`, async () => {
        const window = { repainting_start: 0.5, repainting_end: 1, repaint_mode };
        const song = await audioOf({ task_type: "repaint", ...window, src_audio_path: source });
        expect(difference(song, [0, 0.5 - FADE_SECONDS])).to.equal(0);
        expect(difference(song, [1 + FADE_SECONDS, SOURCE_SECONDS])).to.equal(0);
        expect(difference(song, [0.5, 1])).to.be.greaterThan(0.01);
      });
    }

    it("repaint_mode aggressive gives the same audio outside the window for any content inside", async () => {
      const window = { repainting_start: 1.5, repainting_end: 2, repaint_mode: "aggressive" };
      const repaint = { task_type: "repaint", ...window, src_audio_path: source };
      const [one, two] = [await audioOf(repaint), await audioOf({ ...repaint, seed: 8 })];
      const outside: [number, number] = [0, 1.5 - decoderReach];
      expect(difference(one, outside, 0, two)).to.be.lessThan(1e-4);
      expect(difference(one, [1.5, 2], 0, two)).to.be.greaterThan(0.01);
    });

    it("repaints several windows in one task, and keeps the source bit-identical outside them", async () => {
      for (const task_type of ["repaint", "lego"]) {
        const stem = task_type === "lego" ? { track_name: "bass" } : {};
        const task = { ...quick, task_type, ...stem, src_audio: uploadOf(source) };
        const song = await client.makeOne({ ...task, repainting_windows: ["0.25,0.5", "1.25,1.75"] });
        expect(song.warnings).to.deep.equal([]);
        const audio = await listen(song);
        for (const [from, to] of [
          [0, 0.25],
          [0.5, 1.25],
          [1.75, SOURCE_SECONDS],
        ] as const) {
          const inner = (edge: number, fade: number) =>
            edge === 0 || edge === SOURCE_SECONDS ? edge : edge + fade;
          expect(difference(audio, [inner(from, FADE_SECONDS), inner(to, -FADE_SECONDS)])).to.equal(0);
        }
        for (const window of [
          [0.25, 0.5],
          [1.25, 1.75],
        ] as [number, number][]) {
          expect(difference(audio, window)).to.be.greaterThan(0.01);
        }
      }
    });

    it("extends the song with windows beyond both ends, and rejects a window outside the source", async () => {
      const repaint = { task_type: "repaint", src_audio_path: source };
      const ends = [
        [-0.5, 0.5],
        [SOURCE_SECONDS - 0.5, SOURCE_SECONDS + 1],
      ];
      const longer = await audioOf({ ...repaint, repainting_windows: ends });
      expect(secondsOf(longer)).to.equal(SOURCE_SECONDS + 1.5);
      const between: [number, number] = [0.5 + FADE_SECONDS, SOURCE_SECONDS - 0.5 - FADE_SECONDS];
      expect(difference(longer, between, 0.5)).to.equal(0);
      const { status, body } = await client.post("/release_task", {
        ...quick,
        ...repaint,
        repainting_windows: [
          [1, 2],
          [9, 12],
        ],
      });
      expect(status).to.equal(400);
      expect(body.detail).to.equal(
        "repainting_windows: the start of window 2 must not be after the end of the source, which lasts 2.00 seconds, got 9",
      );
    });

    it("repaints to the end of the source if no end is set, and the whole source by default", async () => {
      const repaint = { task_type: "repaint", src_audio_path: source };
      const toTheEnd = await audioOf({ ...repaint, repainting_start: 1, repainting_end: -1 });
      expect(difference(toTheEnd, [0, 1 - FADE_SECONDS])).to.equal(0);
      expect(difference(toTheEnd, [1, SOURCE_SECONDS])).to.be.greaterThan(0.01);
      const all = await audioOf(repaint);
      expect(difference(all, [0, 1])).to.be.greaterThan(0.01);
    });

    it("extends the source at its beginning, at its end, and at both", async () => {
      const repaint = (repainting_start: number, repainting_end: number) =>
        audioOf({ task_type: "repaint", src_audio_path: source, repainting_start, repainting_end });
      const ahead = await repaint(-1, 1);
      expect(secondsOf(ahead)).to.equal(SOURCE_SECONDS + 1);
      expect(difference(ahead, [1 + FADE_SECONDS, SOURCE_SECONDS], 1)).to.equal(0);
      const behind = await repaint(1, SOURCE_SECONDS + 1);
      expect(secondsOf(behind)).to.equal(SOURCE_SECONDS + 1);
      expect(difference(behind, [0, 1 - FADE_SECONDS])).to.equal(0);
      expect(secondsOf(await repaint(-0.5, SOURCE_SECONDS + 0.5))).to.equal(SOURCE_SECONDS + 1);
      const after = await repaint(SOURCE_SECONDS, SOURCE_SECONDS + 1);
      expect(secondsOf(after)).to.equal(SOURCE_SECONDS + 1);
      expect(difference(after, [0, SOURCE_SECONDS - FADE_SECONDS])).to.equal(0);
    });

    it("a repaint depends on repaint_mode, repaint_strength and chunk_mask_mode", async () => {
      const window = {
        task_type: "repaint",
        src_audio_path: source,
        repainting_start: 0.5,
        repainting_end: 1,
      };
      const plain = await audioOf(window);
      for (const change of [
        { repaint_mode: "aggressive" },
        { repaint_strength: 1 },
        { chunk_mask_mode: "auto" },
      ]) {
        expect(isSame(plain, await audioOf({ ...window, ...change })), JSON.stringify(change)).to.equal(
          false,
        );
      }
    });
  });

  it("a cover depends on audio_cover_strength and cover_noise_strength", async () => {
    const cover = { task_type: "cover", src_audio_path: source, inference_steps: 4 };
    const made: Float32Array[] = [];
    for (const change of [
      {},
      { audio_cover_strength: 0.5 },
      { audio_cover_strength: 0 },
      { cover_noise_strength: 0.5 },
    ]) {
      made.push(await audioOf({ ...cover, ...change }));
    }
    for (const [i, a] of made.entries()) {
      for (const [j, b] of made.entries()) if (i < j) expect(isSame(a, b), `${i} and ${j}`).to.equal(false);
    }
  });

  it("uses the timbre of a reference recording", async () => {
    const song = { audio_code_string: CODES, use_audio_codes: true, inference_steps: 1 };
    const plain = await audioOf(song);
    const like = await audioOf({ ...song, reference_audio_path: source });
    const unlike = await audioOf({ ...song, ref_audio: uploadOf(other) });
    expect([isSame(plain, like), isSame(plain, unlike), isSame(like, unlike)]).to.deep.equal([
      false,
      false,
      false,
    ]);
  });

  it("a custom instruction changes the song; the default one, which some clients always send, does not", async () => {
    const cover = { task_type: "cover", src_audio_path: source, inference_steps: 1 };
    const plain = await audioOf(cover);
    const own = await audioOf({ ...cover, instruction: "Turn it into a lullaby for a music box:" });
    expect(isSame(plain, own), "one's own").to.equal(false);
    const instruction = "Fill the audio semantic mask based on the given conditions:";
    expect(isSame(plain, await audioOf({ ...cover, instruction })), "the default one").to.equal(true);
  });

  it("takes a finished song as the source, by URL or by name", async () => {
    const cover = { task_type: "cover", inference_steps: 1 };
    const song = await client.makeOne({ ...quick, ...cover, src_audio_path: source, audio_format: "mp3" });
    const name = decodeURIComponent(song.file).split("/").at(-1) as string;
    const [byUrl, byName] = [
      await audioOf({ ...cover, src_audio_path: song.file }),
      await audioOf({ ...cover, src_audio_path: name }),
    ];
    expect(secondsOf(byUrl)).to.be.closeTo(SOURCE_SECONDS, 0.1);
    expect(isSame(byUrl, byName)).to.equal(true);
  });

  describe("audio codes in a request", () => {
    for (const [thinking, use_audio_codes, act] of [
      [false, false, false],
      [false, true, true],
      [true, false, true],
      [true, true, true],
    ] as const) {
      it(`audio codes are ${act ? "used" : "ignored"} with thinking ${thinking} and use_audio_codes ${use_audio_codes}`, async () => {
        for (const audio_code_string of act ? [CODES, [CODES]] : [CODES]) {
          const codes = {
            audio_code_string,
            thinking,
            use_audio_codes,
            audio_duration: 10,
            inference_steps: 1,
          };
          const song = await client.makeOne({ ...quick, ...codes });
          expect(song.metas.duration).to.equal(act ? SOURCE_SECONDS : 10);
          const { length, 0: warning } = song.warnings;
          expect(length).to.equal(1);
          expect(warning).to.include(
            act ? "audio_duration was ignored: audio_code_string" : "audio_code_string was ignored",
          );
        }
      });
    }

    it("audio codes replace the source of a cover", async () => {
      const cover = { task_type: "cover", audio_code_string: CODES, inference_steps: 1 };
      for (const asking of [{ thinking: true }, { use_audio_codes: true }]) {
        const song = await client.makeOne({ ...quick, ...cover, ...asking, src_audio_path: source });
        expect(song.metas.duration).to.equal(SOURCE_SECONDS);
        expect(song.lm_model).to.equal("");
        expect(song.warnings).to.deep.equal(["src_audio was ignored: replaced by audio_code_string"]);
      }
      const refused = await client.post("/release_task", { ...quick, ...cover });
      expect([refused.status, refused.body.detail]).to.satisfy(
        ([status, detail]: [number, string]) => status === 400 && detail.includes("needs a source"),
      );
    });
  });

  describe("task types and the language model", () => {
    const task = (task_type: string) => ({
      ...quick,
      task_type,
      src_audio_path: source,
      inference_steps: 1,
      thinking: true,
    });

    it("cover, repaint and extract do not use the language model", async () => {
      await client.make({ ...quick, audio_duration: 10, thinking: true, inference_steps: 1 });
      for (const task_type of ["cover", "repaint", "extract"]) {
        const song = await client.makeOne({ ...task(task_type), use_format: true, bpm: 90 });
        expect(song.lm_model, task_type).to.equal("");
        expect(song.metas).to.include({ bpm: 90, keyscale: "", timesignature: "" });
        expect(song.prompt).to.equal(quick.prompt);
        expect(song.warnings.join()).to.include("use_format");
      }
    });

    it("the language model fills the metadata of lego and complete; a warning says that it writes no codes", async () => {
      for (const task_type of ["lego", "complete"]) {
        const song = await client.makeOne(task(task_type));
        expect(song.lm_model, task_type).to.equal("carillon-nano/lm");
        expect(song.metas.bpm).to.be.within(30, 300);
        expect(song.metas.keyscale).to.match(/ (major|minor)$/);
        expect(song.metas.duration).to.equal(SOURCE_SECONDS);
        expect(song.generation_info).to.match(/audio codes 0\.00s/);
        expect(song.warnings.join()).to.include("thinking writes no audio codes");
      }
    });
  });
});
