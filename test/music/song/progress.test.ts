import { expect } from "chai";
import type { GenerationRequest } from "../../../src/music/request/generation-request.js";
import { progressLine, SongProgress, type TaskProgress } from "../../../src/music/song/progress.js";
import { JobStages, type StageName } from "../../../src/music/song/stages.js";
import { parse } from "../request/request-parsing.js";
import { stubEngine } from "../stub-engine.js";

describe("progress of a song", () => {
  /** Seconds for each of three songs. */
  const expected = new Map<StageName, number>([
    ["plan codes", 4],
    ["render denoise", 3],
    ["render decode", 1],
    ["encode", 2],
  ]);

  function record(run: (progress: SongProgress) => void): TaskProgress[] {
    const seen: TaskProgress[] = [];
    run(new SongProgress(3, expected, (progress) => seen.push(progress)));
    return seen;
  }

  it("progress rises through all steps and stays below 1", () => {
    const seen = record((progress) => {
      progress.enter("load")({ stage: "load", done: 1, total: 2 });
      progress.enter("sample")({ stage: "metadata", done: 50, total: 100 });
      const plan = progress.enter("plan");
      plan({ stage: "prefill", done: 0, total: 0 });
      plan({ stage: "metadata", done: 10, total: 20 });
      plan({ stage: "codes", done: 25, total: 50 });
      const render = progress.enter("render");
      render({ stage: "conditions", done: 1, total: 1 });
      render({ stage: "denoise", done: 4, total: 8 });
      render({ stage: "denoise", done: 8, total: 8 });
      render({ stage: "decode", done: 1, total: 2 });
      progress.enter("encode");
    });
    const values = seen.map(({ value }) => value);
    expect(values).to.deep.equal([...values].sort((a, b) => a - b));
    expect(values.every((value) => value > 0 && value < 1)).to.equal(true);
    expect(seen.map(({ stage }) => stage)).to.include.members([
      "Phase 2: Generating audio codes (song 1 of 3)...",
      "Preparing inputs...",
      "Generating music (song 1 of 3)...",
      "Decoding audio...",
      "Preparing audio data...",
    ]);
  });

  it("gives each stage of each song its share of the expected time", () => {
    const seen = record((progress) => {
      progress.beginSongs(0, 3);
      progress.enter("plan")({ stage: "codes", done: 50, total: 50 });
      for (const song of [0, 1, 2]) {
        progress.beginSongs(song, 1);
        const render = progress.enter("render");
        render({ stage: "denoise", done: 8, total: 8 });
        render({ stage: "decode", done: 1, total: 1 });
        progress.enter("encode")({ done: 1, total: 2 });
      }
    });
    expect(seen[1]).to.include({
      value: 0.4,
      stage: "Phase 2: Generating audio codes (songs 1 to 3 of 3)...",
    });
    const valuesOf = (name: string) => {
      const last = seen.filter(({ stage }, index) => stage === name && seen[index + 1]?.stage !== name);
      return last.map(({ value }) => value);
    };
    expect(valuesOf("Decoding audio...")).to.deep.equal([0.5333, 0.7, 0.9]);
    expect(valuesOf("Preparing audio data...")).to.deep.equal([0.5667, 0.7667, 0.9667]);
  });

  it("counts songs that are finished side by side, in any order, under the stage of those that are rendered", () => {
    const seen = record((progress) => {
      progress.beginSongs(0, 3);
      progress.enter("render")({ stage: "denoise", done: 4, total: 8 });
      const [first, , third] = [0, 1, 2].map((song) => progress.finish(song));
      third?.({ done: 2, total: 2 });
      first?.({ done: 1, total: 2 });
      progress.enter("encode");
      first?.({ done: 2, total: 2 });
    });
    // Of 30 s, encoding takes 2 for each song; planning and rendering are over when only songs are finished.
    expect(seen.slice(-4).map(({ value, stage }) => [value, stage])).to.deep.equal([
      [0.6167, "Generating music (songs 1 to 3 of 3)..."],
      [0.65, "Generating music (songs 1 to 3 of 3)..."],
      [0.9, "Preparing audio data..."],
      [0.9333, "Preparing audio data..."],
    ]);
  });

  it("expects of the next song what the last one took", () => {
    const engine = stubEngine(() => 0);
    const request = parse({ prompt: "a song", audio_duration: 20, inference_steps: 4 });
    const measured = new Map<StageName, number>([["render denoise", 8]]);
    const stagesOf = (of: GenerationRequest, seconds: number) => new JobStages(engine, of, seconds, false);
    const stages = stagesOf(request, 20);
    stages.learn(measured);
    expect(stagesOf(request, 40).expected.get("render denoise")).to.equal(16);
    expect([...stages.expected.keys()]).to.deep.equal([
      "load",
      "render",
      "render denoise",
      "render decode",
      "encode",
    ]);
    const planned = { ...request, planning: { ...request.planning, thinking: true } };
    expect(stagesOf(planned, 20).expected).to.include.keys("plan", "plan codes");
  });

  it("progress does not fall when a stage repeats", () => {
    const seen = record((progress) => {
      const render = progress.enter("render");
      render({ stage: "decode", done: 2, total: 2 });
      render({ stage: "denoise", done: 1, total: 8 });
    });
    expect(seen.at(-1)?.value).to.equal(seen.at(-2)?.value);
  });

  it("writes tqdm progress lines", () => {
    const line = progressLine("DiT diffusion", 4, 8, 2.5);
    expect(line).to.equal("DiT diffusion: 50%|#####     | 4/8 [00:03<00:03, 1.60steps/s]");
    expect(progressLine("DiT diffusion", 0, 8, 0)).to.equal(
      "DiT diffusion: 0%|          | 0/8 [00:00<?, ?steps/s]",
    );
    expect(progressLine("Decoding audio", 8, 8, 100)).to.include("100%|##########| 8/8 [01:40<00:00");
  });
});
