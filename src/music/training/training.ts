/** Adapter training as a service: at most one run in the process (reference/training.md 9). */
import type { AdapterDesign } from "../../engine/addon.js";
import type { MusicEngine, TrainingRequest } from "../../engine/types.js";
import type { Logger } from "../../log.js";
import { HttpError, RequestError } from "../errors.js";
import type { PermittedRoot } from "../permitted-root.js";
import type { LokrTraining, LoraTraining } from "../request/training.js";
import { checkRun } from "./preflight.js";
import { noticeLine } from "./progress-lines.js";
import { type RunPlan, TrainingRun } from "./run.js";
import { trainingStatus } from "./status.js";

const MEMORY_NOTICE =
  "Training holds weights of its own: songs are made meanwhile, and the model takes its memory twice";
const FP8_NOTICE = "use_fp8 has no effect: frozen weights stay in the model's own precision";

/** Codes of failures that a client can mend. */
const CLIENT_CODES: readonly unknown[] = ["BAD_ARGUMENT", "BAD_CHECKPOINT"];

export class Training {
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
  async startLora(request: LoraTraining) {
    const { rank, alpha, dropout, useFp8 } = request;
    const config = {
      lora_rank: rank,
      lora_alpha: alpha,
      learning_rate: request.learningRate,
      epochs: request.epochs,
    };
    const notices = useFp8 ? [FP8_NOTICE] : [];
    const runId = await this.#start(request, { kind: "lora", rank, alpha, dropout }, config, notices);
    return {
      message: "Training started",
      tensor_dir: request.tensorDir,
      output_dir: request.outputDir,
      config,
      fp8_enabled: useFp8,
      run_id: runId,
    };
  }

  /** What POST /v1/training/start_lokr answers once the first step is next. */
  async startLokr(request: LokrTraining) {
    const { dimension, alpha, factor, decomposeBoth, useTucker, useScalar, weightDecompose } = request;
    const config = {
      adapter_type: "lokr",
      lokr_linear_dim: dimension,
      lokr_linear_alpha: alpha,
      lokr_factor: factor,
      lokr_decompose_both: decomposeBoth,
      lokr_use_tucker: useTucker,
      lokr_use_scalar: useScalar,
      lokr_weight_decompose: weightDecompose,
      learning_rate: request.learningRate,
      epochs: request.epochs,
    };
    const design: AdapterDesign = {
      kind: "lokr",
      dimension,
      alpha,
      factor,
      decomposeBoth,
      useTucker,
      useScalar,
      weightDecompose,
    };
    const runId = await this.#start(request, design, config, []);
    return {
      message: "LoKR training started",
      tensor_dir: request.tensorDir,
      output_dir: request.outputDir,
      config,
      run_id: runId,
    };
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
   * The id of the new run.
   * @throws HttpError 400 where another run is under way or the request cannot be met, 500 where the server is at fault
   */
  async #start(
    request: LoraTraining | LokrTraining,
    adapter: AdapterDesign,
    config: object,
    notices: readonly string[],
  ): Promise<string> {
    if (this.#isTaken) throw new RequestError("Training already in progress");
    this.#isTaken = true;
    this.#isStopWanted = false;
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
    return run.record.id;
  }

  async #accept(
    request: LoraTraining | LokrTraining,
    adapter: AdapterDesign,
    config: object,
    notices: readonly string[],
  ): Promise<TrainingRun> {
    const { skipped, ...checked } = await checkRun(this.engine, this.root, request);
    if (this.#isClosed) throw new HttpError(500, "The server is stopping");
    const plan: RunPlan = {
      adapterType: adapter.kind,
      tensorDir: request.tensorDir,
      outputDirectory: checked.outputDirectory,
      config,
      epochs: request.epochs,
      gradientCheckpointing: request.gradientCheckpointing,
      notices: [MEMORY_NOTICE, ...notices, ...skippedNotice(skipped)].map(noticeLine),
    };
    const options: TrainingRequest = {
      adapter,
      ...checked,
      learningRate: request.learningRate,
      epochs: request.epochs,
      batchSize: request.batchSize,
      gradientAccumulation: request.gradientAccumulation,
      saveEveryEpochs: request.saveEveryEpochs,
      shift: request.shift,
      seed: request.seed,
      gradientCheckpointing: request.gradientCheckpointing,
      timestepSampling: request.timestepSampling,
      trimCondition: request.trimCondition,
      conditionDropout: request.conditionDropout ?? undefined,
    };
    const run = new TrainingRun(plan, (call) => this.engine.train(options, call));
    this.log.info(
      { run: run.record.id, adapter, samples: checked.samples.length, output: checked.outputDirectory },
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
  const some = skipped.slice(0, 3).join(", ");
  const more = skipped.length > 3 ? `, and ${skipped.length - 3} others` : "";
  return [`The manifest names files that are not there: ${some}${more}`];
}

/** What a run that failed before its first step means to the client that asked for it. */
function refusal({ failure, record }: TrainingRun): HttpError {
  const isClients = CLIENT_CODES.includes((failure as { code?: unknown }).code);
  return new HttpError(isClients ? 400 : 500, record.error ?? "", {}, { cause: failure });
}
