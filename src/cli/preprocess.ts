/** `carillon preprocess`: converts a folder of audio and captions into training samples. */
import { basename, parse, resolve } from "node:path";
import { Command, Option } from "commander";
import { loadConfig } from "../config.js";
import { type DataSet, TAG_POSITIONS, type TagPosition } from "../music/dataset/data-set.js";
import { createOutputDirectory, PermittedRoot } from "../music/storage/permitted-root.js";
import { environmentWith, interruptSignal } from "./command.js";
import { ProgressDisplay } from "./progress-display.js";

interface PreprocessOptions {
  model?: string;
  out: string;
  tag: string;
  tagPosition: TagPosition;
  skipExisting?: boolean;
}

export const preprocessCommand = new Command("preprocess")
  .description("convert a folder of audio and captions into training samples for adapters")
  .argument("<directory>", "audio files, each with its caption in NAME.caption.txt")
  .requiredOption("--out <directory>", "output folder of the sample files")
  .option("--tag <word>", "trigger word for the trained style in a prompt", "")
  .addOption(
    new Option("--tag-position <position>", "position of the tag in captions")
      .choices(TAG_POSITIONS)
      .default("prepend"),
  )
  .option("--skip-existing", "keep existing sample files")
  .option("--model <name>", "a model listed by `carillon models`")
  .action(preprocess);

/** Prints warnings and progress on stderr and the directory on stdout. */
async function preprocess(directory: string, options: PreprocessOptions): Promise<void> {
  const { createEngine } = await import("../index.js");
  const { prepareDataSet } = await import("../music/dataset/prepare.js");
  const { out, skipExisting = false } = options;
  const config = loadConfig(environmentWith({ SVC_CONFIG_PATH: options.model }));
  const signal = interruptSignal();
  // Paths are not restricted, because the command can read only files that its user may read.
  const root = new PermittedRoot(parse(resolve(directory)).root);
  const dataSet = await readFolder(resolve(directory), options, root, signal);
  const outputDirectory = resolve(out);
  await createOutputDirectory(outputDirectory, out);
  const engine = createEngine(config, (message) => console.error(message));
  const display = new ProgressDisplay();
  const request = { dataSet, outputDirectory, skipExisting };
  try {
    const { files, failures } = await prepareDataSet(engine, root, request, {
      signal,
      onProgress: ({ done, total, filename }) => display.show({ value: done / total, stage: filename }),
    }).finally(() => display.stop());
    for (const { filename, reason } of failures) warn(`${filename}: ${reason}`);
    console.error(`${files.length} samples`);
    console.log(out);
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  } finally {
    await engine.close();
  }
}

async function readFolder(
  directory: string,
  { tag, tagPosition }: PreprocessOptions,
  root: PermittedRoot,
  signal: AbortSignal,
): Promise<DataSet> {
  const { scanFolder } = await import("../music/dataset/scan.js");
  const { unlabeledSamples } = await import("../music/dataset/prepare.js");
  const name = basename(directory);
  const { dataSet, warnings } = await scanFolder(
    { directory, name, custom_tag: tag, tag_position: tagPosition, all_instrumental: true },
    root,
    signal,
  );
  for (const warning of warnings) warn(warning);
  for (const { filename, reason } of unlabeledSamples(dataSet)) {
    warn(`${filename} ${reason}: add one in ${parse(filename).name}.caption.txt`);
  }
  return dataSet;
}

function warn(message: string): void {
  console.error(`warning: ${message}`);
}
