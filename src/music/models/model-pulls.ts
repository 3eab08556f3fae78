/** Model downloads started, polled and cancelled by clients; one at a time. */
import type { z } from "zod";
import type { Config } from "../../config.js";
import { PullError } from "../../models/errors.js";
import { Hub } from "../../models/hub.js";
import { PUBLISHED_MODELS, repositoryFolderOf, SINGING_MODEL } from "../../models/published.js";
import { type PullProgress, pullModel } from "../../models/pull.js";
import { DirectoryInUseError } from "../../system/directory-lock.js";
import type { Logger } from "../../system/log.js";
import { detailFilter, HttpError, RequestError } from "../errors.js";
import type { modelPullStatus } from "../openapi/answers.js";

type PullState = NonNullable<z.output<typeof modelPullStatus>["pull"]>;

const NOTHING_DONE: Pick<PullProgress, "doneBytes" | "totalBytes" | "file"> = {
  doneBytes: 0,
  totalBytes: 0,
  file: "",
};

export class ModelPulls {
  #pull: PullState | null = null;
  #cancelling = new AbortController();
  #finished: Promise<void> = Promise.resolve();

  constructor(
    private readonly config: Config,
    private readonly log: Logger,
  ) {}

  status(): z.output<typeof modelPullStatus> {
    return { published: PUBLISHED_MODELS, singing: SINGING_MODEL, pull: this.#pull && { ...this.#pull } };
  }

  /** @throws RequestError for an invalid model name, HttpError 409 while another download runs */
  start(model: string) {
    try {
      repositoryFolderOf(model);
    } catch (error) {
      throw error instanceof PullError ? new RequestError(error.message) : error;
    }
    const running = this.#pull?.state === "running" ? this.#pull.model : null;
    if (running !== null) {
      const what = running === model ? `${model} is already being pulled` : `${running} is being pulled`;
      throw new HttpError(409, `${what}: wait for the download, or cancel it with DELETE /v1/models/pull`);
    }
    const pull = stateOf(model, NOTHING_DONE);
    this.#pull = pull;
    this.#cancelling = new AbortController();
    this.#finished = this.#run(pull, this.#cancelling.signal);
    return this.status();
  }

  /**
   * Cancels the download. Downloaded parts are kept, so the next pull of the model resumes.
   * @throws HttpError 404 if no download runs
   */
  async cancel() {
    if (this.#pull?.state !== "running") throw new HttpError(404, "No model is being pulled");
    await this.close();
    return this.status();
  }

  /** Cancels a running download and waits for it. */
  async close(): Promise<void> {
    this.#cancelling.abort();
    await this.#finished;
  }

  async #run(pull: PullState, signal: AbortSignal): Promise<void> {
    const { checkpointsDirectory, hubUrl, hubToken } = this.config;
    try {
      const hub = new Hub({ url: hubUrl, token: hubToken, signal });
      pull.new_folders = await pullModel(pull.model, checkpointsDirectory, hub, (progress) =>
        Object.assign(pull, stateOf(pull.model, progress)),
      );
      pull.state = "completed";
    } catch (error) {
      pull.state = signal.aborted ? "cancelled" : "failed";
      if (signal.aborted) return;
      pull.error = detailFilter(this.config)(error instanceof Error ? error.message : String(error));
      const isExpected = error instanceof PullError || error instanceof DirectoryInUseError;
      this.log[isExpected ? "warn" : "error"]({ err: error, model: pull.model }, "model pull failed");
    }
  }
}

function stateOf(model: string, { doneBytes, totalBytes, file }: typeof NOTHING_DONE): PullState {
  const done = { done_bytes: doneBytes, total_bytes: totalBytes, file };
  return { model, state: "running", ...done, new_folders: [], error: null };
}
