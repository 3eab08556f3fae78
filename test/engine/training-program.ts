/**
 * Starts an endless training run: `training-program.ts SAMPLE OUTPUT WAY`. At the first step it calls
 * process.exit if WAY is `exit`, or closes the engine if WAY is `return`.
 */
import { Engine } from "../../src/engine/engine.js";
import { engineOptions, trainingRequest } from "./embedded.js";

const [sample, outputDirectory, way] = process.argv.slice(2) as [string, string, string];
const engine = new Engine(engineOptions, () => {});
const running = engine.trainer.train(
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
