/**
 * Adapter training. A run uses its own copy of the weights, so songs made meanwhile do not change. A start request is
 * answered just before the first step, so a mistake in the request gives an HTTP error instead of a failed run.
 */
import { basename, join } from "node:path";
import type { TrainingEvent, TrainingOptions } from "../../engine/addon.js";
import {
  type AdapterDesign,
  lokrParameters,
  loraParameters,
  pickValues,
  type TrainingParameters,
} from "../../engine/training-parameters.js";
import type { MusicEngine } from "../../engine/types.js";
import { ignoredWarning } from "../../ignored.js";
import { abbreviateList, namesOf } from "../../parameters.js";
import { isDirectory } from "../../system/directory-lock.js";
import type { Logger } from "../../system/log.js";
import { BackgroundWork, type Work } from "../background-work.js";
import { discoverSamples } from "../dataset/sample-set.js";
import { RequestError } from "../errors.js";
import { requireModel } from "../models/models.js";
import {
  type LokrTraining,
  type LoraTraining,
  parseLokrTraining,
  parseLoraTraining,
} from "../request/training-bodies.js";
import {
  createOutputDirectory,
  noteOnRelativePath,
  type PermittedRoot,
  UnsafePathError,
} from "../storage/permitted-root.js";
import { RunRecord } from "./interrupted-run.js";
import { applyEvent, newProgress, type TrainingProgress, trainingStatus } from "./status.js";

const MEMORY_NOTICE =
  "Training uses its own copy of the weights: songs can be made meanwhile, and the model takes twice its memory";

type RunRequest = TrainingParameters & RunPaths;

export class AdapterTrainer {
  readonly #work: BackgroundWork<TrainingProgress, void>;
  readonly #record: RunRecord;
  #isClosed = false;

  constructor(
    private readonly engine: MusicEngine,
    private readonly root: PermittedRoot,
    log: Logger,
  ) {
    this.#work = new BackgroundWork("Training", log);
    this.#record = new RunRecord(root, (err) =>
      log.warn({ err }, "the record of an interrupted training was damaged and is removed"),
    );
  }

  /** Starts training a LoRA. Returns the response of POST /v1/training/start just before the first step. */
  async startLora({ useFp8, warnings, ...request }: LoraTraining) {
    const adapter: AdapterDesign = { kind: "lora", ...pickValues(loraParameters.design, request) };
    const config = { lora_rank: request.rank, lora_alpha: request.alpha };
    const notices = [...warnings, ...(useFp8 ? [ignoredWarning("use_fp8")] : [])];
    const answer = await this.#start(request, adapter, config, notices);
    return { message: "Training started", ...answer, fp8_enabled: useFp8 };
  }

  /** Starts training a LoKr. Returns the response of POST /v1/training/start_lokr just before the first step. */
  async startLokr(request: LokrTraining) {
    const design = pickValues(lokrParameters.design, request);
    const designFields = Object.entries(lokrParameters.design).map(([key, type]) => [
      namesOf(type)[0],
      design[key as keyof typeof design],
    ]);
    const config = { adapter_type: "lokr", ...Object.fromEntries(designFields) };
    const notices = [...request.warnings, ...(design.useTucker ? [ignoredWarning("lokr_use_tucker")] : [])];
    const answer = await this.#start(request, { kind: "lokr", ...design }, config, notices);
    return { message: "LoKR training started", ...answer };
  }

  /** Stops the current run, or the run that is being started. The message says whether there was one. */
  stop(): { message: string } {
    return { message: this.#work.cancel() ? "Stopping training..." : "No training in progress" };
  }

  async status() {
    const { latest } = this.#work;
    return trainingStatus(latest, Date.now(), latest === undefined ? await this.#record.interrupted() : null);
  }

  /** Rejects further start requests, and stops the run, which saves a checkpoint to resume from. */
  close(): Promise<void> {
    this.#isClosed = true;
    return this.#work.close();
  }

  /**
   * Starts a run.
   * @param design adapter settings that the response repeats
   * @returns the response fields that LoRA and LoKr have in common
   * @throws HttpError 400 if another run is in progress or the request is invalid, 500 for server errors
   */
  async #start(request: RunRequest, adapter: AdapterDesign, design: object, notices: readonly string[]) {
    const { tensorDir, outputDir, learningRate, epochs } = request;
    const config = { ...design, learning_rate: learningRate, epochs };
    let onFirstStep = () => {};
    const firstStep = new Promise<void>((resolve) => {
      onFirstStep = resolve;
    });
    const run = await this.#work.start(() => this.#check(request, adapter, config, notices, onFirstStep));
    await Promise.race([firstStep, run.finished]).catch((error: unknown) => {
      if (run.state === "failed") throw error;
    });
    return { tensor_dir: tensorDir, output_dir: outputDir, config, run_id: run.id, warnings: notices };
  }

  async #check(
    request: RunRequest,
    adapter: AdapterDesign,
    config: Record<string, unknown>,
    notices: readonly string[],
    onFirstStep: () => void,
  ): Promise<Work<TrainingProgress, void>> {
    const { conditionDropout, ...options } = pickValues(loraParameters.run, request);
    const { skipped, ...checked } = await checkStartRequest(this.engine, this.root, request);
    const plan = {
      adapter_type: adapter.kind,
      tensor_dir: request.tensorDir,
      tensorboard_logdir: join(checked.outputDirectory, "logs"),
      config,
      total_epochs: options.epochs,
    };
    const progress = newProgress(plan, options.gradientCheckpointing, [
      MEMORY_NOTICE,
      ...notices,
      ...skippedNotice(skipped),
    ]);
    const training = { adapter, ...checked, ...options, conditionDropout: conditionDropout ?? undefined };
    const run = async (progress: TrainingProgress, signal: AbortSignal) => {
      const onEvent = (event: TrainingEvent) => {
        applyEvent(progress, event);
        if (event.kind === "started") onFirstStep();
      };
      await this.#record.write(bodyOf(adapter.kind, request));
      let isCompleted = false;
      try {
        const result = await this.engine.trainer.train(training, { signal, onEvent }).catch(refuseFiles);
        progress.fields.output_path = result.path;
        isCompleted = result.outcome === "completed";
        if (result.outcome === "stopped") signal.throwIfAborted();
      } finally {
        // A run that the server's stop ended can be resumed after the next start.
        if (isCompleted || !this.#isClosed) await this.#record.remove();
      }
    };
    return { progress, run };
  }
}

/** Body of a start request, without unset parameters. */
function bodyOf(kind: AdapterDesign["kind"], request: RunRequest) {
  const { shape } = kind === "lora" ? parseLoraTraining : parseLokrTraining;
  const parameters = Object.entries(shape).flatMap(([key, type]) => {
    const value = request[key as keyof RunRequest];
    return value === undefined || value === null ? [] : [[namesOf(type)[0], value]];
  });
  return { adapter_type: kind, output_dir: request.outputDir, parameters: Object.fromEntries(parameters) };
}

function skippedNotice(skipped: readonly string[]): string[] {
  if (skipped.length === 0) return [];
  return [`The manifest names missing files: ${abbreviateList(skipped)}`];
}

/** Paths of a start request, as sent by the client. */
export interface RunPaths {
  tensorDir: string;
  outputDir: string;
  resumeFrom: string | null;
}

/** Paths of a start request, resolved and checked for the engine. */
export interface CheckedPaths
  extends Pick<TrainingOptions, "dataSetName" | "samples" | "outputDirectory" | "resumeFrom"> {
  /** Files that the manifest names but that are missing. */
  skipped: string[];
}

/**
 * Checks the paths of a start request, and creates the output directory. The run itself checks the samples first.
 * @throws HttpError 400 for an unusable path, 500 without a model or for a disk error
 */
export async function checkStartRequest(
  engine: MusicEngine,
  root: PermittedRoot,
  paths: RunPaths,
): Promise<CheckedPaths> {
  requireModel(engine.catalog);
  const tensorDirectory = await resolveTensorDirectory(root, paths.tensorDir);
  const outputDirectory = await root.resolve(paths.outputDir);
  const resumeFrom = paths.resumeFrom === null ? undefined : await resolveCheckpoint(root, paths.resumeFrom);
  const { samples, skipped } = await discoverSamples(tensorDirectory, await root.resolve("."));
  if (samples.length === 0) throw new RequestError("No valid samples found in tensor directory");
  await createOutputDirectory(outputDirectory, paths.outputDir);
  return { dataSetName: basename(tensorDirectory), samples, skipped, outputDirectory, resumeFrom };
}

async function resolveTensorDirectory(root: PermittedRoot, path: string): Promise<string> {
  const directory = await root.resolve(path).catch((error: unknown) => {
    if (!(error instanceof UnsafePathError)) throw error;
    throw new RequestError(`Rejected unsafe tensor directory: ${path}`, { cause: error });
  });
  if (!(await isDirectory(directory)))
    throw new RequestError(`Tensor directory not found: ${path}${noteOnRelativePath(path)}`);
  return directory;
}

async function resolveCheckpoint(root: PermittedRoot, path: string): Promise<string> {
  const directory = await root.resolve(path);
  if (!(await isDirectory(directory)))
    throw new RequestError(`resume_from is not a directory: ${path}${noteOnRelativePath(path)}`);
  return directory;
}

/** A sample or checkpoint that does not fit the model is a mistake of the client. Other errors are server errors. */
function refuseFiles(error: unknown): never {
  const { code, message } = error as Error & { code?: unknown };
  if (code === "BAD_CHECKPOINT") throw new RequestError(message, { cause: error });
  throw error;
}
