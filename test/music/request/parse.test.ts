import { expect } from "chai";
import { renderParametersOf } from "../../../src/engine/render-parameters.js";
import { DEFAULT_LANGUAGE, generationSchema } from "../../../src/music/request/schema.js";
import { type Fields, namesOf } from "../../../src/parameters.js";
import { parse, parsed, RANDOM_SEED } from "./request-parsing.js";
import { COMPANIONS, SAMPLES } from "./samples.js";

const parameterNames = Object.values(generationSchema.shape).map((schema) => namesOf(schema));

describe("parsing of generation requests", () => {
  it("a generation request has the defaults of the API", () => {
    expect(parse({})).to.deep.equal({
      ...{
        taskType: "text2music",
        analysis: null,
        model: null,
        loras: null,
        callbackUrl: null,
        isTemporary: false,
      },
      words: {
        prompt: "",
        lyrics: "",
        vocalLanguage: null,
        sampleMode: false,
        sampleQuery: "",
        useFormat: false,
        instruction: null,
        globalCaption: "",
      },
      facts: {
        ...{ bpm: null, keyScale: "", timeSignature: "", durationSeconds: null },
        stated: { tempo: null, keyScale: "", timeSignature: "" },
        source: null,
      },
      source: null,
      reference: null,
      repaint: { repaintingStartSeconds: 0, repaintingEndSeconds: null, repaintingWindows: [] },
      planning: {
        thinking: false,
        verbatim: false,
        languageModel: null,
        lmBackend: "vllm",
        cfgScale: 2.5,
        negativePrompt: "NO USER INPUT",
        useCotCaption: null,
        useCotLanguage: true,
      },
      sampling: {
        temperature: 0.85,
        topK: 0,
        topP: 0.9,
        minP: 0,
        repetitionPenalty: 1,
        constrained: true,
        debug: false,
        sharesBatch: true,
      },
      ...renderParametersOf({
        ...{ inferenceSteps: 8, shift: 3, inferMethod: "ode", audioCoverStrength: 1, coverNoiseStrength: 0 },
        ...{ dcwEnabled: false, dcwMode: "double", dcwScaler: 0.05, dcwHighScaler: 0.02 },
        ...{ velocityNormThreshold: 0, velocityEmaFactor: 0, latentRescale: 1, latentShift: 0 },
        ...{ guidanceScale: 7, useAdg: false, cfgIntervalStart: 0, cfgIntervalEnd: 1 },
        ...{ eta: 0, momentum: -0.75, normThreshold: 2.5 },
        ...{ repaintMode: "balanced", repaintStrength: 0.5, chunkMaskMode: "explicit", coverNofsq: false },
      }),
      output: {
        audioFormat: "mp3",
        mp3Bitrate: null,
        sampleRate: 48_000,
        normalizationDb: null,
        loudness: null,
        peakClip: null,
        fadeInSeconds: 0,
        fadeOutSeconds: null,
        ...{ timesLyrics: false, getScores: false, normalizes: true, returnLatents: false },
      },
      songs: Array(2).fill({ seed: RANDOM_SEED, lmSeed: null, codes: null, tracks: [] }),
      chosen: [],
      warnings: [],
    });
  });

  it("a generation request records a language that the client sent, even if it is the default", () => {
    expect(DEFAULT_LANGUAGE).to.equal("en");
    expect(parsed({ vocal_language: "en" }).vocalLanguage).to.equal("en");
  });

  it("a generation request is unchanged by a JSON round trip", () => {
    const request = parse({ timesteps: "1,0.5", use_audio_codes: true, audio_codes: "1,2" });
    expect(JSON.parse(JSON.stringify(request))).to.deep.equal(request);
  });

  describe("parameter names", () => {
    it("each parameter name belongs to only one parameter", () => {
      const all = parameterNames.flat();
      expect(new Set(all).size).to.equal(all.length);
    });

    it("the parameter names include all names of the API", () => {
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
            const request = parsed({ ...COMPANIONS[canonical], ...place({ [name]: value }) });
            expect(request[key as keyof typeof request]).to.deep.equal(read);
          }
        });
      }
    }
  });

  describe("order in which the objects of a request are searched for a parameter", () => {
    it("takes a parameter from the top level first, then from param_obj, then from the metadata", () => {
      const metas = { bpm: 120 };
      expect(parsed({ bpm: 100, param_obj: { bpm: 110 }, metas }).bpm).to.equal(100);
      expect(parsed({ param_obj: { bpm: 110 }, metas }).bpm).to.equal(110);
      expect(parsed({ param_obj: {}, metas }).bpm).to.equal(120);
    });

    it("looks for every name of a parameter in one object before it looks in the next object", () => {
      expect(parsed({ caption: "b", prompt: "a" }).prompt).to.equal("a");
      expect(parsed({ caption: "b", param_obj: { prompt: "a" } }).prompt).to.equal("b");
    });

    it("treats null and blank values as absent", () => {
      expect(parsed({ prompt: "", caption: "x" }).prompt).to.equal("x");
      expect(parsed({ bpm: "", metas: { bpm: 99 } }).bpm).to.equal(99);
      expect(parsed({ bpm: null, param_obj: { bpm: " " }, metas: { bpm: 98 } }).bpm).to.equal(98);
      expect(
        parsed({ bpm: "", audio_format: "", task_type: "", inference_steps: "", seed: "" }),
      ).to.deep.equal(parsed({}));
    });

    it("draws random seeds for an empty list", () => {
      for (const seed of [[], ""]) {
        expect(parsed({ use_random_seed: false, seed }).seeds).to.deep.equal([RANDOM_SEED, RANDOM_SEED]);
      }
    });

    it("reads only the first metadata object that is not empty", () => {
      expect(parsed({ metas: {}, metadata: { bpm: 90 }, user_metadata: { bpm: 80 } }).bpm).to.equal(90);
      expect(parsed({ metas: "not json", metadata: { bpm: 90 } }).bpm).to.equal(null);
    });

    it("ignores nested text that is not a JSON object", () => {
      for (const nested of ["oops", "[1]", "5", "null", '"x"', 7, true, [{ bpm: 90 }]]) {
        expect(parsed({ param_obj: nested, metas: nested }).bpm).to.equal(null);
      }
    });

    it("ignores unknown fields and names them in one warning", () => {
      const unknown = Object.fromEntries(
        Array.from({ length: 30 }, (_, i) => [`field_${i}`, { deep: [{ i }] }]),
      );
      const request = parsed({ ...unknown, negative_prompt: "x", use_cot_metas: [], scheduler: {} });
      expect({ ...request, warnings: [] }).to.deep.equal(parsed({}));
      expect(request.warnings).to.have.length(1);
      expect(request.warnings[0])
        .to.include('"field_0"')
        .and.match(/, and 25 more$/);
    });

    it("suggests the parameter whose name an unknown field resembles", () => {
      const { warnings } = parsed({ scheduler: "x", promt: "a waltz", steps: 8, audioDuratoin: 10 });
      expect(warnings).to.deep.equal([
        'unknown fields were ignored: "promt" (did you mean prompt?), "steps" (did you mean inference_steps?), ' +
          '"audioDuratoin" (did you mean audioDuration?), "scheduler"',
      ]);
      expect(
        parsed({ synthmodel: "a", tempo: 90, repaint_start: 1, "Audio-Format": "wav" }).warnings[0],
      ).to.equal(
        'unknown fields were ignored: "synthmodel" (did you mean model?), "tempo" (did you mean bpm?), ' +
          '"repaint_start" (did you mean repainting_start?), "Audio-Format" (did you mean audio_format?)',
      );
      expect(parsed({ ai_token: "k", metas: {}, src_audio: "", cotCaption: true }).warnings).to.deep.equal(
        [],
      );
    });

    it("names the song whose field is unknown or out of range", () => {
      const { warnings } = parsed(
        { songs: [{ prompt: "a" }, { prompt: "b", seed: 3, lyrcs: "la", bpm: 900 }] },
        { rangePolicy: "clamp" },
      );
      expect(warnings).to.have.length(2);
      expect(warnings[0]).to.equal(
        'songs[1]: unknown fields were ignored: "lyrcs" (did you mean lyrics?), "seed"',
      );
      expect(warnings[1]).to.match(/^songs\[1\]: bpm /);
    });

    it("ignores inherited property names", () => {
      expect(parsed(JSON.parse('{"__proto__":{"bpm":90},"constructor":1,"toString":"x"}')).bpm).to.equal(
        null,
      );
    });
  });
});
