import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import type { CallOptions } from "../../../src/engine/addon.js";
import type { LanguageModelInfo, Plan, PlanRequest } from "../../../src/engine/types.js";
import {
  createEngine,
  createMusicServer,
  loadConfig,
  type MusicEngine,
  parseGenerationRequest,
} from "../../../src/index.js";
import type { Task } from "../../../src/music/queue/store.js";
import { planRequestsOf } from "../../../src/music/song/plan-songs.js";
import { PlansAhead } from "../../../src/music/song/plans-ahead.js";
import { Client, type SongRecord, shortSong } from "../live-server.js";
import { stubEngine } from "../stub-engine.js";
import { makeTask, temporaryDirectory } from "../tasks.js";

interface Planning {
  prompts: string[];
  signal: AbortSignal | undefined;
  finish(): void;
  fail(error: Error): void;
}

describe("planning of waiting tasks while another task runs", () => {
  const lm: LanguageModelInfo = { name: "lm", writesText: false };
  let calls: Planning[];
  let plansAhead: PlansAhead;
  let engine: MusicEngine;

  beforeEach(() => {
    calls = [];
    engine = stubEngine(() => 0);
    Object.assign(engine.planner, {
      planSongs: (requests: readonly PlanRequest[], { signal }: CallOptions) =>
        new Promise<Plan[]>((resolve, reject) => {
          const plans = requests.map(({ caption }) => ({ caption }) as Plan);
          const prompts = requests.map(({ caption }) => caption);
          calls.push({ prompts, signal, finish: () => resolve(plans), fail: reject });
          signal?.addEventListener("abort", () => reject(signal.reason));
        }),
    });
    plansAhead = new PlansAhead(engine.planner, false, true, { batchMax: null, deterministic: false });
  });

  function taskOf(prompt: string, parameters: object = {}): Task {
    const body = { prompt, thinking: true, batch_size: 1, use_random_seed: false, seed: 1, ...parameters };
    return makeTask({ id: prompt, request: parseGenerationRequest(body, engine) });
  }

  function plan(task: Task, waiting: Task[] = [], signal?: AbortSignal): Promise<Plan[]> {
    const requests = planRequestsOf(task.request, lm) as PlanRequest[];
    return plansAhead.plan(task, lm, requests, { signal }, async () => waiting);
  }

  const settle = () => new Promise((resolve) => setImmediate(resolve));

  async function plannedWith(own: Task, waiting: Task[]): Promise<string[]> {
    const planning = plan(own, waiting);
    await settle();
    for (const call of calls) call.finish();
    await planning;
    return calls.flatMap(({ prompts }) => prompts);
  }

  it("plans waiting tasks while another runs, and returns their plans when they run", async () => {
    const own = taskOf("own");
    const next = taskOf("next", { batch_size: 2, seed: "1,2" });
    expect(await plannedWith(own, [next])).to.deep.equal(["own", "next", "next"]);
    expect((await plan(next)).map(({ caption }) => caption)).to.deep.equal(["next", "next"]);
    expect(calls).to.have.length(2);
  });

  for (const [what, parameters] of Object.entries({
    "with other sampling options": { lm_temperature: 0.5 },
    "with another language model": { lm_model_path: "other" },
    "with allow_lm_batch=false": { allow_lm_batch: false },
    "that take longer": { audio_duration: 40 },
    "whose words the language model writes": { sample_mode: true },
    "that write no audio codes": { thinking: false },
    "with a source": { task_type: "cover", src_audio_path: "song.wav" },
  })) {
    it(`tasks ${what} are not planned ahead`, async () => {
      const others = [taskOf("other", { audio_duration: 30, ...parameters })];
      expect(await plannedWith(taskOf("own", { audio_duration: 30 }), others)).to.deep.equal(["own"]);
    });
  }

  it("plans at most eight songs on a GPU; on a CPU at most four, and at most twice those that run", async () => {
    const waiting = [..."abcd"].map((prompt) => taskOf(prompt, { batch_size: 2, seed: "1,2" }));
    expect(await plannedWith(taskOf("own"), waiting)).to.deep.equal(["own", ..."aabbcc"]);
    for (const [seeds, planned] of [
      ["1", "b"],
      ["1,2", "bc"],
      ["1,2,3", "b"],
    ] as const) {
      calls = [];
      plansAhead = new PlansAhead(engine.planner, false, false, { batchMax: null, deterministic: false });
      const own = taskOf("a", { seed: seeds, batch_size: seeds.split(",").length });
      const others = [..."bcd"].map((prompt) => taskOf(prompt));
      expect((await plannedWith(own, others)).filter((prompt) => prompt !== "a")).to.deep.equal([...planned]);
    }
  });

  it("plans at most as many songs as the engine can plan at once", async () => {
    const waiting = [..."abcd"].map((prompt) => taskOf(prompt));
    plansAhead = new PlansAhead(engine.planner, false, true, { batchMax: 3, deterministic: false });
    expect(await plannedWith(taskOf("own"), waiting)).to.deep.equal(["own", "a", "b"]);
    calls = [];
    plansAhead = new PlansAhead(engine.planner, false, true, { batchMax: null, deterministic: true });
    expect(await plannedWith(taskOf("own"), waiting)).to.deep.equal(["own"]);
  });

  it("plans a task again if planning ahead failed, or the task has changed", async () => {
    for (const change of [{}, { seed: 2 }]) {
      calls = [];
      const own = plan(taskOf("own"), [taskOf("next")]);
      await settle();
      calls[0]?.finish();
      calls[1]?.fail(new Error("out of memory"));
      await own;
      const again = plan(taskOf("next", change));
      await settle();
      calls[2]?.finish();
      expect(await again).to.deep.equal([{ caption: "next" }]);
    }
  });

  it("stops planning a task ahead if the task has changed when it runs", async () => {
    const own = plan(taskOf("own"), [taskOf("next")]);
    await settle();
    const changed = plan(taskOf("next", { seed: 2 }));
    await settle();
    expect(calls.map(({ signal }) => signal?.aborted ?? false)).to.deep.equal([false, true, false]);
    for (const call of calls) call.finish();
    await Promise.all([own, changed]);
  });

  it("stops planning a task ahead if the task is dropped, or is aborted while it waits for its plan", async () => {
    const aborting = new AbortController();
    const own = plan(taskOf("own"), [taskOf("dropped"), taskOf("aborted")]);
    await settle();
    plansAhead.drop("dropped");
    const aborted = plan(taskOf("aborted"), [], aborting.signal).catch((error: unknown) => error);
    aborting.abort(new Error("cancelled"));
    expect(await aborted).to.include({ message: "cancelled" });
    expect(calls.map(({ signal }) => signal?.aborted ?? false)).to.deep.equal([false, true, true]);
    calls[0]?.finish();
    await own;
  });
});

describe("planning ahead in a service with one worker", () => {
  it("plans waiting tasks ahead, and makes the same songs as without planning ahead", async () => {
    const config = loadConfig({ SVC_API_PORT: "0", SVC_TMPDIR: temporaryDirectory(), SVC_DEVICE: "cpu" });
    const engine = createEngine(config);
    const planSongs = engine.planner.planSongs.bind(engine.planner);
    const gates: (() => void)[] = [];
    engine.planner.planSongs = async (requests, call) => {
      await new Promise<void>((resolve) => gates.push(resolve));
      return planSongs(requests, call);
    };
    const plannings = async (count: number) => {
      while (gates.length < count) await sleep(5);
    };
    const server = await createMusicServer({ config, engine });
    try {
      const client = new Client(server.url);
      const song = (seed: number) => ({ ...shortSong, thinking: true, use_random_seed: false, seed });
      const ids = [await client.submit(song(0))];
      await plannings(1);
      for (const seed of [1, 2]) ids.push(await client.submit(song(seed)));
      gates[0]?.();
      await plannings(3);
      for (const open of gates) open();
      const songsOf = async (id: string) => (await client.finished(id)).records as SongRecord[];
      const together = (await Promise.all(ids.map(songsOf))).flat();
      expect(gates).to.have.length(3);

      engine.planner.planSongs = planSongs;
      for (const [seed, record] of together.entries()) {
        const alone = await client.makeOne(song(seed));
        expect((await client.download(record)).equals(await client.download(alone)), `song ${seed}`).to.equal(
          true,
        );
      }
    } finally {
      await server.close();
      await engine.close();
    }
  });
});
