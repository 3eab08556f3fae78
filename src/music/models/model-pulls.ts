/** Model downloads started, polled and cancelled by clients. */
import type { z } from "zod";
import type { Config } from "../../config.js";
import { PullError } from "../../models/errors.js";
import { PUBLISHED_MODELS, repositoryFolderOf, SINGING_MODEL } from "../../models/published.js";
import { DirectoryInUseError } from "../../system/directory-lock.js";
import type { Logger } from "../../system/log.js";
import { BackgroundWork } from "../background-work.js";
import { detailFilter, HttpError, RequestError } from "../errors.js";
import type { modelPullStatus } from "../openapi/answers.js";

type PullStatus = z.output<typeof modelPullStatus>;
type PullProgress = Omit<NonNullable<PullStatus["pull"]>, "state" | "error">;

export class ModelPulls {
  readonly #work: BackgroundWork<PullProgress, void>;

  constructor(
    private readonly config: Config,
    log: Logger,
  ) {
    this.#work = new BackgroundWork("Model pull", log);
  }

  status(): PullStatus {
    const { latest } = this.#work;
    let pull: PullStatus["pull"] = null;
    if (latest !== undefined) {
      const { progress, state, failure } = latest;
      const error = state === "failed" && failure ? detailFilter(this.config)(failure.detail) : null;
      pull = { ...progress, state, error };
    }
    return { published: PUBLISHED_MODELS, singing: SINGING_MODEL, pull };
  }

  /** @throws RequestError for an invalid model name, HttpError 409 while another download runs */
  async start(model: string): Promise<PullStatus> {
    try {
      repositoryFolderOf(model);
    } catch (error) {
      throw asRequestError(error);
    }
    const { latest } = this.#work;
    if (latest?.state === "running") {
      const running = latest.progress.model;
      const what = running === model ? `${model} is already being pulled` : `${running} is being pulled`;
      throw new HttpError(409, `${what}: wait for the download, or cancel it with DELETE /v1/models/pull`);
    }
    const progress = { model, done_bytes: 0, total_bytes: 0, file: "", new_folders: [] };
    await this.#work.start(async () => ({ progress, run: (...call) => this.#pull(...call) }));
    return this.status();
  }

  /**
   * Cancels the download. Downloaded parts are kept, so the next pull of the model resumes.
   * @throws HttpError 404 if no download runs
   */
  async cancel(): Promise<PullStatus> {
    if (!this.#work.cancel()) throw new HttpError(404, "No model is being pulled");
    await this.#work.latest?.finished.catch(() => {});
    return this.status();
  }

  close(): Promise<void> {
    return this.#work.close();
  }

  async #pull(progress: PullProgress, signal: AbortSignal): Promise<void> {
    const { checkpointsDirectory, hubUrl, hubToken } = this.config;
    try {
      // The hub's library is large, and most servers never need it.
      const [{ Hub }, { pullModel }] = await Promise.all([
        import("../../models/hub.js"),
        import("../../models/pull.js"),
      ]);
      const hub = new Hub({ url: hubUrl, token: hubToken, signal });
      progress.new_folders = await pullModel(progress.model, checkpointsDirectory, hub, (now) => {
        progress.done_bytes = now.doneBytes;
        progress.total_bytes = now.totalBytes;
        progress.file = now.file;
      });
    } catch (error) {
      throw asRequestError(error);
    }
  }
}

/** Faults that the client can fix get status 400, with their message as the detail. */
function asRequestError(error: unknown): unknown {
  const isExpected = error instanceof PullError || error instanceof DirectoryInUseError;
  return isExpected ? new RequestError(error.message, { cause: error }) : error;
}
