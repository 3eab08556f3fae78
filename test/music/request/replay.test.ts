import { expect } from "chai";
import type { GenerationRequest } from "../../../src/music/request/generation-request.js";
import { lostUploadFields, parametersOf } from "../../../src/music/request/replay.js";
import { parse } from "./request-parsing.js";

describe("parameters that repeat a task", () => {
  const bodies: [what: string, body: Record<string, unknown>][] = [
    ["nothing but defaults", {}],
    ["random seeds", { batch_size: 3 }],
    [
      "words and metadata",
      { prompt: "p", lyrics: "[Verse]\nla", bpm: 90, key: "F# minor", timesignature: "6/8" },
    ],
    ["a sample_query", { sample_query: "a sad song", vocal_language: "de" }],
    ["codes for all songs", { audio_code_string: "1,2,3", thinking: true, batch_size: 2 }],
    [
      "codes for each song",
      {
        audio_codes: [
          [1, 2],
          [3, 4],
        ],
        use_audio_codes: true,
        batch_size: 2,
      },
    ],
    [
      "timesteps and switches",
      { timesteps: "1,0.5,0", infer_method: "sde", use_cot_caption: false, lm_top_p: 0.5 },
    ],
    [
      "a source by its path",
      { task_type: "repaint", src_audio_path: "/a.mp3", repainting_start: -3, repainting_end: 4 },
    ],
    ["a timbre", { reference_audio_path: "/b.mp3", audio_format: "flac" }],
    ["stems", { task_type: "complete", src_audio_path: "/a.mp3", track_classes: ["drums", "bass"] }],
    ["codes of a recording", { extract_codes_only: true, src_audio_path: "/a.mp3" }],
    ["a description of a recording", { full_analysis_only: true, src_audio_path: "/a.mp3" }],
    ["metadata for words", { analysis_only: true, prompt: "p" }],
    ["plans of songs", { plan_only: true, prompt: "p", thinking: true, batch_size: 3, lm_seed: [1, 2, 3] }],
    ["latents of a recording", { encode_only: true, src_audio_path: "/a.mp3" }],
    ["audio of latents", { decode_only: true, src_latents_path: "/a.safetensors", peak_clip: 5 }],
    [
      "songs with texts and codes of their own",
      {
        verbatim: true,
        songs: [{ prompt: "a", bpm: 90 }, { lyrics: "la", vocal_language: "unknown" }, {}],
        audio_code_string: ["1,2", "", "3"],
        use_audio_codes: true,
        free_timesteps: true,
        timesteps: "1,0.9,0",
      },
    ],
  ];
  for (const [what, body] of bodies) {
    it(`sending the parameters of a task again gives the same request: ${what}`, () => {
      const { warnings, ...settled } = { ...parse(body), loras: [] };
      const again = parse(
        JSON.parse(JSON.stringify(parametersOf({ request: { ...settled, warnings }, state: "succeeded" }))),
      );
      expect(again.warnings).to.deep.equal([]);
      expect({ ...again, loras: [] }).to.deep.include(settled);
    });
  }

  it("the parameters of a task refer to uploads only if the uploads were kept with the songs", () => {
    const source = { kind: "sourceAudio", path: "/uploads/x.mp3", isUpload: true } as const;
    const request: GenerationRequest = { ...parse({ task_type: "cover", src_audio_path: "/a.mp3" }), source };
    const kept = { ...request, source: { ...source, path: "/uploads/b.wav", bytes: 9 } };
    for (const task of [
      { request, state: "succeeded" },
      { request: kept, state: "failed" },
    ] as const) {
      expect(parametersOf(task)).to.not.have.property("src_audio_path");
      expect(lostUploadFields(task)).to.deep.equal(["src_audio"]);
    }
    const task = { request: kept, state: "succeeded" } as const;
    expect(parametersOf(task).src_audio_path).to.equal("upload:b.wav");
    expect(lostUploadFields(task)).to.deep.equal([]);
  });
});
