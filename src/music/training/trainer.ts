/** Adapter training as a service: at most one run in the process. */
import { basename } from "node:path";
import { isDirectory } from "../../directory-lock.js";
import type { TrainingOptions } from "../../engine/addon.js";
import {
  type AdapterDesign,
  lokrParameters,
  loraParameters,
  type TrainingParameters,
  valuesOf,
} from "../../engine/training-parameters.js";
import type { MusicEngine } from "../../engine/types.js";
import type { Logger } from "../../log.js";
import { firstOf, namesOf } from "../../parameters.js";
import { discoverSamples } from "../dataset/sample-set.js";
import { HttpError, RequestError } from "../errors.js";
import { requireModel } from "../models.js";
import { createOutputDirectory, type PermittedRoot, UnsafePathError } from "../permitted-root.js";
import type { LokrTraining, LoraTraining } from "../request/adapter-bodies.js";
import { noticeLine, TrainingRun } from "./run.js";
import { type RunPlan, trainingStatus } from "./status.js";

const MEMORY_NOTICE =
  "Training holds weights of its own: songs are made meanwhile, and the model takes its memory twice";
const FP8_NOTICE = "use_fp8 has no effect: frozen weights stay in the model's own precision";

/** Codes of failures that a client can mend. */
const CLIENT_CODES: readonly unknown[] = ["BAD_ARGUMENT", "BAD_CHECKPOINT"];

/** What a start asks for beside the adapter itself. */
type RunRequest = TrainingParameters & RunPaths;

export class AdapterTrainer {
  /** The latest run, also after its end. */
  #run: TrainingRun | null = null;
  /** True from a start's first check to the end of its run, or to its refusal. */
  #isTaken = false;
  /** A stop that came while a start was still checked: it holds for the run that comes of it. */
  #isStopWanted = false;
  #isClosed = false;

  constructor(
    private readonly engine: MusicEngine,
    private readonly root: PermittedRoot,
    private readonly log: Logger,
  ) {}

  /** What POST /v1/training/start answers once the first step is next. */
  async startLora({ useFp8, ...request }: LoraTraining) {
    const adapter: AdapterDesign = { kind: "lora", ...valuesOf(loraParameters.design, request) };
    const config = { lora_rank: request.rank, lora_alpha: request.alpha };
    const answer = await this.#start(request, adapter, config, useFp8 ? [FP8_NOTICE] : []);
    return { message: "Training started", ...answer, fp8_enabled: useFp8 };
  }

  /** What POST /v1/training/start_lokr answers once the first step is next. */
  async startLokr(request: LokrTraining) {
    const design = valuesOf(lokrParameters.design, request);
    const told = Object.entries(lokrParameters.design).map(([key, type]) => [
      namesOf(type)[0],
      design[key as keyof typeof design],
    ]);
    const config = { adapter_type: "lokr", ...Object.fromEntries(told) };
    const answer = await this.#start(request, { kind: "lokr", ...design }, config, []);
    return { message: "LoKR training started", ...answer };
  }

  /** Asks the run under way to end, also one whose start is still checked; says whether there is one. */
  stop(): { message: string } {
    if (!this.#isTaken) return { message: "No training in progress" };
    this.#isStopWanted = true;
    this.#run?.stop();
    return { message: "Stopping training..." };
  }

  status() {
    return trainingStatus(this.#run?.record ?? null, Date.now());
  }

  /** Refuses further starts and stops the run under way, which leaves a checkpoint to resume from. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#run?.stop();
    await this.#run?.ended;
  }

  /**
   * @param design what clients learn of the adapter's design
   * @returns what both starts answer
   * @throws HttpError 400 where another run is under way or the request cannot be met, 500 where the server is at fault
   */
  async #start(request: RunRequest, adapter: AdapterDesign, design: object, notices: readonly string[]) {
    if (this.#isTaken) throw new RequestError("Training already in progress");
    this.#isTaken = true;
    this.#isStopWanted = false;
    const { tensorDir, outputDir, learningRate, epochs } = request;
    const config = { ...design, learning_rate: learningRate, epochs };
    let run: TrainingRun;
    try {
      run = await this.#accept(request, adapter, config, notices);
    } catch (error) {
      this.#isTaken = false;
      throw error;
    }
    this.#run = run;
    if (this.#isStopWanted) run.stop();
    void run.ended.then(() => {
      this.#isTaken = false;
      this.#logEnd(run);
    });
    await run.begun;
    if (run.failure !== null && run.record.firstStepAtMs === null) throw refusal(run);
    return { tensor_dir: tensorDir, output_dir: outputDir, config, run_id: run.record.id };
  }

  async #accept(
    request: RunRequest,
    adapter: AdapterDesign,
    config: object,
    notices: readonly string[],
  ): Promise<TrainingRun> {
    const { conditionDropout, ...options } = valuesOf(loraParameters.run, request);
    const { skipped, ...checked } = await checkRun(this.engine, this.root, request);
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
    const run = new TrainingRun(plan, (call) => this.engine.train(training, call));
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
  return [`The manifest names files that are not there: ${firstOf(skipped)}`];
}

/** What a run that failed before its first step means to the client that asked for it. */
function refusal({ failure, record }: TrainingRun): HttpError {
  const isClients = CLIENT_CODES.includes((failure as { code?: unknown }).code);
  return new HttpError(isClients ? 400 : 500, record.error ?? "", {}, { cause: failure });
}

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
 * Checks all that a run needs before it is accepted, so that a client hears of a mistake at once: resolves the paths,
 * checks every sample against the model of slot 1, and creates the output directory.
 * @throws HttpError 400 where a path or a sample cannot be used, 500 without a model or where the disk refuses
 */
export async function checkRun(
  engine: MusicEngine,
  root: PermittedRoot,
  paths: RunPaths,
): Promise<CheckedPaths> {
  requireModel(engine);
  const tensorDirectory = await resolveTensorDirectory(root, paths.tensorDir);
  const outputDirectory = await root.resolve(paths.outputDir);
  const resumeFrom = paths.resumeFrom === null ? undefined : await resolveCheckpoint(root, paths.resumeFrom);
  const { samples, skipped } = await discoverSamples(tensorDirectory, await root.resolve("."));
  if (samples.length === 0) throw new RequestError("No valid samples found in tensor directory");
  await engine.inspectSamples(samples).catch(refuseSamples);
  await createOutputDirectory(outputDirectory, paths.outputDir);
  return { dataSetName: basename(tensorDirectory), samples, skipped, outputDirectory, resumeFrom };
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

/** A sample that does not fit is the client's mistake, all else the server's. */
function refuseSamples(error: unknown): never {
  const { code, message } = error as Error & { code?: unknown };
  if (code === "BAD_CHECKPOINT") throw new RequestError(message, { cause: error });
  throw error;
}
