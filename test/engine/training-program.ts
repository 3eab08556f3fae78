/**
 * Starts an endless training run and ends it at the first step: `training-program.ts SAMPLE OUTPUT WAY`. WAY `exit`
 * calls process.exit; WAY `return` closes the engine.
 */
import { Engine } from "../../src/engine/engine.js";
import { engineOptions, trainingRequest } from "./embedded.js";

const [sample, outputDirectory, way] = process.argv.slice(2) as [string, string, string];
const engine = new Engine(engineOptions, () => {});
const running = engine.train(
  { ...trainingRequest([sample], outputDirectory), epochs: 1_000_000 },
  {
    signal: new AbortController().signal,
    onEvent: ({ kind }) => {
      if (kind !== "step") return;
      if (way === "exit") process.exit(0);
      void engine.close();
    },
  },
);
console.log((await running).outcome);
