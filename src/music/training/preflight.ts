/** Checks all that a run needs before it is accepted, so that a client hears of a mistake at once (training.md 9.7). */
import { stat } from "node:fs/promises";
import { basename } from "node:path";
import type { TrainingOptions } from "../../engine/addon.js";
import type { MusicEngine } from "../../engine/types.js";
import { discoverSamples } from "../dataset/sample-set.js";
import { HttpError, RequestError } from "../errors.js";
import { createOutputDirectory, type PermittedRoot, UnsafePathError } from "../permitted-root.js";

/** The paths of a start as the client sent them. */
export interface RunPaths {
  tensorDir: string;
  outputDir: string;
  resumeFrom: string | null;
}

/** The same as the engine takes them, all in reach. */
export interface CheckedPaths
  extends Pick<TrainingOptions, "dataSetName" | "samples" | "outputDirectory" | "resumeFrom"> {
  /** Entries of the data set's manifest that name no file. */
  skipped: string[];
}

/**
 * Resolves the paths, checks every sample against the model of slot 1, and creates the output directory.
 * @throws HttpError 400 where a path or a sample cannot be used, 500 without a model or where the disk refuses
 */
export async function checkRun(
  engine: MusicEngine,
  root: PermittedRoot,
  paths: RunPaths,
): Promise<CheckedPaths> {
  assertModel(engine);
  const tensorDirectory = await resolveTensorDirectory(root, paths.tensorDir);
  const outputDirectory = await root.resolve(paths.outputDir);
  const resumeFrom = paths.resumeFrom === null ? undefined : await resolveCheckpoint(root, paths.resumeFrom);
  const { samples, skipped } = await discoverSamples(tensorDirectory, await root.resolve("."));
  if (samples.length === 0) throw new RequestError("No valid samples found in tensor directory");
  await engine.inspectSamples(samples).catch(refuseSamples);
  await createOutputDirectory(outputDirectory, paths.outputDir);
  return { dataSetName: basename(tensorDirectory), samples, skipped, outputDirectory, resumeFrom };
}

function assertModel(engine: MusicEngine): void {
  if (engine.slots()[0]?.model == null) throw new HttpError(500, "Model not initialized");
}

async function resolveTensorDirectory(root: PermittedRoot, path: string): Promise<string> {
  const directory = await root.resolve(path).catch((error: unknown) => {
    if (!(error instanceof UnsafePathError)) throw error;
    throw new RequestError(`Rejected unsafe tensor directory: ${path}`, { cause: error });
  });
  if (!(await isDirectory(directory))) throw new RequestError(`Tensor directory not found: ${path}`);
  return directory;
}

async function resolveCheckpoint(root: PermittedRoot, path: string): Promise<string> {
  const directory = await root.resolve(path);
  if (!(await isDirectory(directory))) throw new RequestError(`resume_from is not a directory: ${path}`);
  return directory;
}

async function isDirectory(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
}

/** A sample that does not fit is the client's mistake, all else the server's. */
function refuseSamples(error: unknown): never {
  const { code, message } = error as Error & { code?: unknown };
  if (code === "BAD_CHECKPOINT") throw new RequestError(message, { cause: error });
  throw error;
}
