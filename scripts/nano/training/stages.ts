/** The stages of training in their order, and what each is told. */
import { spawn } from "node:child_process";
import { createWriteStream } from "node:fs";
import { join } from "node:path";
import type { ModelSizeName } from "./model-size.js";

export const stageNames = [
  "latents",
  "encoder",
  "decoder",
  "tokenizer",
  "words",
  "dit",
  "guidance",
  "lm",
  "export",
] as const;
export type StageName = (typeof stageNames)[number];

/** Options of pretraining/options.h, without the leading dashes. */
export type StageOptions = Record<string, string | number>;

const settings: Record<ModelSizeName, Partial<Record<StageName, StageOptions>>> = {
  nano: {
    encoder: { batch: 8, "crop-seconds": 2, "learning-rate": 1e-3, dtype: "auto" },
    decoder: { batch: 3, "crop-seconds": 1.28, "learning-rate": 3e-4, dtype: "auto" },
    tokenizer: { batch: 16, "crop-seconds": 4, "learning-rate": 1.5e-3, dtype: "auto" },
    words: { batch: 48, "learning-rate": 3e-3, dtype: "auto" },
    dit: { batch: 10, "crop-seconds": 20, "learning-rate": 2e-3, dtype: "auto" },
    guidance: { batch: 10, "crop-seconds": 20, "learning-rate": 2e-3, dtype: "auto" },
    lm: { batch: 12, "learning-rate": 8e-4, dtype: "auto" },
  },
  smoke: {
    encoder: { batch: 2, "crop-seconds": 0.4 },
    decoder: { batch: 2, "crop-seconds": 0.16 },
    tokenizer: { batch: 2, "crop-seconds": 1 },
    words: { batch: 2 },
    dit: { batch: 2, "crop-seconds": 6 },
    guidance: { batch: 2, "crop-seconds": 6 },
    lm: { batch: 2 },
  },
};

export function optionsOf(size: ModelSizeName, stage: StageName): StageOptions {
  return settings[size][stage] ?? {};
}

/** Runs one stage; its figures go to the standard output and to `<work>/<stage>.log`. */
export async function runStage(program: string, stage: StageName, options: StageOptions): Promise<void> {
  const words = Object.entries(options).flatMap(([name, value]) => [`--${name}`, String(value)]);
  const child = spawn(program, [stage, ...words], { stdio: ["ignore", "pipe", "inherit"] });
  const log = createWriteStream(join(String(options.work), `${stage}.log`), { flags: "a" });
  child.stdout.pipe(log);
  child.stdout.pipe(process.stdout, { end: false });
  const status = await new Promise<number | null>((resolve, reject) => {
    child.on("error", reject);
    child.on("close", resolve);
  });
  if (status !== 0) throw new Error(`stage ${stage} ended with exit code ${status}`);
}
