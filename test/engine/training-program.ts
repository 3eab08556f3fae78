/**
 * Program with an endless training run that it does not await: `training-program.ts SAMPLE OUTPUT WAY`. At the
 * first step it ends by WAY: `exit`, or `return` after closing the engine.
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
