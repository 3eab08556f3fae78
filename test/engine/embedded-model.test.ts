import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { Checkpoints, DEFAULT_MODEL } from "../../src/engine/checkpoints.js";
import { Engine } from "../../src/engine/engine.js";
import type { PlanarAudio, RenderRequest, RenderSong } from "../../src/engine/types.js";
import { engineOptions } from "./embedded.js";
import { plainPlan, plainRequest, plainSong, planOne, renderOne, withSong } from "./plain-song.js";

const folder = fileURLToPath(new URL("../../models/carillon-nano", import.meta.url));
const sampleRate = 48_000;
const seconds = 10;
const song: RenderSong = {
  ...plainSong,
  caption: "upbeat house with a driving bass and bright synth chords",
  metadata: { bpm: 124, keyScale: "A minor", timeSignature: "4", durationSeconds: seconds },
};
const request: RenderRequest = {
  ...plainRequest,
  songs: [song],
  denoise: { ...plainRequest.denoise, inferenceSteps: 8 },
  guidance: { ...plainRequest.guidance, guidanceScale: 1 },
};

/** RMS of each second of the left channel. */
function levels(audio: PlanarAudio): number[] {
  return Array.from({ length: seconds }, (_, second) => {
    const part = audio.subarray(second * sampleRate, (second + 1) * sampleRate);
    return Math.sqrt(part.reduce((sum, sample) => sum + sample * sample, 0) / part.length);
  });
}

/** Autocorrelation at lag one: near 1 in music, 0 in white noise. */
function smoothness(audio: PlanarAudio): number {
  let [product, energy] = [0, 0];
  for (let i = 1; i < audio.length / 2; i++) {
    product += (audio[i] as number) * (audio[i - 1] as number);
    energy += (audio[i] as number) ** 2;
  }
  return product / energy;
}

describe("files, songs and plans of the built-in model", () => {
  const messages: string[] = [];
  let engine: Engine;

  before(() => {
    engine = new Engine(engineOptions, (message) => messages.push(message));
  });

  after(() => engine.close());

  it("the built-in model replaces a default model that is not installed, and is at most 48 MB", () => {
    const checkpoints = new Checkpoints("absent");
    expect(checkpoints.renderer(checkpoints.configured(DEFAULT_MODEL)).model.path).to.equal(folder);
    const sizes = readdirSync(folder, { recursive: true }).map((name) => statSync(join(folder, `${name}`)));
    const bytes = sizes.reduce((sum, entry) => sum + (entry.isFile() ? entry.size : 0), 0);
    expect(bytes).to.be.at.most(48_000_000);
  });

  it("the built-in model has all parts and no unused tensors", async () => {
    await engine.loader.loadSlot(1, null);
    await engine.loader.loadLanguageModel(null);
    expect(messages.join("\n")).to.not.contain("unused tensors");
  });

  it("the built-in model makes a song of the requested duration that is audible throughout and not noise", async () => {
    const { audio, samplesPerChannel } = await renderOne(engine, request);
    expect(samplesPerChannel).to.equal(seconds * sampleRate);
    expect(Math.min(...levels(audio))).to.be.above(0.005);
    expect(smoothness(audio)).to.be.above(0.7);
  });

  it("two engines of one process make the same song, and closing one does not affect the other", async () => {
    const bytes = async (by: Engine) => Buffer.from((await renderOne(by, plainRequest)).audio.buffer);
    const second = new Engine(engineOptions, () => {});
    const [song, same] = await Promise.all([bytes(engine), bytes(second)]);
    expect(same.equals(song)).to.equal(true);
    await second.close();
    expect((await bytes(engine)).equals(song)).to.equal(true);
  });

  it("a plan keeps the client's metadata and has audio codes for the whole duration", async () => {
    const { caption, lyrics, metadata } = song;
    const wishes = { caption, lyrics, metadata, detectLanguage: false, seed: 7 };
    const plan = await planOne(engine, { ...plainPlan, ...wishes }, {});
    expect(plan.metadata).to.deep.equal(metadata);
    const codes = plan.audioCodes ?? new Int32Array();
    expect(codes).to.have.length(5 * seconds);
    const planned = await renderOne(engine, withSong(request, { codes }));
    expect(smoothness(planned.audio)).to.be.above(0.7);
  });
});
