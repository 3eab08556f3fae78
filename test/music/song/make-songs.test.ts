import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import {
  createEngine,
  loadConfig,
  type MusicEngine,
  makeSongs,
  parseGenerationRequest,
} from "../../../src/index.js";
import type { SongResult } from "../../../src/music/queue/store.js";
import type { TaskProgress } from "../../../src/music/song/progress.js";
import { failureOf } from "../../failures.js";
import { temporaryDirectory } from "../tasks.js";

/** A song of a second: codes may be shorter than the minimum of audio_duration. */
const codes = { audio_code_string: "1,2,3,4,5", use_audio_codes: true };
const planned = { audio_duration: 10 };

describe("making songs without a server", () => {
  const directory = temporaryDirectory();
  const config = loadConfig({ SVC_DEVICE: "cpu", SVC_CHECKPOINTS: join(directory, "checkpoints") });
  let engine: MusicEngine;

  before(() => {
    engine = createEngine(config);
  });

  after(() => engine.close());

  function make(inference_steps: number): Promise<SongResult> {
    const parameters = { prompt: "a song", ...codes, batch_size: 1, inference_steps };
    return makeSongs(engine, parseGenerationRequest(parameters, engine), {
      destination: () => ({ name: "song.mp3", path: join(directory, "song.mp3") }),
      maxSourceSeconds: config.sourceMaxSeconds,
      signal: new AbortController().signal,
      onProgress: () => {},
    });
  }

  it("rejects a folder that does not exist before it makes a song", async () => {
    const failure = await failureOf(
      makeSongs(engine, parseGenerationRequest({ audio_duration: 10 }, engine), {
        destination: () => ({ name: "song.mp3", path: join(directory, "missing", "song.mp3") }),
        maxSourceSeconds: config.sourceMaxSeconds,
        signal: new AbortController().signal,
        onProgress: () => {
          throw new Error("a song is made");
        },
      }),
    );
    expect(failure.message).to.match(/^the folder .*missing is not writable: ENOENT/);
  });

  it("inference steps are clamped to the limit of a turbo model that was not loaded at submission", async () => {
    const { generationInfo, warnings } = await make(50);
    expect(generationInfo).to.match(/^Steps: 20$/m);
    expect(warnings).to.deep.equal([
      "inference_steps must be from 1 to 20 for a turbo model, got 50; 20 was used",
    ]);
    expect(() => parseGenerationRequest({ inference_steps: 50 }, engine)).to.throw("from 1 to 20");
    expect((await make(20)).warnings).to.deep.equal([]);
  });

  it("makes a song without a signal and without onProgress", async () => {
    const parameters = { prompt: "a song", ...codes, batch_size: 1, inference_steps: 1 };
    const song = await makeSongs(engine, parseGenerationRequest(parameters, engine), {
      destination: () => ({ name: "song.mp3", path: join(directory, "song.mp3") }),
      maxSourceSeconds: config.sourceMaxSeconds,
    });
    expect(song.audioFiles).to.have.length(1);
  });

  it("reports progress that begins near 0, never falls, and goes on while the file is written", async () => {
    const seen: TaskProgress[] = [];
    const parameters = { prompt: "a song", ...codes, batch_size: 1, inference_steps: 2 };
    await makeSongs(engine, parseGenerationRequest(parameters, engine), {
      destination: () => ({ name: "song.mp3", path: join(directory, "song.mp3") }),
      maxSourceSeconds: config.sourceMaxSeconds,
      onProgress: (progress) => seen.push(progress),
    });
    const values = seen.map(({ value }) => value);
    expect(values).to.deep.equal(values.toSorted((a, b) => a - b));
    expect(values[0]).to.be.below(0.05);
    const saving = seen.filter(({ stage }) => stage === "Preparing audio data...");
    expect(new Set(saving.map(({ value }) => value)).size).to.be.above(2);
  });

  it("finishes a song while the next one is rendered, and is rendered before the last file is written", async () => {
    const seen: string[] = [];
    const parameters = { prompt: "a song", ...codes, batch_size: 3, inference_steps: 1 };
    const destination = (index: number) => ({ name: "song.mp3", path: join(directory, `song-${index}.mp3`) });
    const { audioFiles } = await makeSongs(engine, parseGenerationRequest(parameters, engine), {
      destination,
      maxSourceSeconds: config.sourceMaxSeconds,
      onProgress: ({ stage }) => seen.at(-1) !== stage && seen.push(stage),
      onRendered: () => seen.push(existsSync(destination(2).path) ? "late" : "rendered"),
    });
    expect(audioFiles).to.have.length(3);
    expect(seen.slice(seen.indexOf("Preparing inputs..."))).to.deep.equal([
      ...[1, 2, 3].flatMap((song) => [
        "Preparing inputs...",
        `Generating music (song ${song} of 3)...`,
        "Decoding audio...",
      ]),
      "rendered",
      "Preparing audio data...",
    ]);
  });

  it("deletes the files of all songs if one cannot be written", async () => {
    const parameters = { prompt: "a song", ...codes, batch_size: 3, inference_steps: 1 };
    const paths = [0, 1, 2].map((index) => join(directory, index === 1 ? "absent" : "", `kept-${index}.wav`));
    const failure = await failureOf(
      makeSongs(engine, parseGenerationRequest({ ...parameters, audio_format: "wav" }, engine), {
        destination: (index) => ({ name: "song.wav", path: paths[index] as string }),
        maxSourceSeconds: config.sourceMaxSeconds,
      }),
    );
    expect(failure.message).to.match(/ENOENT/);
    expect(paths.map((path) => existsSync(path))).to.deep.equal([false, false, false]);
  });

  // Parameters of songs whose language model is optional, and the stages in which onProgress throws.
  for (const [stage, parameters] of [
    ["Initializing...", { ...planned, use_format: true }],
    ["Formatting caption and lyrics...", { ...planned, use_format: true }],
    ["Phase 1: Generating CoT metadata (song 1 of 1)...", { ...planned, thinking: true }],
    ["Preparing inputs...", codes],
    ["Generating music (song 1 of 1)...", codes],
    ["Decoding audio...", codes],
    ["Preparing audio data...", codes],
  ] as const) {
    it(`rejects with an exception that onProgress throws at "${stage}", and leaves no file`, async () => {
      const wrong = new Error("no display");
      const name = `thrown-${stage.length}.wav`;
      const seen: string[] = [];
      const fields = { prompt: "a song", batch_size: 1, inference_steps: 1, ...parameters };
      const failure = await failureOf(
        makeSongs(engine, parseGenerationRequest({ ...fields, audio_format: "wav" }, engine), {
          destination: () => ({ name, path: join(directory, name) }),
          maxSourceSeconds: config.sourceMaxSeconds,
          signal: new AbortController().signal,
          onProgress: (progress) => {
            seen.push(progress.stage);
            if (progress.stage === stage) throw wrong;
          },
        }),
      );
      expect(failure, seen.join("\n")).to.equal(wrong);
      expect(existsSync(join(directory, name))).to.equal(false);
    });
  }

  it("rejects with the rejection of an asynchronous onProgress", async () => {
    const wrong = new Error("no display");
    const fields = {
      prompt: "a song",
      audio_duration: 10,
      batch_size: 1,
      inference_steps: 1,
      thinking: true,
    };
    const failure = await failureOf(
      makeSongs(engine, parseGenerationRequest(fields, engine), {
        destination: () => ({ name: "song.mp3", path: join(directory, "song.mp3") }),
        maxSourceSeconds: config.sourceMaxSeconds,
        signal: new AbortController().signal,
        onProgress: async () => {
          throw wrong;
        },
      }),
    );
    expect(failure).to.equal(wrong);
  });
});
