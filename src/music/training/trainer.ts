/**
 * Adapter training, at most one run at a time in this process. A run uses its own copy of the weights, so songs made
 * meanwhile do not change. A start request is answered just before the first step, so a mistake in the request gives
 * an HTTP error instead of a failed run.
 */
import { basename } from "node:path";
import type { TrainingOptions } from "../../engine/addon.js";
import {
  type AdapterDesign,
  lokrParameters,
  loraParameters,
  pickValues,
  type TrainingParameters,
} from "../../engine/training-parameters.js";
import type { MusicEngine } from "../../engine/types.js";
import { abbreviateList, namesOf } from "../../parameters.js";
import { isDirectory } from "../../system/directory-lock.js";
import type { Logger } from "../../system/log.js";
import { discoverSamples } from "../dataset/sample-set.js";
import { HttpError, RequestError } from "../errors.js";
import { requireModel } from "../models/models.js";
import type { LokrTraining, LoraTraining } from "../request/adapter-bodies.js";
import {
  createOutputDirectory,
  noteOnRelativePath,
  type PermittedRoot,
  UnsafePathError,
} from "../storage/permitted-root.js";
import { noticeLine, TrainingRun } from "./run.js";
import { type RunPlan, trainingStatus } from "./status.js";

const MEMORY_NOTICE =
  "Training uses its own copy of the weights: songs can be made meanwhile, and the model takes twice its memory";
const FP8_NOTICE = "use_fp8 has no effect: frozen weights stay in the model's own precision";

/** Error codes of the engine for mistakes of the client. */
const CLIENT_CODES: readonly unknown[] = ["BAD_ARGUMENT", "BAD_CHECKPOINT"];

type RunRequest = TrainingParameters & RunPaths;

export class AdapterTrainer {
  /** The latest run, even if it has ended. */
  #run: TrainingRun | null = null;
  /**
   * Whether a start request is being checked or a run is in progress. Of two simultaneous start requests, only one
   * is accepted.
   */
  #isClaimed = false;
  /** Whether a stop request arrived while a start request was being checked. The run is then stopped at once. */
  #isStopRequested = false;
  #isClosed = false;

  constructor(
    private readonly engine: MusicEngine,
    private readonly root: PermittedRoot,
    private readonly log: Logger,
  ) {}

  /** Starts training a LoRA. Returns the response of POST /v1/training/start just before the first step. */
  async startLora({ useFp8, ...request }: LoraTraining) {
    const adapter: AdapterDesign = { kind: "lora", ...pickValues(loraParameters.design, request) };
    const config = { lora_rank: request.rank, lora_alpha: request.alpha };
    const answer = await this.#start(request, adapter, config, useFp8 ? [FP8_NOTICE] : []);
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
    const answer = await this.#start(request, { kind: "lokr", ...design }, config, []);
    return { message: "LoKR training started", ...answer };
  }

  /** Stops the current run, or the run that is being started. The message says whether there was one. */
  stop(): { message: string } {
    if (!this.#isClaimed) return { message: "No training in progress" };
    this.#isStopRequested = true;
    this.#run?.stop();
    return { message: "Stopping training..." };
  }

  status() {
    return trainingStatus(this.#run?.record ?? null, Date.now());
  }

  /** Rejects further start requests, and stops the run, which saves a checkpoint to resume from. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#run?.stop();
    await this.#run?.ended;
  }

  /**
   * Starts a run.
   * @param design adapter settings that the response repeats
   * @returns the response fields that LoRA and LoKr have in common
   * @throws HttpError 400 if another run is in progress or the request is invalid, 500 for server errors
   */
  async #start(request: RunRequest, adapter: AdapterDesign, design: object, notices: readonly string[]) {
    if (this.#isClaimed) throw new RequestError("Training already in progress");
    this.#isClaimed = true;
    this.#isStopRequested = false;
    const { tensorDir, outputDir, learningRate, epochs } = request;
    const config = { ...design, learning_rate: learningRate, epochs };
    let run: TrainingRun;
    try {
      run = await this.#accept(request, adapter, config, notices);
    } catch (error) {
      this.#isClaimed = false;
      throw error;
    }
    this.#run = run;
    if (this.#isStopRequested) run.stop();
    void run.ended.then(() => {
      this.#isClaimed = false;
      this.#logEnd(run);
    });
    await run.started;
    if (run.failure !== null && run.record.firstStepAtMs === null) throw refusal(run);
    return { tensor_dir: tensorDir, output_dir: outputDir, config, run_id: run.record.id };
  }

  async #accept(
    request: RunRequest,
    adapter: AdapterDesign,
    config: object,
    notices: readonly string[],
  ): Promise<TrainingRun> {
    const { conditionDropout, ...options } = pickValues(loraParameters.run, request);
    const { skipped, ...checked } = await checkStartRequest(this.engine, this.root, request);
    if (this.#isClosed) throw new HttpError(500, "The server is stopping");
    const { outputDirectory } = checked;
    const plan: RunPlan = {
      adapterType: adapter.kind,
      tensorDir: request.tensorDir,
      outputDirectory,
      config,
      epochs: options.epochs,
      gradientCheckpointing: options.gradientCheckpointing,
      notices: [MEMORY_NOTICE, ...notices, ...skippedNotice(skipped)].map(noticeLine),
    };
    const training = { adapter, ...checked, ...options, conditionDropout: conditionDropout ?? undefined };
    const run = new TrainingRun(plan, (call) => this.engine.trainer.train(training, call));
    const { id } = run.record;
    this.log.info(
      { run: id, adapter, samples: checked.samples.length, output: outputDirectory },
      "training starts",
    );
    return run;
  }

  #logEnd({ record, failure }: TrainingRun): void {
    const { id, state, step, outputPath } = record;
    if (failure !== null) this.log.error({ run: id, step, err: failure }, "training failed");
    else this.log.info({ run: id, state, step, output: outputPath }, "training ended");
  }
}

function skippedNotice(skipped: readonly string[]): string[] {
  if (skipped.length === 0) return [];
  return [`The manifest names missing files: ${abbreviateList(skipped)}`];
}

/** Error response to a start request whose run failed before its first step. */
function refusal({ failure, record }: TrainingRun): HttpError {
  const isClients = CLIENT_CODES.includes((failure as { code?: unknown }).code);
  return new HttpError(isClients ? 400 : 500, record.error ?? "", {}, { cause: failure });
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
 * Checks a start request before the run starts, so that the client gets errors at once. Resolves the paths, checks
 * every sample against the model of slot 1, and creates the output directory.
 * @throws HttpError 400 for an unusable path or sample, 500 without a model or for a disk error
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
  await engine.trainer.inspectSamples(samples).catch(refuseSamples);
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

/** A sample that does not fit the model is a mistake of the client. Other errors are server errors. */
function refuseSamples(error: unknown): never {
  const { code, message } = error as Error & { code?: unknown };
  if (code === "BAD_CHECKPOINT") throw new RequestError(message, { cause: error });
  throw error;
}
