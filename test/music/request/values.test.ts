import { expect } from "chai";
import { NO_UPLOADS } from "../../../src/music/audio/uploads.js";
import type { Fields } from "../../../src/music/request/json.js";
import { DRAWN, parse, refusal } from "./request-parsing.js";

const BASE_VALUES = {
  prompt: "slow bossa nova",
  thinking: true,
  use_cot_caption: false,
  bpm: 84,
  audio_duration: 42.5,
  time_signature: 4,
  inference_steps: 6,
  guidance_scale: 4.5,
  batch_size: 3,
  seed: 11,
  use_random_seed: false,
  cfg_interval_end: 0.75,
  lm_temperature: 0.7,
};

describe("values of generation requests", () => {
  describe("values", () => {
    it("are the same from JSON and from text", () => {
      const typed: Fields = BASE_VALUES;
      const text = Object.fromEntries(Object.entries(typed).map(([name, value]) => [name, String(value)]));
      expect(parse(text)).to.deep.equal(parse(typed));
    });

    it("of integers may be fractions or their text, cut off", () => {
      for (const bpm of [120.9, "120.9", " 120 ", "1.2e2", "+120"]) expect(parse({ bpm }).bpm).to.equal(120);
      expect(parse({ inference_steps: 8.0 }).inferenceSteps).to.equal(8);
    });

    it("of flags may be words or numbers", () => {
      for (const thinking of [true, 1, 1.0, 2, "1", "true", "TRUE", "yes", "y", "on", " On ", "1.0"]) {
        expect(parse({ thinking }).thinking, JSON.stringify(thinking)).to.equal(true);
      }
      for (const use_cot_caption of [false, 0, "0", "false", "no", "off", "wav", "0.0"]) {
        expect(parse({ use_cot_caption }).useCotCaption, String(use_cot_caption)).to.equal(false);
      }
    });

    it("of text may be numbers", () => {
      expect(parse({ prompt: 5, time_signature: 4 })).to.include({ prompt: "5", timeSignature: "4" });
    });

    it("that are no numbers are refused, whatever the policy for ranges", () => {
      for (const rangePolicy of ["clamp", "refuse"] as const) {
        for (const guidance_scale of ["nan", "NaN", "inf", "-Infinity", Number.POSITIVE_INFINITY]) {
          expect(refusal({ guidance_scale }, { rangePolicy })).to.match(
            /^guidance_scale must be a finite number, got .*[nif]/i,
          );
        }
        expect(refusal({ bpm: "fast" }, { rangePolicy })).to.equal('bpm must be a number, got "fast"');
        expect(refusal({ seed: "abc" }, { rangePolicy })).to.include("seed must be an integer");
        expect(refusal({ task_type: "karaoke" }, { rangePolicy })).to.include("task_type must be one of");
      }
    });

    const lengths: [name: string, field: string, limit: number][] = [
      ["prompt", "prompt", 4096],
      ["prompt", "caption", 4096],
      ["lyrics", "lyrics", 32_768],
      ...[
        "sample_query",
        "instruction",
        "global_caption",
        "lm_negative_prompt",
        "key_scale",
        "model",
        "vocal_language",
      ].map((field): [string, string, number] => [field, field, 4096]),
      ["track_classes", "track_classes", 256],
    ];
    for (const [name, field, limit] of lengths) {
      it(`of ${field} are text of at most ${limit} characters`, () => {
        parse({ [field]: "é".repeat(limit) });
        const sent = field === name ? name : `${name} (sent as ${field})`;
        for (const rangePolicy of ["refuse", "clamp"] as const) {
          expect(refusal({ [field]: "é".repeat(limit + 1) }, { rangePolicy })).to.equal(
            `${sent} must be at most ${limit} characters long and is ${limit + 1}, got "${"é".repeat(60)}…"`,
          );
        }
      });
    }

    it("of track_classes are at most 64", () => {
      expect(parse({ track_classes: Array(64).fill("drums") }).trackClasses).to.have.length(64);
      expect(refusal({ track_classes: Array(65).fill("drums") })).to.match(/at most 64 texts and holds 65/);
    });

    it("of numbers and flags are read in no time, however long", () => {
      const digits = `${"1".repeat(900_000)}x`;
      expect(refusal({ bpm: digits })).to.match(/^bpm must be a number, got "1{60}…"$/);
      expect(refusal({ seed: digits })).to.include("seed must be an integer");
      expect(parse({ thinking: digits }).thinking).to.equal(false);
    });

    it("in nested JSON text are bounded like those of the body", () => {
      for (const name of ["param_obj", "metas"]) {
        expect(refusal({ [name]: `${"[".repeat(65)}` })).to.equal(`${name} must nest at most 64 levels deep`);
        expect(refusal({ [name]: `{"a":[${"0,".repeat(30_000)}0]}` })).to.include("at most 30000 values");
      }
    });

    it("that say less than they seem to leave a warning", () => {
      const warnings = (fields: Fields) => parse(fields).warnings;
      expect(warnings({ thinking: "maybe" })).to.deep.equal([
        'thinking must be true or false, got "maybe"; false was used',
      ]);
      expect(warnings({ format: "wav" })).to.deep.equal([
        'use_format (sent as format) must be true or false, got "wav"; false was used',
      ]);
      expect(warnings({ seed: 3.7, use_random_seed: false })).to.deep.equal([
        "seed must hold integers from -1 to 9007199254740991, got 3.7; [3] was used",
      ]);
      expect(warnings({ key_scale: "H dur" })[0]).to.include('no key_scale "H dur"');
      expect(warnings({ vocal_language: "klingon" })[0]).to.include('no vocal_language "klingon"');
      for (const fields of [{ key_scale: "F# Minor" }, { key_scale: "Am" }, { vocal_language: "EN" }]) {
        expect(warnings(fields)).to.deep.equal([]);
      }
      expect(warnings({ vocal_language: "unknown", seed: 42, thinking: "off" })).to.deep.equal([]);
    });

    const wrong: [Fields, string][] = [
      [{ bpm: "fast" }, 'bpm must be a number, got "fast"'],
      [{ bpm: [120] }, "bpm must be a number, got [120]"],
      [{ bpm: { value: 120 } }, "bpm must be a number, got an object"],
      [{ audio_duration: "0x20" }, 'audio_duration must be a number, got "0x20"'],
      [{ prompt: {} }, "prompt must be text, got an object"],
      [{ caption: ["a"] }, 'prompt (sent as caption) must be text, got ["a"]'],
      [{ lyrics: true }, "lyrics must be text, got true"],
      [{ thinking: {} }, "thinking must be true or false, got an object"],
      [{ audio_format: "xyz" }, 'audio_format must be one of flac, mp3, opus, aac, wav, wav32, got "xyz"'],
      [{ batch_size: "x".repeat(500) }, `batch_size must be a number, got "${"x".repeat(60)}…"`],
    ];
    for (const [fields, detail] of wrong) {
      it(`of a wrong type are refused: ${JSON.stringify(fields).slice(0, 40)}`, () => {
        expect(refusal(fields)).to.equal(detail);
      });
    }
  });

  describe("ranges", () => {
    /** The interface's limits. */
    const ranges: [string, keyof ReturnType<typeof parse>, number, number, number][] = [
      ["bpm", "bpm", 30, 300, 1],
      ["audio_duration", "audioDurationSeconds", 10, 600, 0.5],
      ["inference_steps", "inferenceSteps", 1, 20, 1],
      ["batch_size", "batchSize", 1, 8, 1],
      ["shift", "shift", 1, 5, 0.5],
      ["cfg_interval_start", "cfgIntervalStart", 0, 1, 0.01],
      ["cfg_interval_end", "cfgIntervalEnd", 0, 1, 0.01],
      ["audio_cover_strength", "audioCoverStrength", 0, 1, 0.01],
    ];
    for (const [name, key, min, max, step] of ranges) {
      it(`of ${name} are ${min} to ${max}, ends included`, () => {
        expect(parse({ [name]: min })[key]).to.equal(min);
        expect(parse({ [name]: String(max) })[key]).to.equal(max);
        for (const value of [min - step, max + step, max * 1e9]) {
          expect(refusal({ [name]: value })).to.equal(`${name} must be from ${min} to ${max}, got ${value}`);
        }
      });

      it(`of ${name} are clamped by policy, with a warning`, () => {
        // Fewer than one step is no wish for a bad song.
        const least = name === "inference_steps" ? 8 : min;
        for (const [value, used] of [
          [min - step, least],
          [max + step, max],
        ] as const) {
          const request = parse({ [name]: value }, { rangePolicy: "clamp" });
          expect(request[key]).to.equal(used);
          expect(request.warnings).to.deep.equal([
            `${name} must be from ${min} to ${max}, got ${value}; ${used} was used`,
          ]);
        }
      });
    }

    it("of inference_steps are 1 to 200 for base models", () => {
      const model = "acestep-v15-base";
      expect(parse({ inference_steps: 200, model }).inferenceSteps).to.equal(200);
      expect(refusal({ inference_steps: 201, model })).to.equal(
        "inference_steps must be from 1 to 200, got 201",
      );
      expect(parse({ inference_steps: 900, model }, { rangePolicy: "clamp" }).inferenceSteps).to.equal(200);
    });

    it("of the guidance interval begin before they end", () => {
      expect(refusal({ cfg_interval_start: 0.8, cfg_interval_end: 0.2 })).to.equal(
        "cfg_interval_start must not be above cfg_interval_end, got 0.8 and 0.2",
      );
      expect(parse({ cfg_interval_start: 0.5, cfg_interval_end: 0.5 }).cfgIntervalEnd).to.equal(0.5);
    });

    it("name the parameter as the client did", () => {
      expect(refusal({ duration: 5 })).to.equal(
        "audio_duration (sent as duration) must be from 10 to 600, got 5",
      );
      expect(refusal({ metas: { bpm: 9999 } })).to.include("bpm");
    });

    it("do not bind the values that mean auto", () => {
      for (const auto of [0, -1, "0", "-1", -0.5]) {
        expect(parse({ bpm: auto, audio_duration: auto })).to.include({
          bpm: null,
          audioDurationSeconds: null,
        });
      }
      expect(parse({ lm_top_k: 0 }).lmTopK).to.equal(0);
      expect(parse({ lm_top_k: -5 }).lmTopK).to.equal(0);
      expect(parse({ lm_top_p: 0 }).lmTopP).to.equal(0.9);
      expect(parse({ lm_top_p: 1.5 }).lmTopP).to.equal(1);
      expect(parse({ repainting_end: -1 }).repaintingEndSeconds).to.equal(null);
      expect(parse({ bpm: 0, audio_duration: -1, seed: -1, lm_top_k: 0 }).warnings).to.deep.equal([]);
    });

    it("keep the sampling temperature where the core can use it", () => {
      const request = parse({ lm_temperature: 9 }, { rangePolicy: "clamp" });
      expect(request.lmTemperature).to.equal(2);
      expect(request.warnings[0]).to.include("lm_temperature");
      expect(refusal({ lm_temperature: 9 })).to.equal("lm_temperature must be from 0 to 2, got 9");
    });
  });

  describe("music", () => {
    it("has time signatures by numerator", () => {
      const read = (time_signature: unknown) => parse({ time_signature }).timeSignature;
      expect(["2", "3", "4", "6", 4, "2/4", "3/4", "4/4", "6/8", " 6 / 8 "].map(read)).to.deep.equal([
        "2",
        "3",
        "4",
        "6",
        "4",
        "2",
        "3",
        "4",
        "6",
        "6",
      ]);
      expect(read("N/A")).to.equal("");
    });

    it("leaves an unknown time signature open, with a warning", () => {
      for (const time_signature of ["5/4", "4/8", "waltz"]) {
        const request = parse({ time_signature });
        expect(request.timeSignature).to.equal("");
        expect(request.warnings).to.have.length(1);
      }
    });

    it("takes N/A for no key", () => {
      expect(parse({ key_scale: "n/a" }).keyScale).to.equal("");
      expect(parse({ key_scale: " A minor " }).keyScale).to.equal("A minor");
    });

    it("keeps format and audio_format apart", () => {
      expect(parse({ format: "wav" })).to.include({ audioFormat: "mp3", useFormat: false });
      expect(parse({ format: true, audio_format: "FLAC" })).to.include({
        audioFormat: "flac",
        useFormat: true,
      });
    });

    it("falls back to ode for other solver names, with a warning", () => {
      const request = parse({ infer_method: "heun" });
      expect(request.inferMethod).to.equal("ode");
      expect(request.warnings[0]).to.include('got "heun"');
    });

    it("keeps the name of a model as it is: what it means is settled when the task runs", () => {
      expect(parse({ model: "acestep/acestep-v15-turbo" }).model).to.equal("acestep/acestep-v15-turbo");
      expect(parse({ model: " whatever " }).model).to.equal("whatever");
      expect(parse({ model: "" }).model).to.equal(null);
    });

    it("accepts any lm_backend", () => {
      expect(parse({ lm_backend: "anything" }).lmBackend).to.equal("anything");
    });
  });

  describe("seeds", () => {
    const seeds = (seed: unknown, rest: Fields = {}) =>
      parse({ seed, use_random_seed: false, ...rest }).seeds;

    it("are given by number, text or list, one per item", () => {
      expect(seeds(42)).to.deep.equal([42, DRAWN]);
      expect(seeds("42")).to.deep.equal([42, DRAWN]);
      expect(seeds("42, 123.9")).to.deep.equal([42, 123]);
      expect(seeds([1, "2"])).to.deep.equal([1, 2]);
      expect(seeds("1,2,3")).to.deep.equal([1, 2]);
      expect(seeds(0)).to.deep.equal([0, DRAWN]);
    });

    it("keep their positions beside random ones", () => {
      expect(seeds("-1,7")).to.deep.equal([DRAWN, 7]);
      expect(seeds(",7")).to.deep.equal([DRAWN, 7]);
      expect(seeds([-1, 7, 8], { batch_size: 4 })).to.deep.equal([DRAWN, 7, 8, DRAWN]);
    });

    it("are random without a seed, and where use_random_seed says so", () => {
      for (const seed of [undefined, null, "", -1]) expect(seeds(seed)).to.deep.equal([DRAWN, DRAWN]);
      expect(parse({ seed: 42 }).seeds).to.deep.equal([DRAWN, DRAWN]);
    });

    it("that cannot be read among others are random, with a warning", () => {
      const request = parse({ seed: "7,abc", use_random_seed: false });
      expect(request.seeds).to.deep.equal([7, DRAWN]);
      expect(request.warnings[0]).to.include("seed must hold integers");
    });

    it("beyond the largest are random by policy, else refused", () => {
      const beyond = { seed: 2 ** 60, use_random_seed: false };
      expect(parse(beyond, { rangePolicy: "clamp" }).seeds).to.deep.equal([DRAWN, DRAWN]);
      expect(refusal(beyond)).to.include("seed must hold integers from -1 to 9007199254740991");
    });

    it("of other types are refused", () => {
      expect(refusal({ seed: {} })).to.include("seed must be an integer or a list of integers");
      expect(refusal({ seed: [[1]] })).to.include("seed");
    });
  });

  describe("timesteps", () => {
    it("are read from text or a list, the closing 0 added", () => {
      const standard = "0.97,0.76,0.615,0.5,0.395,0.28,0.18,0.085,0";
      expect(parse({ timesteps: standard }).timesteps).to.deep.equal(standard.split(",").map(Number));
      expect(parse({ timesteps: " 1, 0.5, " }).timesteps).to.deep.equal([1, 0.5, 0]);
      expect(parse({ timesteps: [1, "0.25"] }).timesteps).to.deep.equal([1, 0.25, 0]);
      expect(parse({ timesteps: 0.5 }).timesteps).to.deep.equal([0.5, 0]);
      expect(parse({ timesteps: null }).timesteps).to.equal(null);
    });

    for (const timesteps of [
      "0.5,0.9",
      "1.5,0",
      "0.5,0.5",
      "a,b",
      "nan,0",
      "0",
      "0.5,-0.1",
      ",",
      {},
      [[1]],
      [],
      true,
    ]) {
      it(`refuse ${JSON.stringify(timesteps)}`, () => {
        expect(refusal({ timesteps })).to.match(/^timesteps must be up to 200 numbers from 1 down to 0/);
      });
    }

    it("refuse more steps than any model allows", () => {
      const times = Array.from({ length: 201 }, (_, i) => 1 - i / 500);
      expect(refusal({ timesteps: times })).to.include("timesteps");
    });
  });

  describe("audio codes", () => {
    const codes = (audio_code_string: unknown, rest: Fields = {}) =>
      parse({ audio_code_string, use_audio_codes: true, ...rest }).audioCodes;

    it("act with thinking or use_audio_codes, and are else ignored with a warning", () => {
      for (const task_type of ["text2music", "cover"]) {
        const sent = { task_type, src_audio_path: "a.wav", audio_code_string: "<|audio_code_1|>" };
        const ignored = parse({ ...sent, thinking: false });
        expect(ignored.audioCodes).to.equal(null);
        expect(ignored.warnings.join()).to.include("audio_code_string was ignored");
        for (const asking of [{ thinking: true }, { use_audio_codes: true }]) {
          for (const audio_code_string of ["<|audio_code_1|>", ["<|audio_code_1|>"], ["1", "1"], [1]]) {
            const acting = parse({ ...sent, ...asking, audio_code_string });
            expect(acting.audioCodes).to.deep.equal([[1], [1]]);
            expect(acting.warnings.join()).to.not.include("audio_code_string was ignored");
          }
        }
      }
    });

    it("never take the place of a source but in a cover", () => {
      for (const task_type of ["repaint", "lego", "extract", "complete"]) {
        const sent = { task_type, src_audio_path: "a.wav", audio_code_string: "1", thinking: true };
        const request = parse(sent);
        expect(request.audioCodes).to.equal(null);
        expect(request.sourceAudio?.path).to.equal("a.wav");
        expect(request.warnings.join()).to.include(`audio_code_string was ignored: task_type ${task_type}`);
      }
      const cover = parse({
        task_type: "cover",
        src_audio_path: "a.wav",
        audio_code_string: "1",
        thinking: true,
      });
      expect(cover.sourceAudio).to.equal(null);
      expect(cover.warnings).to.deep.equal(["src_audio was ignored: audio_code_string takes its place"]);
    });

    it("set the length where they act", () => {
      const sent = { audio_code_string: "1,2,3", audio_duration: 10 };
      expect(parse({ ...sent, thinking: true }).warnings).to.deep.equal([
        "audio_duration was ignored: audio_code_string sets the length",
      ]);
      expect(parse(sent).warnings.join()).to.not.include("audio_duration");
      expect(parse({ audio_code_string: "1,2,3", thinking: true }).warnings).to.deep.equal([]);
    });

    it("are not written for tasks that work on a source, which is told of those with a language model", () => {
      for (const task_type of ["lego", "complete"]) {
        const sent = { task_type, src_audio_path: "a.wav" };
        const warning = `thinking wrote no audio codes: task_type ${task_type} works on a source`;
        expect(parse({ ...sent, thinking: true }).warnings).to.deep.equal([warning]);
        expect(parse(sent).warnings).to.deep.equal([]);
      }
      expect(parse({ thinking: true }).warnings).to.deep.equal([]);
    });

    it("are read from tokens, comma lists and integers, one text for every item", () => {
      expect(codes("<|audio_code_70000|>x<|audio_code_5|>")).to.deep.equal([
        [63999, 5],
        [63999, 5],
      ]);
      expect(codes("1, 2,3")).to.deep.equal([
        [1, 2, 3],
        [1, 2, 3],
      ]);
      expect(codes([1, 2, 3])).to.deep.equal([
        [1, 2, 3],
        [1, 2, 3],
      ]);
    });

    it("are read from a list of one text per item", () => {
      expect(codes(["<|audio_code_1|>", "2"])).to.deep.equal([[1], [2]]);
      expect(codes(["7"], { batch_size: 3 })).to.deep.equal([[7], [7], [7]]);
    });

    it("must fit the batch and be of one length", () => {
      expect(refusal({ audio_codes: ["1", "2"], use_audio_codes: true, batch_size: 3 })).to.include(
        "batch_size 3",
      );
      expect(refusal({ audio_codes: ["1", "2,3"], use_audio_codes: true })).to.include("same number");
    });

    for (const value of [[], [""], [" ", "", null], "", null]) {
      it(`are none in ${JSON.stringify(value)}`, () => {
        for (const asking of [{}, { thinking: true }, { use_audio_codes: true }]) {
          const { audioCodes, warnings } = parse({ audio_code_string: value, ...asking });
          expect([audioCodes, warnings]).to.deep.equal([null, []]);
        }
      });
    }

    for (const value of ["no codes", "<|audio_code_|>", ["1", ""], [{}], {}, true, "1,".repeat(3001)]) {
      it(`refuse ${JSON.stringify(value).slice(0, 30)} where they act, and ignore it where they do not`, () => {
        for (const asking of [{ thinking: true }, { use_audio_codes: true }]) {
          expect(refusal({ audio_code_string: value, ...asking })).to.match(/^audio_code_string must hold/);
        }
        for (const resting of [
          { thinking: false },
          { thinking: true, task_type: "repaint", src_audio_path: "a.wav" },
        ]) {
          const { audioCodes, warnings } = parse({ audio_code_string: value, ...resting });
          expect(audioCodes).to.equal(null);
          expect(warnings).to.have.length(1);
          expect(warnings[0]).to.include("audio_code_string was ignored");
        }
      });
    }
  });

  describe("tasks", () => {
    it("of unknown types are refused", () => {
      for (const task_type of ["stem_separation", "ai_mix", "midi_generate"]) {
        expect(refusal({ task_type })).to.equal(
          `task_type must be one of text2music, cover, repaint, lego, extract, complete, got "${task_type}"`,
        );
      }
    });

    for (const task_type of ["cover", "repaint", "lego", "extract", "complete"]) {
      it(`of type ${task_type} need a source`, () => {
        expect(refusal({ task_type })).to.match(
          new RegExp(`^task_type ${task_type} needs a source: .*src_audio_path`),
        );
        // A default or a length of the form is no source.
        expect(refusal({ task_type, src_audio_path: " ", audio_duration: 2 })).to.include("needs a source");
        expect(parse({ task_type, src_audio_path: "a.wav" }).sourceAudio).to.deep.equal({
          path: "a.wav",
          isUpload: false,
        });
      });

      it(`of type ${task_type} take the length of the source`, () => {
        for (const audio_duration of [2, 30, 600]) {
          const request = parse({ task_type, src_audio_path: "a.wav", audio_duration });
          expect(request.audioDurationSeconds).to.equal(null);
          expect(request.warnings).to.deep.equal(["audio_duration was ignored: the source sets the length"]);
        }
        expect(refusal({ task_type, src_audio_path: "a.wav", audio_duration: 601 })).to.include("600");
      });
    }

    it("of type cover do with codes that act, and say so where they do not", () => {
      expect(refusal({ task_type: "cover", audio_code_string: "1" })).to.include("use_audio_codes");
      const cover = parse({ task_type: "cover", audio_code_string: "1", use_audio_codes: true });
      expect([cover.sourceAudio, cover.audioCodes]).to.deep.equal([null, [[1], [1]]]);
    });

    it("prefer an upload to a path", () => {
      const uploads = { sourceAudio: { path: "/tmp/a.wav" }, referenceAudio: { path: "/tmp/b.wav" } };
      const paths = { src_audio_path: "../x", reference_audio_path: "../y" };
      const request = parse({ task_type: "repaint", ...paths }, { uploads });
      expect(request.sourceAudio).to.deep.equal({ path: "/tmp/a.wav", isUpload: true });
      expect(request.referenceAudio).to.deep.equal({ path: "/tmp/b.wav", isUpload: true });
    });

    it("say that a file came before the key", () => {
      for (const [kind, field] of [
        ["sourceAudio", "src_audio"],
        ["referenceAudio", "reference_audio"],
      ] as const) {
        const uploads = { ...NO_UPLOADS, sourceAudio: { path: "/tmp/a.wav" }, [kind]: { path: null } };
        expect(refusal({ task_type: "cover" }, { uploads })).to.match(new RegExp(`^${field} came before`));
      }
    });

    it("have a window that begins before it ends, and perhaps before the source", () => {
      const repaint = { task_type: "repaint", src_audio_path: "a.wav" };
      for (const [repainting_start, repainting_end] of [
        [5, 5],
        [5, 2],
        ["9.5", "3"],
      ]) {
        expect(refusal({ ...repaint, repainting_start, repainting_end })).to.include("repainting_start");
      }
      expect(parse({ ...repaint, repainting_start: -5, repainting_end: 2 })).to.include({
        repaintingStartSeconds: -5,
        repaintingEndSeconds: 2,
      });
      for (const repainting_end of [0, -1, null, ""]) {
        expect(parse({ ...repaint, repainting_start: 3, repainting_end }).repaintingEndSeconds).to.equal(
          null,
        );
      }
      expect(parse({ repainting_start: 5, repainting_end: 2 }).warnings).to.deep.equal([]);
    });

    it("know three ways to repaint and two to tell the window", () => {
      expect(refusal({ repaint_mode: "wild" })).to.match(/^repaint_mode must be one of conservative/);
      expect(refusal({ chunk_mask_mode: "none" })).to.match(/^chunk_mask_mode must be one of explicit, auto/);
      expect(refusal({ repaint_strength: 1.5 })).to.match(/^repaint_strength must be from 0 to 1/);
      expect(parse({ repaint_strength: 1.5 }, { rangePolicy: "clamp" }).repaintStrength).to.equal(1);
    });

    it("take stems as text, as a list, and as JSON text of one", () => {
      const classes = (track_classes: unknown) => parse({ track_classes }).trackClasses;
      expect(classes("drums")).to.deep.equal(["drums"]);
      expect(classes(["drums", " bass ", ""])).to.deep.equal(["drums", "bass"]);
      expect(classes('["drums","bass"]')).to.deep.equal(["drums", "bass"]);
      expect(classes("[drums")).to.deep.equal(["[drums"]);
      expect(classes([])).to.deep.equal([]);
      for (const value of [{}, [{}], true]) {
        expect(refusal({ track_classes: value })).to.match(/^track_classes must be text/);
      }
    });

    it("that only analyse need a source but for metadata, and ask for the least where flags compete", () => {
      expect(refusal({ extract_codes_only: true })).to.match(/^extract_codes_only needs a source/);
      expect(refusal({ full_analysis_only: true })).to.match(/^full_analysis_only needs a source/);
      const source = { src_audio_path: "a.wav" };
      const words = parse({
        analysis_only: true,
        task_type: "cover",
        ...source,
        reference_audio_path: "b.wav",
      });
      expect([words.sourceAudio, words.referenceAudio]).to.deep.equal([null, null]);
      expect(parse({ extract_codes_only: true, ...source }).sourceAudio?.path).to.equal("a.wav");
      const all = { ...source, extract_codes_only: true, full_analysis_only: true, analysis_only: true };
      expect(parse(all).analysis).to.equal("codes");
      expect(parse({ ...all, extract_codes_only: false }).analysis).to.equal("full");
    });

    it("take text2music in any case", () => {
      expect(parse({ taskType: " Text2Music " }).taskType).to.equal("text2music");
    });

    it("of text2music do without a source, however it is sent", () => {
      const uploads = { ...NO_UPLOADS, sourceAudio: { path: "/tmp/a.wav" } };
      const warnings = ["src_audio was ignored: task_type text2music works without one"];
      expect(parse({}, { uploads })).to.deep.equal({ ...parse({}), warnings });
      expect(parse({ src_audio_path: "relative/../x.wav" })).to.deep.equal({ ...parse({}), warnings });
      expect(parse({ reference_audio_path: "" })).to.deep.equal(parse({}));
    });
  });
});
