import { expect } from "chai";
import type { Fields } from "../../../src/music/request/json.js";
import { DEFAULT_LANGUAGE, generationSchema } from "../../../src/music/request/schema.js";
import { namesOf } from "../../../src/parameters.js";
import { DRAWN, parse } from "./request-parsing.js";

/** Values that differ from the default, and what they are read as, per parameter. */
const SAMPLES: Record<string, { value: unknown; key: string; read?: unknown }> = {
  prompt: { value: "jazz", key: "prompt" },
  lyrics: { value: "la la", key: "lyrics" },
  thinking: { value: true, key: "thinking" },
  vocal_language: { value: "ja", key: "vocalLanguage" },
  audio_format: { value: "wav", key: "audioFormat" },
  sample_mode: { value: true, key: "sampleMode" },
  sample_query: { value: "a sad song", key: "sampleQuery" },
  use_format: { value: true, key: "useFormat" },
  model: { value: "other", key: "model" },
  bpm: { value: 90, key: "bpm" },
  key_scale: { value: "F# minor", key: "keyScale" },
  time_signature: { value: "3", key: "timeSignature" },
  get_lrc: { value: true, key: "timesLyrics" },
  audio_duration: { value: 42.5, key: "audioDurationSeconds" },
  inference_steps: { value: 12, key: "inferenceSteps" },
  guidance_scale: { value: 4.5, key: "guidanceScale" },
  use_random_seed: { value: false, key: "seeds", read: [5, DRAWN] },
  seed: { value: 9, key: "seeds", read: [9, DRAWN] },
  batch_size: { value: 3, key: "batchSize" },
  shift: { value: 1.5, key: "shift" },
  infer_method: { value: "sde", key: "inferMethod" },
  timesteps: { value: "0.9,0.4,0", key: "timesteps", read: [0.9, 0.4, 0] },
  use_adg: { value: true, key: "useAdg" },
  cfg_interval_start: { value: 0.25, key: "cfgIntervalStart" },
  cfg_interval_end: { value: 0.75, key: "cfgIntervalEnd" },
  lm_model_path: { value: "acestep-5Hz-lm-4B", key: "lmModelPath" },
  lm_backend: { value: "pt", key: "lmBackend" },
  lm_temperature: { value: 0.5, key: "lmTemperature" },
  lm_cfg_scale: { value: 3, key: "lmCfgScale" },
  lm_negative_prompt: { value: "noise", key: "lmNegativePrompt" },
  lm_top_k: { value: 40, key: "lmTopK" },
  lm_top_p: { value: 0.5, key: "lmTopP" },
  lm_repetition_penalty: { value: 1.1, key: "lmRepetitionPenalty" },
  use_cot_caption: { value: false, key: "useCotCaption" },
  use_cot_language: { value: false, key: "useCotLanguage" },
  constrained_decoding: { value: false, key: "constrainedDecoding" },
  constrained_decoding_debug: { value: true, key: "constrainedDecodingDebug" },
  allow_lm_batch: { value: false, key: "allowLmBatch" },
  instruction: { value: "Do it:", key: "instruction" },
  repainting_start: { value: 1.5, key: "repaintingStartSeconds" },
  repainting_end: { value: 9, key: "repaintingEndSeconds" },
  audio_cover_strength: { value: 0.5, key: "audioCoverStrength" },
  audio_code_string: {
    value: "1,2",
    key: "audioCodes",
    read: [
      [1, 2],
      [1, 2],
    ],
  },
  use_audio_codes: { value: true, key: "audioCodes", read: [[3], [3]] },
  task_type: { value: "cover", key: "taskType" },
  src_audio_path: { value: "a.wav", key: "sourceAudio", read: { path: "a.wav", isUpload: false } },
  reference_audio_path: { value: "/b.wav", key: "referenceAudio", read: { path: "/b.wav", isUpload: false } },
  track_name: { value: "bass", key: "trackName" },
  track_classes: { value: ["drums", "bass"], key: "trackClasses" },
  global_caption: { value: "funk", key: "globalCaption" },
  cover_noise_strength: { value: 0.25, key: "coverNoiseStrength" },
  repaint_mode: { value: "aggressive", key: "repaintMode" },
  repaint_strength: { value: 0.75, key: "repaintStrength" },
  chunk_mask_mode: { value: "auto", key: "chunkMaskMode" },
  analysis_only: { value: true, key: "analysis", read: "metadata" },
  full_analysis_only: { value: true, key: "analysis", read: "full" },
  extract_codes_only: { value: true, key: "analysis", read: "codes" },
};

/** What a parameter needs beside it to show an effect. */
const COMPANIONS: Record<string, Fields> = {
  seed: { use_random_seed: false },
  use_random_seed: { seed: 5 },
  audio_code_string: { use_audio_codes: true },
  use_audio_codes: { audio_code_string: "3" },
  task_type: { src_audio_path: "a.wav" },
  src_audio_path: { task_type: "cover" },
  full_analysis_only: { src_audio_path: "a.wav" },
  extract_codes_only: { src_audio_path: "a.wav" },
};

const parameterNames = Object.values(generationSchema.shape).map((schema) => namesOf(schema));

describe("generation requests", () => {
  it("have the interface's defaults", () => {
    expect(parse({})).to.deep.equal({
      prompt: "",
      lyrics: "",
      thinking: false,
      vocalLanguage: null,
      timesLyrics: false,
      audioFormat: "mp3",
      sampleMode: false,
      sampleQuery: "",
      useFormat: false,
      model: null,
      bpm: null,
      keyScale: "",
      timeSignature: "",
      audioDurationSeconds: null,
      audioCodes: null,
      inferenceSteps: 8,
      guidanceScale: 7,
      seeds: [DRAWN, DRAWN],
      batchSize: 2,
      shift: 3,
      inferMethod: "ode",
      timesteps: null,
      useAdg: false,
      cfgIntervalStart: 0,
      cfgIntervalEnd: 1,
      lmModelPath: null,
      lmBackend: "vllm",
      lmTemperature: 0.85,
      lmCfgScale: 2.5,
      lmNegativePrompt: "NO USER INPUT",
      lmTopK: 0,
      lmTopP: 0.9,
      lmRepetitionPenalty: 1,
      useCotCaption: null,
      useCotLanguage: true,
      constrainedDecoding: true,
      constrainedDecodingDebug: false,
      allowLmBatch: true,
      taskType: "text2music",
      instruction: null,
      sourceAudio: null,
      referenceAudio: null,
      trackName: "",
      trackClasses: [],
      globalCaption: "",
      repaintingStartSeconds: 0,
      repaintingEndSeconds: null,
      audioCoverStrength: 1,
      coverNoiseStrength: 0,
      repaintMode: "balanced",
      repaintStrength: 0.5,
      chunkMaskMode: "explicit",
      analysis: null,
      stated: { tempo: null, keyScale: "", timeSignature: "" },
      warnings: [],
    });
  });

  it("tell an absent language from the default one", () => {
    expect(DEFAULT_LANGUAGE).to.equal("en");
    expect(parse({ vocal_language: "en" }).vocalLanguage).to.equal("en");
  });

  it("survive JSON unchanged", () => {
    const request = parse({ timesteps: "1,0.5", use_audio_codes: true, audio_codes: "1,2" });
    expect(JSON.parse(JSON.stringify(request))).to.deep.equal(request);
  });

  describe("names", () => {
    it("belong to one parameter each", () => {
      const all = parameterNames.flat();
      expect(new Set(all).size).to.equal(all.length);
    });

    it("include those of the interface", () => {
      const all = parameterNames.flat();
      expect(all).to.include.members([
        ...[
          "prompt",
          "caption",
          "sample_query",
          "sampleQuery",
          "description",
          "desc",
          "use_format",
          "useFormat",
        ],
        ...[
          "format",
          "key_scale",
          "keyscale",
          "keyScale",
          "time_signature",
          "timesignature",
          "timeSignature",
        ],
        ...["audio_duration", "duration", "audioDuration", "target_duration", "audio_code_string"],
        ...["audioCodeString", "cot_caption", "cot-caption", "cot_language", "cot-language"],
        ...["constrainedDecoding", "constrained", "batchSize", "audioFormat", "useAdg", "cfgIntervalStart"],
        ...["cfgIntervalEnd", "repaintingStart", "repaintingEnd", "lmTemperature", "lmCfgScale", "lmTopK"],
        ...["lmTopP", "lmNegativePrompt", "lmRepetitionPenalty", "lmModelPath", "lmBackend"],
        ...["useCotCaption", "useCotLanguage", "model_name", "ditModel", "targetDuration", "vocalLanguage"],
      ]);
    });

    for (const [canonical, ...aliases] of parameterNames) {
      const sample = SAMPLES[canonical];
      for (const name of [canonical, ...aliases]) {
        it(`${name} sets ${canonical}, at the top level, in param_obj and in metas`, () => {
          const sources: ((field: Fields) => Fields)[] = [
            (field) => field,
            (field) => ({ param_obj: field }),
            (field) => ({ param_obj: JSON.stringify(field) }),
            ...["metas", "meta", "metadata", "user_metadata", "userMetadata"].map(
              (metas) => (field: Fields) => ({ [metas]: field }),
            ),
            (field) => ({ metas: JSON.stringify(field) }),
          ];
          for (const place of sources) {
            const { value, key, read = value } = sample as (typeof SAMPLES)[string];
            const request = parse({ ...COMPANIONS[canonical], ...place({ [name]: value }) });
            expect(request[key as keyof typeof request]).to.deep.equal(read);
          }
        });
      }
    }
  });

  describe("lookup", () => {
    it("prefers the top level, then param_obj, then the metadata", () => {
      const metas = { bpm: 120 };
      expect(parse({ bpm: 100, param_obj: { bpm: 110 }, metas }).bpm).to.equal(100);
      expect(parse({ param_obj: { bpm: 110 }, metas }).bpm).to.equal(110);
      expect(parse({ param_obj: {}, metas }).bpm).to.equal(120);
    });

    it("tries names in their order within a source, not across sources", () => {
      expect(parse({ caption: "b", prompt: "a" }).prompt).to.equal("a");
      expect(parse({ caption: "b", param_obj: { prompt: "a" } }).prompt).to.equal("b");
    });

    it("takes null and blank values as absent", () => {
      expect(parse({ prompt: "", caption: "x" }).prompt).to.equal("x");
      expect(parse({ bpm: "", metas: { bpm: 99 } }).bpm).to.equal(99);
      expect(parse({ bpm: null, param_obj: { bpm: " " }, metas: { bpm: 98 } }).bpm).to.equal(98);
      expect(
        parse({ bpm: "", audio_format: "", task_type: "", inference_steps: "", seed: "" }),
      ).to.deep.equal(parse({}));
    });

    it("draws all seeds where the list of them is empty", () => {
      for (const seed of [[], ""]) {
        expect(parse({ use_random_seed: false, seed }).seeds).to.deep.equal([DRAWN, DRAWN]);
      }
    });

    it("reads only the first metadata object that is not empty", () => {
      expect(parse({ metas: {}, metadata: { bpm: 90 }, user_metadata: { bpm: 80 } }).bpm).to.equal(90);
      expect(parse({ metas: "not json", metadata: { bpm: 90 } }).bpm).to.equal(null);
    });

    it("ignores nested text that is no JSON object", () => {
      for (const nested of ["oops", "[1]", "5", "null", '"x"', 7, true, [{ bpm: 90 }]]) {
        expect(parse({ param_obj: nested, metas: nested }).bpm).to.equal(null);
      }
    });

    it("ignores unknown fields of any shape, and names them in one warning", () => {
      const unknown = Object.fromEntries(
        Array.from({ length: 30 }, (_, i) => [`field_${i}`, { deep: [{ i }] }]),
      );
      const request = parse({ ...unknown, negative_prompt: "x", use_cot_metas: [], scheduler: {} });
      expect({ ...request, warnings: [] }).to.deep.equal(parse({}));
      expect(request.warnings).to.have.length(1);
      expect(request.warnings[0])
        .to.include('"field_0"')
        .and.match(/, and 25 more$/);
    });

    it("tells which parameter an unknown field may be a slip of", () => {
      const { warnings } = parse({ scheduler: "x", promt: "a waltz", steps: 8, audioDuratoin: 10 });
      expect(warnings).to.deep.equal([
        'unknown fields were ignored: "promt" (did you mean prompt?), "steps" (did you mean inference_steps?), ' +
          '"audioDuratoin" (did you mean audioDuration?), "scheduler"',
      ]);
      expect(parse({ ai_token: "k", metas: {}, src_audio: "", cotCaption: true }).warnings).to.deep.equal([]);
    });

    it("is not misled by inherited names", () => {
      expect(parse(JSON.parse('{"__proto__":{"bpm":90},"constructor":1,"toString":"x"}')).bpm).to.equal(null);
    });
  });
});
