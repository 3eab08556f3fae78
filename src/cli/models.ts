/** `carillon models` lists and downloads models; `carillon cuda` manages libtorch. */
import { join } from "node:path";
import { Command } from "commander";
import { loadConfig } from "../config.js";
import { PUBLISHED_MODELS } from "../models/published.js";
import { interruptSignal } from "./command.js";
import { ProgressDisplay } from "./progress-display.js";

export const modelsCommand = new Command("models").description("list models, or download one");

modelsCommand
  .command("list", { isDefault: true })
  .description("list installed models, and public ones that are not installed")
  .action(listModels);

modelsCommand
  .command("pull")
  .description("download a public model into SVC_CHECKPOINTS, resuming an interrupted download")
  .argument("<name>", "a model listed by `carillon models`, or owner/repository on Hugging Face")
  .action(pull);

export const cudaCommand = new Command("cuda").description("manage libtorch for this machine's GPU");

cudaCommand
  .command("install")
  .description("install libtorch into the cache if it is missing (some gigabytes; works without pip)")
  .action(installCuda);

async function listModels(): Promise<void> {
  const { createEngine } = await import("../index.js");
  const engine = createEngine(loadConfig());
  for (const { name, isDefault } of engine.catalog.models())
    console.log(isDefault ? `${name} (default)` : name);
  for (const { name } of engine.catalog.languageModels()) console.log(`${name} (language model)`);
  const installed = [...engine.catalog.models(), ...engine.catalog.languageModels()].map(({ name }) => name);
  for (const name of PUBLISHED_MODELS.filter((name) => !installed.includes(name))) {
    console.log(`${name} (not installed)`);
  }
  await engine.close();
}

/** Prints progress on stderr and the new folders on stdout. */
async function pull(name: string): Promise<void> {
  const { Hub } = await import("../models/hub.js");
  const { inMegabytes, pullModel } = await import("../models/pull.js");
  const { checkpointsDirectory, hubUrl, hubToken } = loadConfig();
  const signal = interruptSignal();
  const hub = new Hub({ url: hubUrl, token: hubToken, signal });
  const display = new ProgressDisplay();
  try {
    const folders = await pullModel(name, checkpointsDirectory, hub, (progress) => {
      const { doneBytes, totalBytes, file, fileBytes } = progress;
      display.show({ value: doneBytes / totalBytes, stage: `${file} (${inMegabytes(fileBytes)})` });
    }).finally(() => display.stop());
    if (folders.length === 0) {
      console.error(`${name} is already in ${checkpointsDirectory}; remove its folder to download it again`);
    }
    for (const folder of folders) console.log(join(checkpointsDirectory, folder));
  } catch (error) {
    if (signal.aborted) console.error("the partial download is kept: run the same command again to resume");
    signal.throwIfAborted();
    throw error;
  }
}

async function installCuda(): Promise<void> {
  const { installCudaLibtorch } = await import("../libtorch/cuda-install.js");
  const display = new ProgressDisplay();
  const folder = await installCudaLibtorch(interruptSignal(), ({ doneBytes, totalBytes, wheel }) =>
    display.show({ value: doneBytes / totalBytes, stage: wheel }),
  ).finally(() => display.stop());
  console.log(folder);
}
