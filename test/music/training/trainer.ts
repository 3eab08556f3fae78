/** A server and a client for training tests. */
import { mkdirSync, readdirSync, readFileSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { TrainingStatus } from "../../../src/music/training/status.js";
import { type Client, type LiveServer, startLiveServer } from "../live-server.js";
import { temporaryDirectory } from "../tasks.js";
import { writeSampleSet } from "./sample-files.js";

const POLL_INTERVAL_MS = 50;

/** A very short run. */
export const shortRun = {
  tensor_dir: "set",
  train_epochs: 4,
  save_every_n_epochs: 2,
  gradient_accumulation: 1,
  lora_rank: 4,
  lora_alpha: 8,
  learning_rate: 0.01,
};

/** A run that ends only when it is stopped. */
export const longRun = { ...shortRun, train_epochs: 1_000_000, save_every_n_epochs: 1_000_000 };

export type Kind = "start" | "start_lokr";

/** Client of the training API; paths are relative to SVC_TRAINING_ROOT. */
export class Trainer {
  constructor(
    readonly client: Client,
    readonly root: string,
  ) {}

  /** Absolute path of a file or folder below the root. */
  path(...parts: string[]): string {
    return join(this.root, ...parts);
  }

  start(parameters: object, kind: Kind = "start") {
    return this.client.post(`/v1/training/${kind}`, parameters);
  }

  async status(): Promise<TrainingStatus> {
    return (await this.client.get("/v1/training/status")).body.data;
  }

  async stop(): Promise<string> {
    return (await this.client.post("/v1/training/stop", {})).body.data.message;
  }

  /** Polls until the status fulfils `condition`. */
  async until(condition: (status: TrainingStatus) => boolean): Promise<TrainingStatus> {
    for (;;) {
      const status = await this.status();
      if (condition(status)) return status;
      await sleep(POLL_INTERVAL_MS);
    }
  }

  /** Waits until no run is in progress, and returns the status. */
  untilEnded(): Promise<TrainingStatus> {
    return this.until((status) => !status.is_training);
  }

  /** Starts a run and waits for its end. @throws Error if its state is not `completed` */
  async complete(parameters: object, kind: Kind = "start"): Promise<TrainingStatus> {
    const { status: code, body } = await this.start(parameters, kind);
    if (code !== 200) throw new Error(`refused with ${code}: ${body.detail}`);
    const status = await this.untilEnded();
    if (status.state !== "completed") throw new Error(`${status.state}: ${status.training_log}`);
    return status;
  }

  /** Reads the weights file in a run's output directory. */
  weights(outputDir: string, folder = "final"): Buffer {
    const directory = this.path(outputDir, folder);
    const isLora = readdirSync(directory).includes("adapter");
    const file = isLora ? "adapter/adapter_model.safetensors" : "lokr_weights.safetensors";
    return readFileSync(join(directory, file));
  }

  checkpoints(outputDir: string): string[] {
    return readdirSync(this.path(outputDir, "checkpoints")).sort();
  }
}

export interface TrainingServer extends LiveServer {
  trainer: Trainer;
}

/** Starts a server whose training root contains a data set `set` of two samples. */
export async function startTrainingServer(settings: Record<string, string> = {}): Promise<TrainingServer> {
  const root = realpathSync(temporaryDirectory());
  mkdirSync(join(root, "set"));
  writeSampleSet(join(root, "set"), 2);
  const server = await startLiveServer(temporaryDirectory(), { SVC_TRAINING_ROOT: root, ...settings });
  return { ...server, trainer: new Trainer(server.client, root) };
}
