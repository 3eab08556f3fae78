import { expect } from "chai";
import { NO_UPLOADS } from "../../../src/music/audio/uploads.js";
import { parseClientJson } from "../../../src/music/request/json.js";
import { generationSchema } from "../../../src/music/request/schema.js";
import type { Fields } from "../../../src/parameters.js";
import { parsed, RANDOM_SEED, refusal } from "./request-parsing.js";

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
  describe("value types of generation parameters", () => {
    it("JSON values and their text give equal requests", () => {
      const typed: Fields = BASE_VALUES;
      const text = Object.fromEntries(Object.entries(typed).map(([name, value]) => [name, String(value)]));
      expect(parsed(text)).to.deep.equal(parsed(typed));
    });

    it("integer parameters drop the fraction of a number, also of a number in text", () => {
      for (const bpm of [120.9, "120.9", " 120 ", "1.2e2", "+120"]) expect(parsed({ bpm }).bpm).to.equal(120);
      expect(parsed({ inference_steps: 8.0 }).inferenceSteps).to.equal(8);
    });

    it("flags may be sent as words or as numbers", () => {
      for (const thinking of [true, 1, 1.0, 2, "1", "true", "TRUE", "yes", "y", "on", " On ", "1.0"]) {
        expect(parsed({ thinking }).thinking, JSON.stringify(thinking)).to.equal(true);
      }
      for (const use_cot_caption of [false, 0, "0", "false", "no", "off", "wav", "0.0"]) {
        expect(parsed({ use_cot_caption }).useCotCaption, String(use_cot_caption)).to.equal(false);
      }
    });

    it("text parameters accept numbers", () => {
      expect(parsed({ prompt: 5, time_signature: 4 })).to.include({ prompt: "5", timeSignature: "4" });
    });

    it("number parameters refuse NaN, infinity and words, with any range policy", () => {
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
      it(`${field} may have at most ${limit} characters`, () => {
        parsed({ [field]: "é".repeat(limit) });
        const sent = field === name ? name : `${name} (sent as ${field})`;
        for (const rangePolicy of ["refuse", "clamp"] as const) {
          expect(refusal({ [field]: "é".repeat(limit + 1) }, { rangePolicy })).to.equal(
            `${sent} must be at most ${limit} characters long and is ${limit + 1}, got "${"é".repeat(60)}…"`,
          );
        }
      });
    }

    it("track_classes may have at most 64 elements", () => {
      parsed({ track_classes: Array(64).fill("drums") });
      expect(refusal({ track_classes: Array(65).fill("drums") })).to.match(/at most 64 texts, got 65$/);
    });

    it("long numbers and flags are parsed in linear time", () => {
      const digits = `${"1".repeat(900_000)}x`;
      expect(refusal({ bpm: digits })).to.match(/^bpm must be a number, got "1{60}…"$/);
      expect(refusal({ seed: digits })).to.include("seed must be an integer");
      expect(parsed({ thinking: digits }).thinking).to.equal(false);
    });

    it("JSON text in a field has the same limits as the body", () => {
      for (const name of ["param_obj", "metas"]) {
        expect(refusal({ [name]: `${"[".repeat(65)}` })).to.equal(`${name} must nest at most 64 levels deep`);
        expect(refusal({ [name]: `{"a":[${"0,".repeat(30_000)}0]}` })).to.include("at most 30000 values");
      }
    });

    it("values that are replaced or rounded cause warnings", () => {
      const warnings = (fields: Fields) => parsed(fields).warnings;
      expect(warnings({ thinking: "maybe" })).to.deep.equal([
        'thinking must be true or false, got "maybe"; false was used',
      ]);
      expect(warnings({ format: "wav" })).to.deep.equal([
        'use_format (sent as format) must be true or false, got "wav"; false was used',
      ]);
      expect(warnings({ seed: 3.7, use_random_seed: false })).to.deep.equal([
        "seed must hold integers from -1 to 18446744073709551615, got 3.7; [3] was used",
      ]);
      expect(warnings({ key_scale: "H dur" })[0]).to.include('key_scale "H dur" is unknown');
      expect(warnings({ vocal_language: "klingon" })[0]).to.include('vocal_language "klingon" is unknown');
      for (const fields of [{ key_scale: "F# Minor" }, { key_scale: "Am" }, { vocal_language: "EN" }]) {
        expect(warnings(fields)).to.deep.equal([]);
      }
      expect(warnings({ vocal_language: "unknown", seed: 42, thinking: "off" })).to.deep.equal([
        "seed was ignored: use_random_seed is true",
      ]);
    });

    const long = Array.from({ length: 12 }, (_, index) => index);
    const codes =
      "audio_code_string must hold 1 to 3000 codes per song, as <|audio_code_N|> or comma-separated integers";
    const times = "timesteps must be up to 200 descending numbers from 1 to 0, at least 0.0001 apart";
    const windows =
      "repainting_windows must hold windows such as [10, 20.5]: seconds, the start below the end";
    const parts: [Fields, string][] = [
      [{ loras: [{ path: "a" }, { path: "b", scale: 3 }] }, "loras [1] scale must be from -2 to 2, got 3"],
      [{ loras: [{ path: "a", scale: "x" }] }, 'loras [0] scale must be a number, got "x"'],
      [{ loras: [{ path: ["a"] }] }, 'loras [0] path must be text, got ["a"]'],
      [{ loras: [{ path: "a", weight: 7 }] }, 'loras [0] Unrecognized key: "weight", got 7'],
      [
        { loras: [{ path: "a", dora_epsilon: "f8" }] },
        'loras [0] dora_epsilon must be one of float32, bfloat16, got "f8"',
      ],
      [
        { loras: [{ path: "a" }, 7] },
        'loras [1] must be an object with "path" or "name", and "scale", got 7',
      ],
      [
        { loras: [{ path: "a" }, { path: "a" }] },
        'loras [1] names the same adapter as an earlier one, got "a"',
      ],
      [{ loras: [{ path: " " }] }, "loras [0] must have a path, or the name of a loaded adapter, got null"],
      [{ loras: Array(9).fill({ path: "a" }) }, "loras must hold at most 8 adapters, got 9"],
      [
        {
          repainting_windows: [
            [1, 2],
            [4, 2],
          ],
        },
        `${windows}, got [4, 2]`,
      ],
      [{ repainting_windows: [{ start: 4, end: 2 }] }, `${windows}, got [4, 2]`],
      [{ repainting_windows: "[[1,2],[3]]" }, `${windows}, got [3]`],
      [
        { repainting_windows: Array(33).fill([1, 2]) },
        "repainting_windows must hold at most 32 windows, got 33",
      ],
      [
        { track_classes: ["drums", { name: "bass" }] },
        "track_classes must be text or a list of texts, got an object",
      ],
      [{ track_classes: [...long, null] }, "track_classes must be text or a list of texts, got null"],
      [{ seed: [[1], 2] }, "seed must be an integer or a list of integers, got [1]"],
      [{ lm_seed: ["one", "two"] }, 'lm_seed must be an integer or a list of integers, got "one"'],
      [{ timesteps: [...long].reverse() }, `${times}, got 11`],
      [{ timesteps: [1, 0.5, 0.7, 0] }, `${times}, got 0.7`],
      [{ timesteps: "1,x,0" }, `${times}, got "x"`],
      [{ timesteps: [1, [0.5], 0] }, `${times}, got [0.5]`],
      [{ use_audio_codes: true, audio_code_string: ["1", "two"] }, `${codes}, got "two"`],
      [{ use_audio_codes: true, audio_code_string: [[1], [...long, 0.5]] }, `${codes}, got 0.5`],
      [{ use_audio_codes: true, audio_code_string: Array(3001).fill(1) }, `${codes}, got 3001 codes`],
    ];
    for (const [fields, detail] of parts) {
      it(`shows the part of a list that is wrong: ${detail.slice(0, 90)}`, () =>
        expect(refusal({ ...fields, thinking: true, batch_size: 2 })).to.equal(detail));
    }

    const wrong: [Fields, string][] = [
      [{ bpm: "fast" }, 'bpm must be a number, got "fast"'],
      [{ bpm: [120] }, "bpm must be a number, got [120]"],
      [{ bpm: { value: 120 } }, "bpm must be a number, got an object"],
      [{ audio_duration: "0x20" }, 'audio_duration must be a number, got "0x20"'],
      [{ prompt: {} }, "prompt must be text, got an object"],
      [{ caption: ["a"] }, 'prompt (sent as caption) must be text, got ["a"]'],
      [{ lyrics: true }, "lyrics must be text, got true"],
      [{ thinking: {} }, "thinking must be true or false, got an object"],
      [
        { audio_format: "xyz" },
        'audio_format must be one of mp3, flac, opus, aac, ogg, wav, wav24, wav32, got "xyz"',
      ],
      [{ batch_size: "x".repeat(500) }, `batch_size must be a number, got "${"x".repeat(60)}…"`],
    ];
    for (const [fields, detail] of wrong) {
      it(`a value of a wrong type is refused: ${JSON.stringify(fields).slice(0, 40)}`, () => {
        expect(refusal(fields)).to.equal(detail);
      });
    }
  });

  describe("ranges of generation parameters", () => {
    /** For each parameter: name, parsed field, minimum, maximum and smallest step. */
    const ranges: [string, keyof ReturnType<typeof parsed>, number, number, number][] = [
      ["bpm", "bpm", 30, 300, 1],
      ["audio_duration", "durationSeconds", 10, 600, 0.5],
      ["inference_steps", "inferenceSteps", 1, 20, 1],
      ["batch_size", "batchSize", 1, 8, 1],
      ["shift", "shift", 1, 5, 0.5],
      ["cfg_interval_start", "cfgIntervalStart", 0, 1, 0.01],
      ["cfg_interval_end", "cfgIntervalEnd", 0, 1, 0.01],
      ["audio_cover_strength", "audioCoverStrength", 0, 1, 0.01],
    ];
    for (const [name, key, min, max, step] of ranges) {
      it(`${name} may be from ${min} to ${max}, inclusive`, () => {
        expect(parsed({ [name]: min })[key]).to.equal(min);
        expect(parsed({ [name]: String(max) })[key]).to.equal(max);
        for (const value of [min - step, max + step, max * 1e9]) {
          expect(refusal({ [name]: value })).to.equal(`${name} must be from ${min} to ${max}, got ${value}`);
        }
      });

      it(`${name} is clamped with a warning`, () => {
        // inference_steps below 1 selects the default number of steps.
        const least = name === "inference_steps" ? 8 : min;
        for (const [value, used] of [
          [min - step, least],
          [max + step, max],
        ] as const) {
          const sent = name === "audio_cover_strength" ? { task_type: "cover", src_audio_path: "a.wav" } : {};
          const request = parsed({ ...sent, [name]: value }, { rangePolicy: "clamp" });
          expect(request[key]).to.equal(used);
          expect(request.warnings).to.deep.equal([
            `${name} must be from ${min} to ${max}, got ${value}; ${used} was used`,
          ]);
        }
      });
    }

    it("the repetition penalty may be from 0.01 to 100; 0 and less mean the default", () => {
      const penalty = (value: number) =>
        parsed({ lm_repetition_penalty: value, thinking: true }, { rangePolicy: "clamp" }).repetitionPenalty;
      expect([0.01, 1.5, 100].map(penalty)).to.deep.equal([0.01, 1.5, 100]);
      expect([1e-300, 0.001, 101, 1e300].map(penalty)).to.deep.equal([0.01, 0.01, 100, 100]);
      expect([0, -1].map(penalty)).to.deep.equal([1, 1]);
      for (const value of [1e-300, 1e300, 0])
        expect(refusal({ lm_repetition_penalty: value })).to.equal(
          `lm_repetition_penalty must be from 0.01 to 100, got ${value}`,
        );
    });

    it("guidance is at most 1000", () => {
      for (const name of ["guidance_scale", "norm_threshold", "lm_cfg_scale"]) {
        expect(refusal({ [name]: 1e300 })).to.equal(`${name} must be at most 1000, got 1e+300`);
        expect(parsed({ [name]: 1001 }, { rangePolicy: "clamp" }).warnings).to.deep.equal([
          `${name} must be at most 1000, got 1001; 1000 was used`,
        ]);
      }
    });

    it("inference_steps may be from 1 to 200 for base models", () => {
      const model = "acestep-v15-base";
      expect(parsed({ inference_steps: 200, model }).inferenceSteps).to.equal(200);
      expect(refusal({ inference_steps: 201, model })).to.equal(
        "inference_steps must be from 1 to 200, got 201",
      );
      expect(parsed({ inference_steps: 900, model }, { rangePolicy: "clamp" }).inferenceSteps).to.equal(200);
    });

    it("the guidance interval may not start after its end", () => {
      expect(refusal({ cfg_interval_start: 0.8, cfg_interval_end: 0.2 })).to.equal(
        "cfg_interval_start must not be above cfg_interval_end, got 0.8 and 0.2",
      );
      expect(parsed({ cfg_interval_start: 0.5, cfg_interval_end: 0.5 }).cfgIntervalEnd).to.equal(0.5);
    });

    it("range errors contain the parameter name that the client sent", () => {
      expect(refusal({ duration: 5 })).to.equal(
        "audio_duration (sent as duration) must be from 10 to 600, got 5",
      );
      expect(refusal({ metas: { bpm: 9999 } })).to.include("bpm");
    });

    it("a value that means automatic may lie outside the range", () => {
      for (const auto of [0, -1, "0", "-1", -0.5]) {
        expect(parsed({ bpm: auto, audio_duration: auto })).to.include({
          bpm: null,
          durationSeconds: null,
        });
      }
      expect(parsed({ lm_top_k: 0 }).topK).to.equal(0);
      expect(parsed({ lm_top_k: -5 }).topK).to.equal(0);
      expect(parsed({ lm_top_p: 0 }).topP).to.equal(0.9);
      expect(parsed({ lm_top_p: 1.5 }).topP).to.equal(1);
      expect(parsed({ repainting_end: -1 }).repaintingEndSeconds).to.equal(null);
      expect(parsed({ bpm: 0, audio_duration: -1, seed: -1, lm_top_k: 0 }).warnings).to.deep.equal([]);
    });

    it("lm_temperature is limited to values that the core supports", () => {
      const request = parsed({ lm_temperature: 9 }, { rangePolicy: "clamp" });
      expect(request.temperature).to.equal(2);
      expect(request.warnings[0]).to.include("lm_temperature");
      expect(refusal({ lm_temperature: 9 })).to.equal("lm_temperature must be from 0 to 2, got 9");
    });
  });

  describe("normalisation of parameter values", () => {
    it("a time signature is reduced to its numerator", () => {
      const read = (time_signature: unknown) => parsed({ time_signature }).timeSignature;
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

    it("an unknown time signature is ignored with a warning", () => {
      for (const time_signature of ["5/4", "4/8", "waltz"]) {
        const request = parsed({ time_signature });
        expect(request.timeSignature).to.equal("");
        expect(request.warnings).to.have.length(1);
      }
    });

    it("key_scale=N/A means no key", () => {
      expect(parsed({ key_scale: "n/a" }).keyScale).to.equal("");
      expect(parsed({ key_scale: " A minor " }).keyScale).to.equal("A minor");
    });

    it("Unicode accidentals of a key become ASCII", () => {
      expect(parsed({ key_scale: "B♭ major" })).to.deep.include({ keyScale: "Bb major", warnings: [] });
      expect(parsed({ metas: { keyscale: "F♯ Minor" } })).to.deep.include({
        keyScale: "F# Minor",
        warnings: [],
      });
    });

    it("words such as N/A and auto leave tempo, length, key, metre, language and seed unset", () => {
      const words = [
        "N/A",
        "n.a.",
        "auto",
        "auto-detect",
        "None",
        "unknown",
        "not set",
        "-",
        "—",
        "null",
        " Automatic ",
      ];
      for (const word of words) {
        const metas = { bpm: word, duration: word, keyscale: word, timesignature: word };
        const sent = { seed: word, lm_seed: word, repainting_end: word };
        for (const fields of [metas, { metas }, { param_obj: JSON.stringify(metas) }]) {
          const request = parsed({ ...fields, ...sent });
          expect(request).to.deep.include({
            bpm: null,
            durationSeconds: null,
            keyScale: "",
            timeSignature: "",
            repaintingEndSeconds: null,
            seeds: [RANDOM_SEED, RANDOM_SEED],
            warnings: [],
          });
        }
      }
      for (const vocal_language of ["auto", "Auto Detect", "und"])
        expect(parsed({ vocal_language })).to.deep.include({ vocalLanguage: null, warnings: [] });
    });

    it("a tempo may have its unit, a length its unit or minutes, a metre full-width digits", () => {
      for (const bpm of ["120 bpm", "120BPM", "120.0"]) expect(parsed({ bpm }).bpm).to.equal(120);
      for (const duration of ["90 s", "90sec", "90.0 seconds", "1:30", "0:01:30"])
        expect(parsed({ duration })).to.deep.include({ durationSeconds: 90, warnings: [] });
      for (const time_signature of ["３/４", "3.0", "3 / 4"])
        expect(parsed({ time_signature })).to.deep.include({ timeSignature: "3", warnings: [] });
      expect(() => parsed({ bpm: "fast" })).to.throw(/bpm must be a number, got "fast"/);
      expect(() => parsed({ duration: "1:30:" })).to.throw(/audio_duration .*must be a number/);
    });

    it("a value that another name or place of the same parameter overrides is named", () => {
      expect(parsed({ batch_size: 1, n: 2 })).to.deep.include({
        batchSize: 1,
        warnings: ["n 2 was ignored: batch_size 1 counts"],
      });
      expect(parsed({ bpm: 90, metas: { bpm: 120 } }).warnings).to.deep.equal([
        "bpm 120 was ignored: bpm 90 counts",
      ]);
      expect(parsed({ prompt: "a", caption: "a", bpm: "90", metas: { bpm: 90 } }).warnings).to.deep.equal([]);
    });

    it("a language may be named by a locale or a word", () => {
      for (const name of ["de-DE", "German", "deu"]) {
        expect(parsed({ vocal_language: name })).to.deep.include({ vocalLanguage: "de", warnings: [] });
      }
      for (const [name, code] of [
        ["简体中文", "zh"],
        ["國語", "zh"],
        ["廣東話", "yue"],
        ["韩文", "ko"],
      ])
        expect(parsed({ vocal_language: name })).to.deep.include({ vocalLanguage: code, warnings: [] });
    });

    it("names and words of other programs act", () => {
      const others = { think: true, infer_step: 5, synth_model: "acestep-v15-base", lm_model: "small", n: 3 };
      expect(parsed(others)).to.deep.include({
        thinking: true,
        inferenceSteps: 5,
        model: "acestep-v15-base",
        languageModel: "small",
        batchSize: 3,
        warnings: [],
      });
      expect(parsed({ task_type: "cover-nofsq", src_audio_path: "/a.wav" })).to.deep.include({
        taskType: "cover",
        coverNofsq: true,
        warnings: [],
      });
    });

    it("instrumental=true makes a song without vocals, and names lyrics as ignored", () => {
      expect(parsed({ instrumental: true })).to.deep.include({ lyrics: "[Instrumental]", warnings: [] });
      expect(parsed({ instrumental: true, lyrics: "[Verse]\nla" })).to.deep.include({
        lyrics: "[Instrumental]",
        warnings: ["lyrics was ignored: instrumental is true"],
      });
      expect(parsed({ instrumental: false, lyrics: "la" })).to.deep.include({ lyrics: "la", warnings: [] });
    });

    it("times and headers of LRC files are taken off lyrics with a warning", () => {
      const lrc =
        "[ti:Rain]\n[ar: Me]\n[offset:+500]\n[00:10.00]\n[Verse 1]\n[00:12.34]Rain again\n[00:15.1][01:15.1] and\n" +
        "[00:18:20] <00:18.20> word <00:18.90> by <00:19.40> word\n\n[Chorus: choir]\n[1:02:03.450] the end";
      const request = parsed({ lyrics: lrc });
      expect(request.lyrics).to.equal("[Verse 1]\nRain again\nand\nword by word\n\n[Chorus: choir]\nthe end");
      expect(request.warnings[0]).to.match(/^lyrics must be without the times of an LRC file, got /);
      expect(
        parsed({ lyrics: "1\n00:00:01,000 --> 00:00:02,500\nOne\n\n2\n00:03.000 --> 00:04.000\n99" }).lyrics,
      ).to.equal("One\n\n99");
      const odd =
        "\ufeff[artist:Me]\n[title: Rain]\n[encoding:utf-8]\n[00:12.3456]One\n[00:12;34]two\n【00:13】three\n［00:14.5］four\n" +
        "[00:15 - 00:17]five\n[  00:18  ] six\n[18000,900]<0,200,0>se<200,300,0>ven";
      expect(parsed({ lyrics: odd }).lyrics).to.equal("One\ntwo\nthree\nfour\nfive\nsix\nseven");
      const subtitles =
        "WEBVTT\n\n00:01.000 --> 00:02.000 align:start\n<v Ann>One</v>\n\n00:02.000 --> 00:03.000\n<i>two</i>";
      expect(parsed({ lyrics: subtitles }).lyrics).to.equal("One\n\ntwo");
      const untimed = "[Verse 1]\r\nAt 12:30 <sighs>\n[Bridge: 2x]\n[Outro 0:30]\n42\n";
      expect(parsed({ lyrics: untimed })).to.deep.include({ lyrics: untimed, warnings: [] });
    });

    it("the field format means use_format, not audio_format", () => {
      expect(parsed({ format: "wav" })).to.include({ audioFormat: "mp3", useFormat: false });
      expect(parsed({ format: true, audio_format: "FLAC" })).to.include({
        audioFormat: "flac",
        useFormat: true,
      });
    });

    it("an unknown solver name is replaced by ode, with a warning", () => {
      const request = parsed({ infer_method: "unipc" });
      expect(request.inferMethod).to.equal("ode");
      expect(request.warnings[0]).to.include('got "unipc"');
      expect(parsed({ infer_method: "euler" })).to.deep.include({ inferMethod: "ode", warnings: [] });
    });

    it("a model name is kept unchanged, because it is looked up when the task runs", () => {
      expect(parsed({ model: "acestep/acestep-v15-turbo" }).model).to.equal("acestep/acestep-v15-turbo");
      expect(parsed({ model: " whatever " }).model).to.equal("whatever");
      expect(parsed({ model: "" }).model).to.equal(null);
    });

    it("any lm_backend is accepted", () => {
      expect(parsed({ lm_backend: "anything" }).lmBackend).to.equal("anything");
    });
  });

  describe("accepted forms of seeds", () => {
    const seeds = (seed: unknown, rest: Fields = {}) =>
      parsed({ seed, use_random_seed: false, ...rest }).seeds;

    it("seed may be a number, text or a list with one seed per song", () => {
      expect(seeds(42)).to.deep.equal([42, RANDOM_SEED]);
      expect(seeds("42")).to.deep.equal([42, RANDOM_SEED]);
      expect(seeds("42, 123.9")).to.deep.equal([42, 123]);
      expect(seeds([1, "2"])).to.deep.equal([1, 2]);
      expect(seeds("1,2,3")).to.deep.equal([1, 2]);
      expect(seeds(0)).to.deep.equal([0, RANDOM_SEED]);
    });

    it("given seeds keep their positions among random ones", () => {
      expect(seeds("-1,7")).to.deep.equal([RANDOM_SEED, 7]);
      expect(seeds(",7")).to.deep.equal([RANDOM_SEED, 7]);
      expect(seeds([-1, 7, 8], { batch_size: 4 })).to.deep.equal([RANDOM_SEED, 7, 8, RANDOM_SEED]);
    });

    it("seeds are random if none is sent, or with use_random_seed", () => {
      for (const seed of [undefined, null, "", -1])
        expect(seeds(seed)).to.deep.equal([RANDOM_SEED, RANDOM_SEED]);
      expect(parsed({ seed: 42 }).seeds).to.deep.equal([RANDOM_SEED, RANDOM_SEED]);
    });

    it("an invalid element in a list of seeds becomes random, with a warning", () => {
      const request = parsed({ seed: "7,abc", use_random_seed: false });
      expect(request.seeds).to.deep.equal([7, RANDOM_SEED]);
      expect(request.warnings[0]).to.include("seed must hold integers");
    });

    it("seeds above the maximum become random or are refused, depending on the range policy", () => {
      const beyond = { seed: "18446744073709551616", use_random_seed: false };
      expect(parsed(beyond, { rangePolicy: "clamp" }).seeds).to.deep.equal([RANDOM_SEED, RANDOM_SEED]);
      expect(refusal(beyond)).to.include("seed must hold integers from -1 to 18446744073709551615");
    });

    it("seeds are exact up to 64 bits, even as JSON numbers", () => {
      const digits = ["18446744073709551615", "9007199254740993", "4294967301"];
      const used = [digits[0], digits[1], 4294967301];
      for (const body of [
        `{"use_random_seed":false,"batch_size":3,"seed":[${digits.join(", ")}]}`,
        `{"use_random_seed":false,"batch_size":3,"seed":"${digits.join(",")}"}`,
        `{"use_random_seed":false,"batch_size":3,"param_obj":{"seed":[${digits.join(",")} ]}}`,
      ]) {
        const request = parsed(parseClientJson(body, "the body") as Fields);
        expect(request.seeds, body).to.deep.equal(used);
        expect(request.warnings).to.deep.equal([]);
      }
      const one = parseClientJson(`{"seed":${digits[0]},"use_random_seed":false}`, "the body") as Fields;
      expect(parsed(one).seeds).to.deep.equal([digits[0], RANDOM_SEED]);
      for (const text of [
        '{"a":1,12345678901234567890:2}',
        "[1 12345678901234567890]",
        "[012345678901234567890]",
      ]) {
        expect(() => parseClientJson(text, "the body"), text).to.throw(SyntaxError);
      }
      expect(parseClientJson('["12345678901234567890", 0.12345678901234567890, -1]', "")).to.deep.equal([
        "12345678901234567890",
        0.12345678901234568,
        -1,
      ]);
    });

    it("seeds beyond batch_size are ignored with a warning", () => {
      const sent = { seed: "1,2,3", lm_seed: [4, 5, 6], use_random_seed: false };
      expect(parsed(sent).warnings).to.deep.equal([
        "seed holds 3 seeds for batch_size 2: extra seeds were ignored",
        "lm_seed holds 3 seeds for batch_size 2: extra seeds were ignored",
      ]);
      expect(parsed({ ...sent, batch_size: 3 }).warnings).to.deep.equal([]);
    });

    it("seeds of other types are refused", () => {
      expect(refusal({ seed: {} })).to.include("seed must be an integer or a list of integers");
      expect(refusal({ seed: [[1]] })).to.include("seed");
    });
  });

  describe("accepted forms of timesteps", () => {
    it("timesteps may be text or a list; a missing final 0 is added", () => {
      const standard = "0.97,0.76,0.615,0.5,0.395,0.28,0.18,0.085,0";
      expect(parsed({ timesteps: standard }).timesteps).to.deep.equal(standard.split(",").map(Number));
      expect(parsed({ timesteps: " 1, 0.5, " }).timesteps).to.deep.equal([1, 0.5, 0]);
      expect(parsed({ timesteps: [1, "0.25"] }).timesteps).to.deep.equal([1, 0.25, 0]);
      expect(parsed({ timesteps: 0.5 }).timesteps).to.deep.equal([0.5, 0]);
      expect(parsed({ timesteps: null }).timesteps).to.equal(null);
    });

    for (const timesteps of [
      "0.5,0.9",
      "1.5,0",
      "0.5,0.5",
      "a,b",
      "nan,0",
      "0",
      "0.5,-0.1",
      "1,1e-300,0",
      "1,0.5,0.49995",
      "0.00005",
      ",",
      {},
      [[1]],
      [],
      true,
    ]) {
      it(`timesteps may not be ${JSON.stringify(timesteps)}`, () => {
        expect(refusal({ timesteps })).to.match(
          /^timesteps must be up to 200 descending numbers from 1 to 0, at least 0\.0001 apart/,
        );
      });
    }

    it("timesteps may not have more steps than any model allows", () => {
      const times = Array.from({ length: 201 }, (_, i) => 1 - i / 500);
      expect(refusal({ timesteps: times })).to.include("timesteps");
    });
  });

  describe("use and accepted forms of audio codes", () => {
    const codes = (audio_code_string: unknown, rest: Fields = {}) =>
      parsed({ audio_code_string, use_audio_codes: true, ...rest }).codes;

    it("audio codes are used with thinking or use_audio_codes, else ignored with a warning", () => {
      for (const task_type of ["text2music", "cover"]) {
        const sent = { task_type, src_audio_path: "a.wav", audio_code_string: "<|audio_code_1|>" };
        const ignored = parsed({ ...sent, thinking: false });
        expect(ignored.codes).to.equal(null);
        expect(ignored.warnings.join()).to.include("audio_code_string was ignored");
        for (const asking of [{ thinking: true }, { use_audio_codes: true }]) {
          for (const audio_code_string of ["<|audio_code_1|>", ["<|audio_code_1|>"], ["1", "1"], [1]]) {
            const acting = parsed({ ...sent, ...asking, audio_code_string });
            expect(acting.codes).to.deep.equal([[1], [1]]);
            expect(acting.warnings.join()).to.not.include("audio_code_string was ignored");
          }
        }
      }
    });

    it("audio codes replace a source only in a cover", () => {
      for (const task_type of ["repaint", "lego", "extract", "complete"]) {
        const sent = { task_type, src_audio_path: "a.wav", audio_code_string: "1", thinking: true };
        const request = parsed(sent);
        expect(request.codes).to.equal(null);
        expect(request.source?.path).to.equal("a.wav");
        expect(request.warnings.join()).to.include(`audio_code_string was ignored: task_type ${task_type}`);
      }
      const cover = parsed({
        task_type: "cover",
        src_audio_path: "a.wav",
        audio_code_string: "1",
        thinking: true,
      });
      expect(cover.source).to.equal(null);
      expect(cover.warnings).to.deep.equal(["src_audio was ignored: replaced by audio_code_string"]);
    });

    it("audio codes set the song's length if they are used", () => {
      const sent = { audio_code_string: "1,2,3", audio_duration: 10 };
      expect(parsed({ ...sent, thinking: true }).warnings).to.deep.equal([
        "audio_duration was ignored: audio_code_string sets the length",
      ]);
      expect(parsed(sent).warnings.join()).to.not.include("audio_duration");
      expect(parsed({ audio_code_string: "1,2,3", thinking: true }).warnings).to.deep.equal([]);
    });

    it("thinking=true causes a warning for lego and complete, for which no audio codes are planned", () => {
      for (const task_type of ["lego", "complete"]) {
        const sent = { task_type, track_name: task_type === "lego" ? "bass" : "", src_audio_path: "a.wav" };
        const warning = `thinking writes no audio codes: task_type ${task_type} uses a source`;
        expect(parsed({ ...sent, thinking: true }).warnings).to.deep.equal([warning]);
        expect(parsed(sent).warnings).to.deep.equal([]);
      }
      expect(parsed({ thinking: true }).warnings).to.deep.equal([]);
    });

    it("songs are one to nine objects", () => {
      expect(refusal({ songs: "waltz" })).to.equal('songs must be a list of 1 to 9 objects, got "waltz"');
      expect(refusal({ songs: [] })).to.equal("songs must hold 1 to 9 songs, got 0");
      expect(refusal({ songs: Array(99).fill({}) })).to.equal("songs must hold 1 to 9 songs, got 99");
      expect(refusal({ songs: [{}, "b"] })).to.equal(
        'songs [1] must be an object with the parameters of a song, got "b"',
      );
    });

    it("audio codes for all songs may be tokens, comma-separated text or a list of integers", () => {
      expect(codes("<|audio_code_4095|>x<|audio_code_5|>")).to.deep.equal([
        [4095, 5],
        [4095, 5],
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

    it("audio codes must be within the model's codebook", () => {
      const detail = (range: string, stray: number) =>
        `audio_code_string must hold codes of the model, from ${range}, got ${stray}`;
      const strays: [sent: unknown, stray: number][] = [
        ["1,4096", 4096],
        ["<|audio_code_0|><|audio_code_999999999|>", 999_999_999],
        [[0, -1], -1],
        ["0,-1", -1],
        ["<|audio_code_-1|>", -1],
        [[2 ** 40 + 5], 2 ** 40 + 5],
        [["1", "4096"], 4096],
      ];
      for (const [audio_code_string, stray] of strays) {
        const sent = { audio_code_string, use_audio_codes: true };
        for (const rangePolicy of ["clamp", "refuse"] as const) {
          expect(refusal(sent, { rangePolicy })).to.equal(detail("0 to 4095", stray));
        }
      }
      const unloaded = { slotOf: () => ({ isTurbo: true, codebookSize: null }) };
      expect(refusal({ audio_code_string: "64000", use_audio_codes: true }, unloaded)).to.equal(
        detail("0 to 63999", 64_000),
      );
      expect(codes("0,4095")?.[0]).to.deep.equal([0, 4095]);
    });

    it("audio codes may be a list with one text per song", () => {
      expect(codes(["<|audio_code_1|>", "2"])).to.deep.equal([[1], [2]]);
      expect(codes(["7"], { batch_size: 3 })).to.deep.equal([[7], [7], [7]]);
    });

    it("audio codes per song must match batch_size and have equal lengths", () => {
      expect(refusal({ audio_codes: ["1", "2"], use_audio_codes: true, batch_size: 3 })).to.include(
        "batch_size 3",
      );
      expect(refusal({ audio_codes: ["1", "2,3"], use_audio_codes: true })).to.include("same number");
    });

    for (const value of [[], [""], [" ", "", null], "", null]) {
      it(`audio codes sent as ${JSON.stringify(value)} count as absent`, () => {
        for (const asking of [{}, { thinking: true }, { use_audio_codes: true }]) {
          const { codes, warnings } = parsed({ audio_code_string: value, ...asking });
          expect(codes).to.equal(null);
          expect(warnings.join()).to.not.include("audio_code_string was ignored");
        }
      });
    }

    for (const value of ["no codes", "<|audio_code_|>", ["1", ""], [{}], {}, true, "1,".repeat(3001)]) {
      it(`invalid audio codes are refused only if they are used: ${JSON.stringify(value).slice(0, 30)}`, () => {
        for (const asking of [{ thinking: true }, { use_audio_codes: true }]) {
          expect(refusal({ audio_code_string: value, ...asking })).to.match(/^audio_code_string must hold/);
        }
        for (const resting of [
          { thinking: false },
          { thinking: true, task_type: "repaint", src_audio_path: "a.wav" },
        ]) {
          const { codes, warnings } = parsed({ audio_code_string: value, ...resting });
          expect(codes).to.equal(null);
          expect(warnings[0]).to.match(/^audio_code_string was ignored|^thinking was ignored/);
          expect(warnings.join()).to.include("audio_code_string was ignored");
        }
      });
    }
  });

  describe("requirements of each task type", () => {
    it("an unknown task_type is refused", () => {
      for (const task_type of ["stem_separation", "ai_mix", "midi_generate"]) {
        expect(refusal({ task_type })).to.equal(
          `task_type must be one of text2music, cover, repaint, lego, extract, complete, got "${task_type}"`,
        );
      }
    });

    for (const task_type of ["cover", "repaint", "lego", "extract", "complete"]) {
      it(`${task_type} needs a source`, () => {
        expect(refusal({ task_type })).to.match(
          new RegExp(`^task_type ${task_type} needs a source: .*src_audio_path`),
        );
        // The task needs a source even if the request sets a duration.
        expect(refusal({ task_type, src_audio_path: " ", audio_duration: 2 })).to.include("needs a source");
        expect(parsed({ task_type, src_audio_path: "a.wav" }).source).to.deep.equal({
          kind: "sourceAudio",
          path: "a.wav",
          isUpload: false,
        });
      });

      it(`${task_type} uses the length of the source`, () => {
        for (const audio_duration of [2, 30, 600]) {
          const track_name = ["lego", "extract"].includes(task_type) ? "bass" : "";
          const request = parsed({ task_type, track_name, src_audio_path: "a.wav", audio_duration });
          expect(request.durationSeconds).to.equal(null);
          expect(request.warnings).to.deep.equal(["audio_duration was ignored: the source sets the length"]);
        }
        expect(refusal({ task_type, src_audio_path: "a.wav", audio_duration: 601 })).to.include("600");
      });
    }

    it("cover needs no source if it uses audio codes", () => {
      expect(refusal({ task_type: "cover", audio_code_string: "1" })).to.include("use_audio_codes");
      const cover = parsed({ task_type: "cover", audio_code_string: "1", use_audio_codes: true });
      expect([cover.source, cover.codes]).to.deep.equal([null, [[1], [1]]]);
    });

    it("an upload takes precedence over a path in the same request", () => {
      const uploads = {
        ...NO_UPLOADS,
        sourceAudio: { path: "/tmp/a.wav" },
        referenceAudio: { path: "/tmp/b.wav" },
      };
      const paths = { src_audio_path: "../x", reference_audio_path: "../y" };
      const request = parsed({ task_type: "repaint", ...paths }, { uploads });
      expect(request.source).to.deep.equal({ kind: "sourceAudio", path: "/tmp/a.wav", isUpload: true });
      expect(request.reference).to.deep.equal({
        kind: "referenceAudio",
        path: "/tmp/b.wav",
        isUpload: true,
      });
    });

    it("a task is refused if its upload was discarded, because the upload came before the API key", () => {
      for (const [kind, field] of [
        ["sourceAudio", "src_audio"],
        ["referenceAudio", "reference_audio"],
      ] as const) {
        const uploads = { ...NO_UPLOADS, sourceAudio: { path: "/tmp/a.wav" }, [kind]: { path: null } };
        expect(refusal({ task_type: "cover" }, { uploads })).to.match(
          new RegExp(`^${field} was discarded, because no valid API key`),
        );
      }
    });

    it("the repaint window must end after its start, which may precede the source", () => {
      const repaint = { task_type: "repaint", src_audio_path: "a.wav" };
      for (const [repainting_start, repainting_end] of [
        [5, 5],
        [5, 2],
        ["9.5", "3"],
      ]) {
        expect(refusal({ ...repaint, repainting_start, repainting_end })).to.include("repainting_start");
      }
      expect(parsed({ ...repaint, repainting_start: -5, repainting_end: 2 })).to.include({
        repaintingStartSeconds: -5,
        repaintingEndSeconds: 2,
      });
      for (const repainting_end of [0, -1, null, ""]) {
        expect(parsed({ ...repaint, repainting_start: 3, repainting_end }).repaintingEndSeconds).to.equal(
          null,
        );
      }
      expect(parsed({ repainting_start: 5, repainting_end: 2 }).warnings).to.deep.equal([
        "repainting_start, repainting_end were ignored: not used by task_type text2music, only by repaint, lego",
      ]);
    });

    it("sample_rate must suit the audio format; mp3_bitrate applies to mp3", () => {
      expect(refusal({ audio_format: "opus", sample_rate: 44_100 })).to.equal(
        "sample_rate must be 48000 for audio_format opus, got 44100",
      );
      expect(refusal({ audio_format: "mp3", sample_rate: "96000" })).to.equal(
        "sample_rate must be one of 32000, 44100, 48000 for audio_format mp3, got 96000",
      );
      expect(parsed({ audio_format: "flac", mp3_sample_rate: "96000" }).sampleRate).to.equal(96_000);
      for (const mp3_bitrate of ["192k", 192, "192", " 192 kbps", "192K"]) {
        expect(parsed({ mp3_bitrate })).to.deep.include({ mp3Bitrate: "192k", warnings: [] });
      }
      expect(refusal({ mp3_bitrate: 1000 })).to.match(/^mp3_bitrate must be one of 32k, .*, 320k, got 1000$/);
      expect(parsed({ audio_format: "wav", mp3_bitrate: 192 }).warnings).to.deep.equal([
        "mp3_bitrate was ignored: audio_format is wav",
      ]);
    });

    it("normalization_db is in dBFS; fades may last ten minutes", () => {
      const clamp = { rangePolicy: "clamp" } as const;
      expect(parsed({ normalization_db: 3, fade_in: -1, fade_out: 1e6 }, clamp)).to.deep.include({
        normalizationDb: 0,
        fadeInSeconds: 0,
        fadeOutSeconds: 600,
      });
      expect(refusal({ normalization_db: -61 })).to.match(/^normalization_db must be from -60 to 0/);
      expect(refusal({ fade_in: "long" })).to.equal('fade_in must be a number, got "long"');
      expect(refusal({ loudness: 3 })).to.match(/^loudness must be from -60 to -5/);
      for (const level of ["normalization_db", "loudness"]) {
        const repaint = { task_type: "repaint", src_audio_path: "a.wav", [level]: -14 };
        expect(parsed(repaint).warnings.join()).to.equal(
          `${level} changes the level of the whole song, including parts that repaint keeps`,
        );
      }
    });

    it("lists of numbers may be JSON text, as forms send them", () => {
      const read = (body: Record<string, unknown>) => parsed({ batch_size: 2, ...body });
      expect(read({ seed: "[5, 6]", use_random_seed: false }).seeds).to.deep.equal([5, 6]);
      expect(read({ lm_seed: "[5]" }).lmSeeds).to.deep.equal([5, 5]);
      expect(read({ timesteps: "[1, 0.5, 0]" }).timesteps).to.deep.equal([1, 0.5, 0]);
      for (const audio_code_string of ["[7, 8]", ["[7,8]", "7,8"]]) {
        expect(read({ audio_code_string, use_audio_codes: true }).codes).to.deep.equal([
          [7, 8],
          [7, 8],
        ]);
      }
    });

    it("repainting_windows may be written in any common list form", () => {
      const repaint = { task_type: "repaint", src_audio_path: "a.wav" };
      const windowsOf = (repainting_windows: unknown) =>
        parsed({ ...repaint, repainting_windows }).repaintingWindows;
      const two = [
        [2, 4],
        [6.5, 8],
      ];
      for (const spelled of [
        two,
        JSON.stringify(two),
        ["2,4", "6.5, 8"],
        ["[2, 4]", " [6.5,8] "],
        [
          { start: 2, end: 4 },
          { start: "6.5", end: "8" },
        ],
      ]) {
        expect(windowsOf(spelled)).to.deep.equal(two);
      }
      for (const one of ["2,4", [2, 4], "[2, 4]", [[2, 4]]]) expect(windowsOf(one)).to.deep.equal([[2, 4]]);
      for (const end of [null, 0, -1])
        expect(
          windowsOf([
            [-3, 2],
            [5, end],
          ]),
        ).to.deep.equal([
          [-3, 2],
          [5, null],
        ]);
      for (const wrong of [
        [[4, 2]],
        [[1, 1]],
        [[1]],
        [[1, 2, 3]],
        "abc",
        [["a", "b"]],
        [[1, 2], null],
        [{ start: 1 }, 7],
      ]) {
        expect(refusal({ ...repaint, repainting_windows: wrong })).to.match(
          /^repainting_windows must hold windows/,
        );
      }
      expect(refusal({ repainting_windows: Array(33).fill([1, 2]) })).to.include("at most 32 windows");
      const both = parsed({ ...repaint, repainting_windows: two, repainting_start: 5, repainting_end: 3 });
      expect(both).to.deep.include({
        repaintingStartSeconds: 0,
        repaintingEndSeconds: null,
        repaintingWindows: two,
      });
      expect(both.warnings).to.deep.equal([
        "repainting_start, repainting_end were ignored: replaced by repainting_windows",
      ]);
    });

    it("repaint_mode, chunk_mask_mode and repaint_strength refuse unknown values", () => {
      expect(refusal({ repaint_mode: "wild" })).to.match(/^repaint_mode must be one of conservative/);
      expect(refusal({ chunk_mask_mode: "none" })).to.match(/^chunk_mask_mode must be one of explicit, auto/);
      expect(refusal({ repaint_strength: 1.5 })).to.match(/^repaint_strength must be from 0 to 1/);
      expect(parsed({ repaint_strength: 1.5 }, { rangePolicy: "clamp" }).repaintStrength).to.equal(1);
    });

    it("guidance_variant, eta and momentum are read with the names of other servers", () => {
      expect(parsed({}).guidanceVariant).to.equal(null);
      expect(parsed({ guidance_mode: "APG" }).guidanceVariant).to.equal("apg_classic");
      const unknown = parsed({ guidance_variant: "pag" });
      expect(unknown.guidanceVariant).to.equal("apg_classic");
      expect(unknown.warnings.join()).to.include(
        "guidance_variant must be one of apg, apg_classic, cfg, adg",
      );
      const options = { eta: 0.5, momentum: -0.25, norm_threshold: 4 };
      for (const guidance_params of [options, JSON.stringify(options)]) {
        const read = parsed({ guidance_params });
        expect(read).to.include({ eta: 0.5, momentum: -0.25, normThreshold: 4 });
        expect(read.warnings).to.deep.equal([]);
      }
      expect(parsed({ eta: 1, guidance_params: options }).eta).to.equal(1);
      const adg = parsed({ use_adg: true, eta: 1, guidance_variant: "adg_w_norm" });
      expect(adg.warnings).to.deep.equal([
        "use_adg was ignored: replaced by guidance_variant",
        "eta was ignored: not used by guidance_variant adg_w_norm",
      ]);
    });

    it("the cross-fades of a repaint are unset or within their ranges", () => {
      const repaint = { task_type: "repaint", src_audio_path: "/a.wav", repainting_end: 3 };
      const given = parsed({
        ...repaint,
        repaint_latent_crossfade_frames: "10",
        repaint_wav_crossfade_sec: 0,
      });
      expect(given).to.include({ repaintLatentCrossfadeFrames: 10, repaintWavCrossfadeSeconds: 0 });
      expect(given.warnings).to.deep.equal([]);
      expect(refusal({ repaint_wav_crossfade_sec: -1 })).to.match(
        /^repaint_wav_crossfade_sec must be from 0 to 60/,
      );
      expect(parsed({ repaint_wav_crossfade_sec: 0.1 }).warnings.join()).to.include("only by repaint, lego");
    });

    it("track_classes may be text, a list or JSON text", () => {
      const classes = (value: unknown) => generationSchema.shape.trackClasses.parse(value);
      expect(classes("drums")).to.deep.equal(["drums"]);
      expect(classes(["drums", " bass ", ""])).to.deep.equal(["drums", "bass"]);
      expect(classes('["drums","bass"]')).to.deep.equal(["drums", "bass"]);
      expect(classes("[drums")).to.deep.equal(["[drums"]);
      expect(classes([])).to.deep.equal([]);
      for (const value of [{}, [{}], true]) {
        expect(refusal({ track_classes: value })).to.match(/^track_classes must be text/);
      }
    });

    it("an analysis needs a source, except analysis_only; of several analyses only the fastest runs", () => {
      expect(refusal({ extract_codes_only: true })).to.match(/^extract_codes_only needs a source/);
      expect(refusal({ full_analysis_only: true })).to.match(/^full_analysis_only needs a source/);
      const source = { src_audio_path: "a.wav" };
      const words = parsed({
        analysis_only: true,
        task_type: "cover",
        ...source,
        reference_audio_path: "b.wav",
      });
      expect([words.source, words.reference]).to.deep.equal([null, null]);
      expect(parsed({ extract_codes_only: true, ...source }).source?.path).to.equal("a.wav");
      const all = { ...source, extract_codes_only: true, full_analysis_only: true, analysis_only: true };
      expect(parsed(all).analysis).to.equal("codes");
      expect(parsed({ ...all, extract_codes_only: false }).analysis).to.equal("full");
    });

    it("task_type may be in any letter case", () => {
      expect(parsed({ taskType: " Text2Music " }).taskType).to.equal("text2music");
    });

    it("text2music ignores a source with a warning", () => {
      const uploads = { ...NO_UPLOADS, sourceAudio: { path: "/tmp/a.wav" } };
      const warnings = ["src_audio was ignored: task_type text2music uses no source"];
      expect(parsed({}, { uploads })).to.deep.equal({ ...parsed({}), warnings });
      expect(parsed({ src_audio_path: "relative/../x.wav" })).to.deep.equal({ ...parsed({}), warnings });
      expect(parsed({ reference_audio_path: "" })).to.deep.equal(parsed({}));
    });
  });
});
