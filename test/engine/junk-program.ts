/**
 * Calls every entry of the native addon with junk in place of each argument and each property, one at a time. Prints a
 * JSON list of the calls whose error has no `code`. A crash of the addon ends this process, so the tests run it as a child.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { LanguageJob, LoadLanguageModelOptions, NativeLanguageModel } from "../../src/engine/addon.js";
import { Checkpoints, DEFAULT_MODEL } from "../../src/engine/checkpoints.js";
import { loadAddon } from "../../src/engine/native.js";
import { testDevice, trainingRequest } from "./embedded.js";
import { plainJob } from "./plain-song.js";

type Entry = (...parameters: unknown[]) => unknown;
/** An entry and arguments that it accepts. */
type Case = [name: string, entry: unknown, ...parameters: unknown[]];

const GETTER_ERROR = new Error("thrown by a getter");
const throwing = () => {
  throw GETTER_ERROR;
};
const detached = new Float32Array(2);
structuredClone(detached.buffer, { transfer: [detached.buffer] });
const hostile = new Proxy({}, { get: throwing, has: throwing, ownKeys: throwing, getPrototypeOf: throwing });

const JUNK: readonly unknown[] = [
  ...[undefined, null, true, "", "\0", "a\0b", "\ud800", "x".repeat(100_000), Symbol("junk")],
  ...[
    0,
    -1,
    0.5,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    1e300,
    2 ** 31 - 1,
    2 ** 31,
    2 ** 53,
    -(2 ** 40),
    1n,
    -1n,
    2n ** 80n,
  ],
  ...[{}, Object.create(null), [], new Array(4_294_967_295), [[]], [null], [hostile], [1, "a"], [-1n]],
  ...[() => 1, new Date(), /x/, hostile, new Proxy([], {}), Object.create(hostile)],
  ...[detached, new Float32Array(3), new Int32Array(0), Int32Array.of(-1, 2 ** 31 - 1), new Uint8Array(5)],
  ...[new Int32Array(new SharedArrayBuffer(8)), new Float64Array(2), new DataView(new ArrayBuffer(8))],
  { signal: hostile, onProgress: 1 },
];

const addon = loadAddon();
const folder = mkdtempSync(join(tmpdir(), "carillon-junk-"));
process.chdir(folder); // junk may be a relative path
const checkpoints = new Checkpoints("absent");
const { model, vae, textEncoder } = checkpoints.renderer(checkpoints.configured(DEFAULT_MODEL));
const placement = { device: testDevice, dtype: "auto", quantization: "none", offload: false } as const;
const rendererOptions = { model, vae, textEncoder, ...placement, offloadModel: false };
const renderer = await addon.loadRenderer(rendererOptions, {});

/** A vocabulary of single bytes and two end tokens. */
const languageOptions: LoadLanguageModelOptions = {
  ...placement,
  model: checkpoints.languageModel("carillon-nano/lm").model,
  maxContextTokens: 64,
  maxSongs: 2,
  vocabulary: {
    bytes: Uint8Array.from({ length: 128 }, (_, i) => i),
    offsets: Int32Array.from({ length: 131 }, (_, i) => Math.min(i, 128)),
    endTokenIds: Int32Array.of(128),
    firstAudioCodeId: 129,
    audioCodeCount: 1,
  },
};
const languageModel: NativeLanguageModel = await addon.loadLanguageModel(languageOptions, {});
const languageJob: LanguageJob = {
  promptTokenIds: Int32Array.of(1),
  negativePromptTokenIds: Int32Array.of(2),
  program: [
    { kind: "tokens", ids: Int32Array.of(3) },
    { kind: "pattern", pattern: "[ab]", choose: "greedy", maxTokens: 1 },
  ],
  ...{ seed: 1n, maxNewTokens: 2, cfgScale: 2, stage: "text" },
  ...{ temperature: 1, topK: 0, topP: 1, minP: 0, repetitionPenalty: 1, sharesBatch: false },
};
const sample = {
  ...{ textTokenIds: Int32Array.of(1), lyricTokenIds: Int32Array.of(1) },
  ...{ audio: new Float32Array(2 * 48_000), metadata: "{}" },
};
const job = {
  ...plainJob,
  ...{ samples: 9600, task: "repaint" },
  denoise: { ...plainJob.denoise, inferenceSteps: 1 },
  source: {
    audio: new Float32Array(2 * 9600).fill(0.1),
    latents: null,
    window: { startSeconds: 0, endSeconds: 0.1 },
  },
  songs: plainJob.songs.map((song) => ({
    ...song,
    prompt: { ...song.prompt, timedLyrics: { first: 0, count: 1 } },
  })),
};
const call = { signal: new AbortController().signal, onProgress: () => {}, onEvent: () => {} };
const training = {
  ...trainingRequest([join(folder, "absent.pt")], join(folder, "out")),
  ...{ model, modelName: "nano", device: testDevice, dtype: "auto", conditionDropout: 0, resumeFrom: null },
};
const lokr = { kind: "lokr", dimension: 4, alpha: 8, factor: -1 };
const switches = { decomposeBoth: false, useTucker: false, useScalar: false, weightDecompose: false };

const open: Case[] = [
  ["runtimeInfo", addon.runtimeInfo, undefined],
  ["useFlashAttention", addon.useFlashAttention, true],
  ["loadRenderer", addon.loadRenderer, { ...rendererOptions, model: { ...model, path: "/absent" } }, call],
  ["loadLanguageModel", addon.loadLanguageModel, languageOptions, call],
  ["train", addon.train, training, call],
  ["train lokr", addon.train, { ...training, adapter: { ...lokr, ...switches } }, call],
  ["render", renderer.render, job, call],
  ["render text2music", renderer.render, { ...job, task: "text2music", source: null }, call],
  ["render adapters", renderer.render, { ...job, adapters: [{ adapter: {}, scale: 1 }] }, call],
  ["encodeCodes", renderer.encodeCodes, new Float32Array(2 * 9600), call],
  ["codesOfLatents", renderer.codesOfLatents, { values: new Float32Array(200), frames: 2 }, call],
  ["encodeLatents", renderer.encodeLatents, new Float32Array(2 * 9600), call],
  ["decodeLatents", renderer.decodeLatents, { values: new Float32Array(200), frames: 2 }, call],
  ["prepareSample", renderer.prepareSample, sample, join(folder, "sample.pt"), call],
  ["loadAdapter", renderer.loadAdapter, { path: join(folder, "absent"), doraEpsilon: "float32" }, call],
  ["generate", languageModel.generate, [languageJob], call],
  ["score", languageModel.score, { promptTokenIds: Int32Array.of(1), targets: [Int32Array.of(2)] }, call],
];
const closed = open.filter(([, entry]) =>
  Object.values({ ...renderer, ...languageModel }).includes(entry as never),
);

/** `value`, and copies of it with junk in place of each of its parts. */
function* spoiled(value: unknown): Generator<unknown> {
  yield* JUNK;
  const isPlain =
    Array.isArray(value) || (value !== null && Object.getPrototypeOf(value ?? 0) === Object.prototype);
  if (!isPlain) return;
  for (const [key, part] of Object.entries(value as object)) {
    for (const junk of spoiled(part))
      yield Array.isArray(value) ? value.with(Number(key), junk) : { ...(value as object), [key]: junk };
    if (!Array.isArray(value))
      yield Object.defineProperty({ ...(value as object) }, key, { get: throwing, enumerable: true });
  }
}

const faults: string[] = [];
let calls = 0;

async function tryCall(name: string, entry: unknown, parameters: unknown[]): Promise<void> {
  calls += 1;
  try {
    await (entry as Entry)(...parameters);
  } catch (error) {
    if (error === GETTER_ERROR || typeof (error as { code?: unknown }).code === "string") return;
    faults.push(`${name}: ${error}`);
  }
}

async function tryCases(cases: readonly Case[]): Promise<void> {
  for (const [name, entry, ...parameters] of cases) {
    await tryCall(name, entry, []);
    for (const [position, parameter] of parameters.entries()) {
      for (const junk of spoiled(parameter)) await tryCall(name, entry, parameters.with(position, junk));
    }
  }
}

await tryCases(open);
const running = open.filter(([name]) => name === "generate" || name === "encodeCodes");
const late = running.map(([name, entry, ...parameters]) => tryCall(name, entry, parameters));
await Promise.all([renderer.close(), languageModel.close(), ...late, tryCases(closed)]);
await tryCases([["close", renderer.close], ["close", languageModel.close], ...closed]);
rmSync(folder, { recursive: true });
console.log(JSON.stringify({ calls, faults: [...new Set(faults)] }));
