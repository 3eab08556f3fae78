import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import type { TrainingEvent } from "../../src/engine/addon.js";
import { Engine } from "../../src/engine/engine.js";
import type { TrainingRequest } from "../../src/engine/types.js";
import { temporaryDirectory } from "../music/tasks.js";
import { sampleTensors, writeSample } from "../music/training/sample-files.js";
import { engineOptions, trainingRequest } from "./embedded.js";

const program = fileURLToPath(new URL("training-program.ts", import.meta.url));

describe("adapter training with Engine.train", () => {
  const directory = temporaryDirectory();
  const path = (...parts: string[]) => join(directory, ...parts);
  const sample = path("sample.pt");
  writeSample(sample, sampleTensors(1, 16, 6));
  const engine = new Engine(engineOptions, () => {});
  after(() => engine.close());

  it("reports every training step in order, even to a slow listener", async () => {
    const events: TrainingEvent[] = [];
    const onEvent = (event: TrainingEvent) => {
      events.push(event);
      const untilMs = performance.now() + 5;
      while (performance.now() < untilMs);
    };
    const { signal } = new AbortController();
    const result = await engine.trainer.train(trainingRequest([sample], path("told")), { signal, onEvent });
    expect(result).to.deep.equal({ outcome: "completed", path: path("told/final"), steps: 30 });
    const steps = events.flatMap((event) => (event.kind === "step" ? [event.step] : []));
    expect(steps).to.deep.equal(Array.from({ length: 30 }, (_, index) => index + 1));
    const { kind } = events.at(-1) as TrainingEvent;
    expect(kind).to.equal("epoch");
  });

  it("training that is stopped resolves with a checkpoint", async () => {
    const stop = new AbortController();
    const request = { ...trainingRequest([sample], path("stopped")), epochs: 1_000_000 };
    const result = await engine.trainer.train(request, {
      signal: stop.signal,
      onEvent: ({ kind }) => {
        if (kind === "step") stop.abort();
      },
    });
    expect(result.outcome).to.equal("stopped");
    expect(existsSync(result.path)).to.equal(true);
  });

  it("rejects an unusable request with an error code", async () => {
    const absent = trainingRequest([path("absent.pt")], path("refused"));
    const call = { signal: new AbortController().signal, onEvent: () => {} };
    const cases: [request: TrainingRequest, code: string][] = [
      [absent, "BAD_CHECKPOINT"],
      [{ ...absent, samples: [] }, "BAD_ARGUMENT"],
      [{ ...absent, samples: [sample], outputDirectory: join(sample, "below") }, "STORAGE"],
    ];
    for (const [request, code] of cases) {
      const failure = await engine.trainer.train(request, call).catch((error: unknown) => error);
      expect(failure).to.be.instanceOf(Error).with.property("code", code);
    }
  });

  for (const [way, output] of [
    ["exit", ""],
    ["return", "stopped\n"],
  ] as const) {
    it(`training ends when its process ${way === "exit" ? "calls process.exit" : "closes the engine"}`, async () => {
      const args = ["--import", "tsx", program, sample, path(`process-${way}`), way];
      const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
      const [printed, [code, signal]] = await Promise.all([text(child.stdout), once(child, "exit")]);
      expect({ code, signal, printed }).to.deep.equal({ code: 0, signal: null, printed: output });
    });
  }
});
