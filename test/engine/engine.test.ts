import { cp, mkdir, truncate } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import type { Progress } from "../../src/engine/addon.js";
import { Checkpoints } from "../../src/engine/checkpoints.js";
import { Engine } from "../../src/engine/engine.js";
import { KEY_MODES } from "../../src/engine/metadata.js";
import type {
  EngineOptions,
  Metadata,
  Plan,
  PlanRequest,
  Rendering,
  RenderSong,
} from "../../src/engine/types.js";
import { failureOf } from "../failures.js";
import { temporaryDirectory } from "../music/tasks.js";
import { engineOptions, testDevice } from "./embedded.js";
import {
  plainPlan,
  plainRequest,
  plainSampling,
  planOne,
  renderOne,
  requestOf,
  songOf,
  withSong,
} from "./plain-song.js";

const unknown: Metadata = { bpm: null, keyScale: "", timeSignature: "", durationSeconds: null };

/** A tone in planar stereo. */
const tone = (seconds: number): Float32Array =>
  Float32Array.from({ length: 2 * 48_000 * seconds }, (_, i) => 0.3 * Math.sin(i / 40));
const secondsToSamples = (seconds: number): number => Math.round(seconds * 48_000);

describe("the engine with the built-in model", () => {
  const directory = temporaryDirectory();
  const options: EngineOptions = {
    ...engineOptions,
    checkpointsDirectory: directory,
    slotModels: ["acestep-v15-turbo", "carillon-nano", null],
    languageModel: "acestep-5Hz-lm-0.6B",
    dtype: "float32",
  };
  const messages: string[] = [];
  const engine = new Engine(options, (message) => messages.push(message));
  after(() => engine.close());

  const codeOf = async (promise: Promise<unknown>) => (await failureOf(promise)).code;

  it("uses and logs the built-in model if the default model is not installed", async () => {
    expect(engine.catalog.usesEmbeddedModel).to.equal(true);
    expect(engine.catalog.slots()).to.deep.equal([
      {
        slot: 1,
        model: null,
        isLoaded: false,
        isTurbo: false,
        isLegoSft: false,
        codebookSize: null,
        latentChannels: null,
      },
      {
        slot: 2,
        model: null,
        isLoaded: false,
        isTurbo: false,
        isLegoSft: false,
        codebookSize: null,
        latentChannels: null,
      },
    ]);
    expect(await engine.loader.loadSlot(1, null)).to.deep.equal({
      slot: 1,
      model: "carillon-nano",
      isLoaded: true,
      isTurbo: true,
      isLegoSft: false,
      codebookSize: 4096,
      latentChannels: 100,
    });
    expect(messages.join("\n")).to.match(/acestep-v15-turbo .*built-in model carillon-nano/);
    const supportedTasks = ["text2music", "cover", "repaint", "lego", "extract", "complete"];
    expect(engine.catalog.models()).to.deep.equal([
      { name: "carillon-nano", isDefault: true, isLoaded: true, isTurbo: true, supportedTasks },
    ]);
    expect(engine.catalog.loadedLanguageModel()).to.equal(null);
    expect(await engine.loader.loadLanguageModel(null)).to.equal("carillon-nano/lm");
    expect(engine.catalog.languageModels()).to.deep.equal([{ name: "carillon-nano/lm", isLoaded: true }]);
    expect(messages.join("\n")).to.not.contain("unused tensors");
  });

  it("a plan has metadata that the client did not set, and five audio codes per second", async () => {
    const progress: Progress[] = [];
    const plan = await planOne(
      engine,
      { ...plainPlan, rewriteCaption: true },
      { onProgress: (p) => progress.push(p) },
    );
    expect(plan.metadata.durationSeconds).to.equal(2);
    expect(plan.metadata.bpm).to.be.within(30, 300);
    expect(plan.metadata.keyScale.split(" ")[1]).to.be.oneOf([...KEY_MODES]);
    expect(plan.metadata.timeSignature).to.match(/^[2346]$/);
    expect(plan).to.include({ caption: null, language: null });
    expect(plan.warnings.join()).to.match(/does not write text: the caption is unchanged/);
    expect(plan.audioCodes).to.have.length(10);
    expect(new Set(progress.map(({ stage }) => stage))).to.include.members(["metadata", "codes"]);
  });

  it("makes the same plan for the same seeds, and keeps the client's metadata", async () => {
    const metadata = { bpm: 400, keyScale: "Am", timeSignature: "5/4", durationSeconds: 1 };
    const request = { ...plainPlan, metadata, sampling: { ...plainSampling, temperature: 1 } };
    const first = await planOne(engine, request, {});
    const second = await planOne(engine, request, {});
    expect(first.metadata).to.deep.equal(metadata);
    expect(first.audioCodes).to.deep.equal(second.audioCodes);
    const other = await planOne(engine, { ...request, seed: 3 }, {});
    expect(other.audioCodes).to.not.deep.equal(first.audioCodes);
  });

  it("makes the same plans in one call, in simultaneous calls and one by one", async function () {
    if (testDevice !== "cpu") this.skip();
    this.timeout(120_000);
    const requests = [1, 2, 3, 4, 5, 6, 7, 8].map((seed) => ({
      ...plainPlan,
      caption: seed % 2 === 0 ? "calm piano" : "loud drums and a long bass line",
      sampling: { ...plainSampling, temperature: 1 },
      seed,
    }));
    for (const [dtype, count] of [
      ["float32", 8],
      ["bfloat16", 3],
    ] as const) {
      const planning = new Engine({ ...options, dtype }, () => undefined);
      try {
        const some = requests.slice(0, count);
        const together = await planning.planner.planSongs(some, {});
        const atOneTime = await Promise.all(some.map((request) => planOne(planning, request, {})));
        for (const [index, request] of some.entries()) {
          const { seconds, ...alone } = await planOne(planning, request, {});
          expect(together[index], `${dtype}, song ${index}`).to.deep.include(alone);
          expect(atOneTime[index], `${dtype}, song ${index} of simultaneous calls`).to.deep.include(alone);
        }
        const keys = together.map(({ metadata }) => JSON.stringify(metadata));
        expect(new Set(keys).size).to.be.above(1);
      } finally {
        await planning.close();
      }
    }
  });

  it("plans at most batchMax songs at once", async () => {
    const limited = new Engine({ ...options, batchMax: 2 }, () => undefined);
    try {
      let prefills = 0;
      const onProgress = ({ stage, done }: Progress) => {
        if (stage === "prefill" && done === 0) prefills++;
      };
      const requests = [1, 2, 3].map((seed) => ({ ...plainPlan, fillMetadata: false, seed }));
      expect(await limited.planner.planSongs(requests, { onProgress })).to.have.length(3);
      expect(prefills).to.be.within(1, 2);
    } finally {
      await limited.close();
    }
  });

  it("renders songs in one batch, each with the same bytes as alone", async function () {
    if (testDevice !== "cpu") this.skip();
    const words = ["calm piano", "loud drums and a long bass line", "a waltz"];
    const lyrics = ["[Instrumental]", "[verse]\nla la la\n\n[chorus]\noh what a night"];
    // Tests songs with padding (below five seconds) and without. The bfloat16 song is short, to save time.
    for (const [dtype, seconds] of [
      ["float32", 5.2],
      ["bfloat16", 1],
    ] as const) {
      const songs = Array.from({ length: 4 }, (_, index) => ({
        ...songOf(seconds),
        caption: words[index % words.length] as string,
        lyrics: lyrics[index % lyrics.length] as string,
        seed: index,
      }));
      const batching = new Engine({ ...options, dtype, batchMax: 8 }, () => undefined);
      try {
        const { songs: together, batches } = await rendered(batching, songs);
        expect(batches, dtype).to.deep.equal([4]);
        for (const index of [0, 3]) {
          const alone = await renderOne(batching, { ...plainRequest, songs: songs.slice(index, index + 1) });
          expect(together[index]?.audio, `${dtype}, song ${index}`).to.deep.equal(alone.audio);
        }
      } finally {
        await batching.close();
      }
    }
  });

  it("with `deterministic`, a GPU makes the songs of a batch one by one, with the same bytes as single songs", async function () {
    if (testDevice === "cpu") this.skip();
    const alone = new Engine({ ...options, deterministic: true, batchMax: 8 }, () => undefined);
    try {
      const songs = [1, 2, 3].map((seed) => ({
        ...songOf(2),
        caption: "song ".repeat(seed),
        seed,
      }));
      const { songs: together, batches } = await rendered(alone, songs);
      expect(batches).to.deep.equal([1, 1, 1]);
      const { audio } = await renderOne(alone, { ...plainRequest, songs: songs.slice(2) });
      expect(together[2]?.audio).to.deep.equal(audio);

      const requests = songs.map(({ caption, seed }) => ({ ...plainPlan, caption, seed }));
      const plans = await Promise.all([
        alone.planner.planSongs(requests, {}),
        alone.planner.planSongs(requests, {}),
      ]);
      const { seconds, ...plan } = await planOne(alone, requests[2] as PlanRequest, {});
      for (const each of plans) expect(each[2]).to.deep.include(plan);
    } finally {
      await alone.close();
    }
  });

  it("makes batches of at most batchMax songs of equal length, and yields the songs in order", async () => {
    const lengths = [0.2, 0.2, 0.2, 0.4, 0.4, 0.2];
    const songs = lengths.map((seconds, index) => ({ ...songOf(seconds), seed: index }));
    const limited = new Engine({ ...options, batchMax: 2 }, () => undefined);
    const automatic = new Engine({ ...options, devices: ["auto"] }, () => undefined);
    try {
      const { songs: made, batches: limits } = await rendered(limited, songs);
      expect(limits).to.deep.equal([2, 1, 2, 1]);
      expect(made.map(({ samplesPerChannel }) => samplesPerChannel)).to.deep.equal(
        lengths.map(secondsToSamples),
      );
      const { devices } = engine.catalog.runtimeInfo();
      const batches = devices.length === 1 ? [1, 1, 1, 1, 1, 1] : [3, 2, 1];
      expect((await rendered(automatic, songs)).batches).to.deep.equal(batches);
    } finally {
      await limited.close();
      await automatic.close();
    }
    if (testDevice === "cpu")
      expect((await rendered(engine, songs)).batches).to.deep.equal([1, 1, 1, 1, 1, 1]);
  });

  it("the model chooses a duration that the client did not set, and plans audio codes for this duration", async () => {
    const plan = await planOne(engine, { ...plainPlan, metadata: unknown, seed: 5 }, {});
    expect(plan.metadata.durationSeconds).to.be.within(10, 600);
    expect(plan.audioCodes).to.have.length(5 * (plan.metadata.durationSeconds ?? 0));
  });

  it("keeps the client's metadata when it writes a caption from a query or rewrites caption and lyrics", async () => {
    const metadata = { bpm: 99, keyScale: "C major", timeSignature: "3", durationSeconds: 45 };
    const sample = await engine.planner.createSample(
      {
        query: "a sea shanty",
        instrumental: false,
        language: "fr",
        metadata,
        sampling: plainSampling,
        seed: 1,
      },
      {},
    );
    expect(sample).to.include({ ...metadata, language: "fr" });
    expect(sample.caption).to.not.equal("");
    const format = {
      caption: "lo-fi",
      lyrics: "[Verse]\nHello",
      language: null,
      metadata,
      sampling: plainSampling,
      seed: 1,
    };
    const formatted = await engine.planner.formatInput(format, {});
    expect(formatted).to.include(metadata);
    expect(formatted.lyrics).to.not.equal("");
    expect(await engine.planner.formatInput(format, {})).to.deep.equal(formatted);
  });

  it("fails with LM_OUTPUT if the output of unconstrained decoding is unusable", async function () {
    // It writes 3,500 tokens: more than a minute on the simulated GPU, for an error that does not depend on the device.
    if (testDevice !== "cpu") this.skip();
    const wild = { ...plainSampling, constrained: false, temperature: 1000, topP: 1 };
    const sample = {
      query: "",
      instrumental: true,
      language: null,
      metadata: unknown,
      sampling: wild,
      seed: 1,
    };
    expect(await codeOf(engine.planner.createSample(sample, {}))).to.equal("LM_OUTPUT");
    expect(await codeOf(planOne(engine, { ...plainPlan, sampling: wild }, {}))).to.equal("LM_OUTPUT");
  });

  it("renders audio codes to stereo of the planned length; equal seeds give equal songs", async () => {
    const { audioCodes } = await planOne(engine, plainPlan, {});
    const songs = [7, 8].map((seed) => ({ ...songOf(2), codes: audioCodes, seed }));
    const { songs: made } = await rendered(engine, songs);
    for (const { audio, samplesPerChannel } of made) {
      expect(samplesPerChannel).to.equal(secondsToSamples(2));
      expect(audio).to.have.length(2 * samplesPerChannel);
      expect(audio.every(Number.isFinite)).to.equal(true);
      expect(audio.some((sample) => Math.abs(sample) > 0.5)).to.equal(true);
    }
    expect(made[0]?.audio).to.not.deep.equal(made[1]?.audio);
    const again = await rendered(engine, songs);
    expect(again.songs.map(({ audio }) => audio)).to.deep.equal(made.map(({ audio }) => audio));
  });

  it("renders a song of the requested length without audio codes, with the model of slot 2", async () => {
    const progress: Progress[] = [];
    const result = await renderOne(
      engine,
      { ...requestOf(1.5), slot: 2 },
      { onProgress: (p) => progress.push(p) },
    );
    expect(result.samplesPerChannel).to.equal(secondsToSamples(1.5));
    expect(progress.map(({ stage }) => stage)).to.include.members(["denoise", "decode"]);
    expect(engine.catalog.slots()[1]?.model).to.equal("carillon-nano");
  });

  it("encodes a recording to five audio codes per second, and describes the recording", async () => {
    const audio = tone(3);
    const audioCodes = await engine.renderer.encodeCodes(1, audio, {});
    expect(audioCodes).to.have.length(15);
    expect(await engine.renderer.encodeCodes(2, audio, {})).to.deep.equal(audioCodes);
    const request = {
      audioCodes,
      metadata: { ...unknown, bpm: 88, durationSeconds: 3 },
      sampling: plainSampling,
      seed: 1,
    };
    const sheet = await engine.planner.understand(request, {});
    expect(sheet).to.include({ bpm: 88, durationSeconds: 3 });
    expect(sheet).to.include({ caption: "", lyrics: "", language: "unknown" });
    expect(sheet.warnings.join()).to.include("does not write text");
    expect(await engine.planner.understand(request, {})).to.deep.equal(sheet);
    expect(await engine.planner.understand({ ...request, seed: 2 }, {})).to.not.deep.equal(sheet);
  });

  it("edits have the length of the source, unless a repaint window extends beyond the source", async () => {
    const source = { audio: tone(1), window: null };
    for (const task of ["cover", "repaint", "lego", "extract", "complete"] as const) {
      const result = await renderOne(engine, { ...requestOf(9), task, source });
      expect(result.samplesPerChannel, task).to.equal(secondsToSamples(1));
    }
    const window = { startSeconds: -0.5, endSeconds: 1.5 };
    const longer = await renderOne(
      engine,
      { ...plainRequest, task: "repaint", source: { ...source, window } },
      {},
    );
    expect(longer.samplesPerChannel).to.equal(secondsToSamples(2));
    const beyond = { startSeconds: -50_000, endSeconds: 50_000 };
    expect(
      await codeOf(
        renderOne(engine, { ...plainRequest, task: "repaint", source: { ...source, window: beyond } }),
      ),
    ).to.equal("SONG_TOO_LONG");
    expect(await codeOf(renderOne(engine, { ...plainRequest, task: "cover" }))).to.equal("BAD_ARGUMENT");
  });

  it("offloading loads models on demand; the plan and the length of the song stay the same", async () => {
    const offloading = new Engine(
      { ...options, offload: true, offloadModel: true, offloadLanguageModel: true, flashAttention: false },
      () => {},
    );
    const stages: string[] = [];
    try {
      const plan = await planOne(offloading, plainPlan, {});
      expect(plan).to.deep.include({ audioCodes: (await planOne(engine, plainPlan, {})).audioCodes });
      const { audio } = await renderOne(offloading, plainRequest, {
        onProgress: (p) => stages.push(p.stage),
      });
      expect(audio).to.have.length((await renderOne(engine, plainRequest)).audio.length);
      expect(stages).to.include("load");
    } finally {
      await offloading.close();
    }
  });

  it("shortens a song to its audio codes, and rejects unknown codes", async () => {
    const render = (...codes: number[]) =>
      renderOne(engine, withSong(plainRequest, { codes: Int32Array.from(codes) }));
    expect((await render(1, 4095, 3)).samplesPerChannel).to.equal(secondsToSamples(3 / 5));
    for (const stray of [4096, -3]) expect(await codeOf(render(1, stray, 3))).to.equal("BAD_ARGUMENT");
  });

  it("cuts a song made from audio codes to the exact requested length", async () => {
    const request = withSong(requestOf(0.9001), { codes: Int32Array.of(1, 2, 3, 4, 5) });
    expect((await renderOne(engine, request)).samplesPerChannel).to.equal(43_205);
  });

  it("stops planning and rendering on abort, and can render afterwards", async () => {
    const stop = new AbortController();
    const cancelled = planOne(
      engine,
      { ...plainPlan, metadata: { ...unknown, durationSeconds: 600 } },
      { signal: stop.signal, onProgress: ({ stage }) => stage === "codes" && stop.abort() },
    );
    expect(await codeOf(cancelled)).to.equal("CANCELLED");
    const render = renderOne(engine, requestOf(30), { signal: AbortSignal.abort() });
    expect(await codeOf(render)).to.equal("CANCELLED");
    expect((await renderOne(engine, plainRequest)).samplesPerChannel).to.equal(secondsToSamples(1));
  });

  it("keeps the old model if the new one is damaged", async () => {
    const { path: nano } = new Checkpoints(directory).renderer("carillon-nano").model;
    await mkdir(join(directory, "damaged"));
    await cp(nano, join(directory, "damaged"), { recursive: true });
    await truncate(join(directory, "damaged", "model.safetensors"), 1000);
    expect(await codeOf(engine.loader.loadSlot(2, "damaged"))).to.equal("BAD_CHECKPOINT");
    expect(engine.catalog.slots()[1]?.model).to.equal("carillon-nano");
    expect((await renderOne(engine, { ...plainRequest, slot: 2 })).audio).to.not.be.empty;
  });

  it("loads another model into a slot", async () => {
    const { path: nano } = new Checkpoints(directory).renderer("carillon-nano").model;
    await cp(nano, join(directory, "mine"), { recursive: true });
    expect(await engine.loader.loadSlot(2, "mine")).to.deep.equal({
      slot: 2,
      model: "mine",
      isLoaded: true,
      isTurbo: true,
      isLegoSft: false,
      codebookSize: 4096,
      latentChannels: 100,
    });
    expect(
      engine.catalog
        .models()
        .filter(({ isLoaded }) => isLoaded)
        .map(({ name }) => name),
    ).to.deep.equal(["carillon-nano", "mine"]);
    expect((await renderOne(engine, { ...plainRequest, slot: 2 })).audio).to.not.be.empty;
  });

  it("replaces the language model without changing a plan in progress", async () => {
    const { path: nano } = new Checkpoints(directory).languageModel("carillon-nano/lm").model;
    await cp(nano, join(directory, "acestep-5Hz-lm-mine"), { recursive: true });
    let during: Promise<Plan> | null = null;
    const onProgress = (): void => {
      during ??= planOne(engine, plainPlan, {});
    };
    const before = await planOne(engine, plainPlan, {});
    expect(await engine.loader.loadLanguageModel("acestep-5Hz-lm-mine", { onProgress })).to.equal(
      "acestep-5Hz-lm-mine",
    );
    expect(await during).to.deep.include({ audioCodes: before.audioCodes });
    expect(await planOne(engine, plainPlan, {})).to.deep.include({ audioCodes: before.audioCodes });
  });

  it("rejects each invalid request with its own error code", async () => {
    expect(await codeOf(engine.loader.loadSlot(3, null))).to.equal("SLOT_UNAVAILABLE");
    expect(await codeOf(renderOne(engine, { ...plainRequest, slot: 4 }))).to.equal("SLOT_UNAVAILABLE");
    expect(await codeOf(engine.loader.loadSlot(1, "acestep-v15-base"))).to.equal("MODEL_NOT_FOUND");
    expect(await codeOf(engine.loader.loadLanguageModel("acestep-5Hz-lm-4B"))).to.equal("MODEL_NOT_FOUND");
    expect(await codeOf(renderOne(engine, requestOf(100_000)))).to.equal("SONG_TOO_LONG");
    const endless = { ...plainPlan, lyrics: "la ".repeat(20_000) };
    expect(await codeOf(planOne(engine, endless, {}))).to.equal("PROMPT_TOO_LONG");
  });

  it("unloads idle models, still lists their names, and reloads them on use", async () => {
    const idle = new Engine({ ...options, idleSeconds: 0.2 }, (message) => messages.push(message));
    const loaded = () =>
      [...idle.catalog.models(), ...idle.catalog.languageModels()].filter(({ isLoaded }) => isLoaded);
    await idle.loader.loadSlot(1, "mine");
    await idle.loader.loadLanguageModel(null);
    // Waits for the log lines too: the engine frees the memory first and logs later.
    const hasSaid = (name: string) =>
      messages.some((line) => line.startsWith("Unloaded idle model") && line.includes(name));
    while (loaded().length > 0 || !hasSaid("mine") || !hasSaid("carillon-nano/lm")) await sleep(20);
    expect(idle.catalog.slots()[0]).to.deep.equal({
      slot: 1,
      model: "mine",
      isLoaded: false,
      isTurbo: true,
      isLegoSft: false,
      codebookSize: 4096,
      latentChannels: 100,
    });
    expect(idle.catalog.loadedLanguageModel()).to.equal("carillon-nano/lm");
    expect((await renderOne(idle, plainRequest)).model).to.equal("mine");
    expect((await planOne(idle, plainPlan, {})).audioCodes).to.have.length(10);
    await idle.close();
  });

  it("rejects calls after it is closed", async () => {
    const other = new Engine(options, () => undefined);
    await other.close();
    expect(await codeOf(renderOne(other, plainRequest))).to.equal("CLOSED");
  });
});

/** Returns the songs in order, and the number of songs in each batch. */
async function rendered(engine: Engine, requested: readonly RenderSong[]) {
  const batches: number[] = [];
  const songs: Rendering[] = [];
  for await (const song of engine.renderer.render({ ...plainRequest, songs: requested }, (_, count) => {
    batches.push(count);
    return {};
  }))
    songs.push(song);
  return { songs, batches };
}
