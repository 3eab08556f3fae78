import { expect } from "chai";
import { DEFAULTS, readAceRequests, sparse } from "../../../src/music/acestep-cpp/ace-request.js";
import { synthFields } from "../../../src/music/acestep-cpp/synth.js";
import { NO_UPLOADS } from "../../../src/music/audio/uploads.js";

const context = { isTurbo: true, model: undefined, adapter: null, uploads: NO_UPLOADS, drawSeed: () => 77 };
const withSource = { ...context, uploads: { ...NO_UPLOADS, sourceAudio: { path: "/a.wav" } } };
const fieldsOf = (sent: unknown, more: object = {}) =>
  synthFields(readAceRequests(sent), { ...context, ...more });

describe("requests of acestep.cpp", () => {
  it("a missing field, or one of a wrong type, has its default", () => {
    const wrong = {
      caption: 3,
      bpm: "120",
      use_cot_caption: 1,
      audio_codes: [1, 2],
      output_format: "",
      seed: "7",
    };
    expect(readAceRequests(wrong)).to.deep.equal([DEFAULTS]);
    expect(readAceRequests({})).to.deep.equal([DEFAULTS]);
  });

  it("use_cot_caption takes true and 1 as text; whole numbers are cut off", () => {
    const read = (value: unknown) => readAceRequests({ use_cot_caption: value })[0]?.use_cot_caption;
    expect(["true", "1", true].map(read)).to.deep.equal([true, true, true]);
    expect(["false", "yes", false].map(read)).to.deep.equal([false, false, false]);
    expect(readAceRequests({ bpm: 120.9 })[0]?.bpm).to.equal(120);
  });

  it("lyrics [Instrumental] set vocal_language to unknown", () => {
    const [request] = readAceRequests({ lyrics: "[Instrumental]", vocal_language: "en" });
    expect(request?.vocal_language).to.equal("unknown");
  });

  it("rejects a list without requests, or with something else in it", () => {
    for (const sent of [[], [1], "[]", "{", '"text"', null]) {
      expect(() => readAceRequests(sent), JSON.stringify(sent)).to.throw("Invalid JSON");
    }
  });

  it("the lowest 32 bits of a seed count", () => {
    expect(readAceRequests({ seed: 2 ** 32 + 5 })[0]?.seed).to.equal(5);
    expect(readAceRequests(`{"seed": ${2n ** 62n + 9n}}`)[0]?.seed).to.equal(9);
  });

  it("an answer leaves out fields at their defaults, except six", () => {
    expect(sparse({ ...DEFAULTS, caption: "a waltz", bpm: 90 })).to.deep.equal({
      caption: "a waltz",
      bpm: 90,
      seed: -1,
      solver: "euler",
      lm_mode: "generate",
      output_format: "mp3",
      task_type: "text2music",
    });
  });
});

describe("songs of acestep.cpp's clients", () => {
  it("song i of a request has seed + i; a random seed is drawn once for each request", () => {
    expect(fieldsOf({ caption: "a", seed: 2 ** 32 - 1, synth_batch_size: 2 }).seed).to.deep.equal([
      2 ** 32 - 1,
      0,
    ]);
    let drawn = 100;
    const requests = [
      { caption: "a", synth_batch_size: 2 },
      { caption: "b", seed: 5 },
    ];
    expect(fieldsOf(requests, { drawSeed: () => drawn++ }).seed).to.deep.equal([100, 101, 5]);
  });

  it("a call makes at most nine songs", () => {
    expect(fieldsOf({ caption: "a", synth_batch_size: 20 }).songs).to.have.length(9);
    expect(fieldsOf(Array(3).fill({ caption: "a", synth_batch_size: 4 })).songs).to.have.length(9);
    expect(fieldsOf({ caption: "a", synth_batch_size: -1 }).batch_size).to.equal(1);
  });

  it("steps and shift act on turbo models; unset ones depend on the kind of model", () => {
    const timesOf = (sent: object, isTurbo: boolean) =>
      fieldsOf({ caption: "a", ...sent }, { isTurbo }).timesteps as number[];
    const shifted = (steps: number, shift: number) => [
      ...Array.from({ length: steps }, (_, i) => {
        const time = 1 - i / steps;
        return (shift * time) / (1 + (shift - 1) * time);
      }),
      0,
    ];
    expect(timesOf({}, true)).to.deep.equal(shifted(8, 3));
    expect(timesOf({}, false)).to.deep.equal(shifted(50, 1));
    expect(timesOf({ inference_steps: 4, shift: 2 }, true)).to.deep.equal(shifted(4, 2));
    expect(timesOf({ inference_steps: 300 }, true)).to.have.length(101);
  });

  it("N custom times are N - 1 steps, and the last one is the end", () => {
    const { timesteps } = fieldsOf({ caption: "a", custom_timesteps: "0.97, 0.5,0.1" });
    expect(timesteps).to.deep.equal([0.97, 0.5, 0]);
    expect(fieldsOf({ caption: "a", custom_timesteps: "0.97" }).timesteps).to.have.length(9);
  });

  it("guidance is off unless it is set", () => {
    expect(fieldsOf({ caption: "a" }, { isTurbo: false }).guidance_scale).to.equal(1);
    expect(fieldsOf({ caption: "a", guidance_scale: 4 }, { isTurbo: false }).guidance_scale).to.equal(4);
    expect(fieldsOf({ caption: "a" })).to.not.have.property("guidance_scale");
  });

  it("an unset length is 120 s, unless codes or a source set it", () => {
    expect(fieldsOf({ caption: "a" }).duration).to.equal(120);
    expect(fieldsOf({ caption: "a", duration: 15 }).duration).to.equal(15);
    expect(fieldsOf({ caption: "a", audio_codes: "1,2,3" }).duration).to.equal(0);
    expect(fieldsOf({ caption: "a", task_type: "cover" }, withSource).duration).to.equal(0);
  });

  it("codes count for text2music only", () => {
    const codes = { caption: "a", audio_codes: "1,2" };
    expect(fieldsOf(codes)).to.deep.include({ audio_codes: ["1,2"], use_audio_codes: true });
    expect(fieldsOf({ ...codes, task_type: "cover" }, withSource)).to.not.have.property("audio_codes");
  });

  it("dcw_scaler is the strength of the high band in mode high; zero turns the correction off", () => {
    expect(fieldsOf({ caption: "a", dcw_mode: "high" })).to.not.have.property("dcw_enabled");
    expect(fieldsOf({ caption: "a", dcw_mode: "high", dcw_scaler: 0.1 })).to.include({
      dcw_enabled: true,
      dcw_mode: "high",
      dcw_high_scaler: 0.1,
    });
    expect(fieldsOf({ caption: "a", dcw_mode: "double", dcw_scaler: 0.1, dcw_high_scaler: 0.2 })).to.include({
      dcw_scaler: 0.1,
      dcw_high_scaler: 0.2,
    });
  });

  it("a window may begin before the source; without an end it ends with the source, or at its start", () => {
    const windowOf = (start?: number, end?: number, task = "repaint") =>
      fieldsOf({ caption: "a", task_type: task, repainting_start: start, repainting_end: end }, withSource)
        .repainting_windows;
    expect(windowOf()).to.deep.equal([[0, null]]);
    expect(fieldsOf({ caption: "a", task_type: "repaint" }, withSource).repaint_strength).to.equal(1);
    expect(windowOf(10, 20)).to.deep.equal([[10, 20]]);
    expect(windowOf(-5)).to.deep.equal([[-5, 0]]);
    expect(windowOf(-5, 3)).to.deep.equal([[-5, 3]]);
    expect(windowOf(undefined, undefined, "lego")).to.equal(undefined);
    expect(windowOf(2, 4, "lego")).to.deep.equal([[2, 4]]);
  });

  it("complete takes several stems, lego and extract one", () => {
    const tracksOf = (task_type: string, track: string) => {
      const { track_name, track_classes } = fieldsOf({ task_type, track }, withSource);
      return track_name ?? track_classes;
    };
    expect(tracksOf("complete", "VOCALS | DRUMS")).to.deep.equal(["VOCALS ", " DRUMS"]);
    expect(tracksOf("extract", "vocals")).to.equal("vocals");
  });

  it("formats, bit rate and level", () => {
    expect(fieldsOf({ caption: "a" })).to.include({ audio_format: "mp3", mp3_bitrate: 128, peak_clip: 10 });
    const wav = fieldsOf({ caption: "a", output_format: "wav16", peak_clip: 2000 });
    expect(wav).to.include({ audio_format: "wav", peak_clip: 999 }).and.not.have.property("mp3_bitrate");
    expect(fieldsOf({ caption: "a", output_format: "wav24" }).audio_format).to.equal("wav24");
    const raw = fieldsOf({ caption: "a", output_format: "wav32" });
    expect(raw).to.include({ enable_normalization: false }).and.not.have.property("peak_clip");
    expect(() => fieldsOf({ caption: "a", output_format: "flac" })).to.throw(
      'output_format must be one of mp3, wav16, wav24, wav32, got "flac"',
    );
  });

  it("a caption is required except for stems, and a source for all but text2music", () => {
    expect(() => fieldsOf({})).to.throw("caption is required");
    expect(() => fieldsOf({ task_type: "extract", track: "vocals" }, withSource)).to.not.throw();
    expect(() => fieldsOf({ caption: "a", task_type: "cover" })).to.throw("send it as audio or src_latents");
  });
});
