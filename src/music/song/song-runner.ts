/** Runs tasks in this process: loads models, makes songs, publishes their files and cleans up. */
import { rm } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import type { Config } from "../../config.js";
import type { MusicEngine, SongAdapter } from "../../engine/types.js";
import type { Logger } from "../../system/log.js";
import { findFfmpeg } from "../audio/ffmpeg.js";
import { StoreError } from "../errors.js";
import { filesOf, type SongResult, type Task } from "../queue/store.js";
import type { RunControl, TaskRunner } from "../queue/task-queue.js";
import { INITIAL_PROGRESS, retryDelayMs } from "../queue/task-run.js";
import type { TaskFiles } from "../task-files.js";
import { analyze } from "./analysis.js";
import { plansOnGpu, usesLmByDefault } from "./language-model.js";
import { makeSongs } from "./make-songs.js";
import { PlansAhead } from "./plans-ahead.js";
import { Previews } from "./preview.js";
import type { Destination, PlanSongs } from "./song-context.js";

const WAITING_FOR_STORAGE = {
  stage: "Waiting for the storage...",
  text: "Waiting for the storage (SVC_STORAGE), which is unreachable",
};

interface TaskControl extends RunControl {
  reportWaiting(): void;
}

export class SongRunner implements TaskRunner {
  /**
   * Whether the language model also plans songs that do not require a plan (SVC_INIT_LLM). The value is fixed at
   * start, so that loading a model later does not change the songs of a request.
   */
  readonly usesLmByDefault: boolean;
  readonly previews = new Previews();
  readonly #plansAhead: PlansAhead;

  constructor(
    private readonly config: Config,
    readonly engine: MusicEngine,
    private readonly files: TaskFiles,
    private readonly log: Logger,
  ) {
    const { initLanguageModel, languageModelDevice } = config;
    const runtime = engine.catalog.runtimeInfo();
    this.usesLmByDefault = usesLmByDefault(initLanguageModel, languageModelDevice, runtime);
    const isOnGpu = plansOnGpu(languageModelDevice, runtime);
    this.#plansAhead = new PlansAhead(engine.planner, this.usesLmByDefault, isOnGpu, config);
  }

  /** @throws if the model of slot 1 cannot be loaded; failures of other models are logged */
  async prepare(): Promise<void> {
    const { engine, log } = this;
    // Probe ffmpeg before models are loaded, because forking is cheap while the process is small. Do not await
    // the probe: it starts several short processes.
    void findFfmpeg().then(
      ({ program, sandbox: { description } }) =>
        log.info({ program, sandbox: description }, "ffmpeg limits in effect"),
      (err: unknown) => log.error({ err }, "ffmpeg is not usable; songs cannot be encoded"),
    );
    await engine.loader.loadSlot(1, null);
    for (const { slot } of engine.catalog.slots().filter((state) => state.slot > 1)) {
      await engine.loader.loadSlot(slot, null).catch((err: unknown) => {
        log.warn({ err, slot }, `could not load the model of slot ${slot}`);
      });
    }
    if (this.usesLmByDefault) {
      await engine.loader.loadLanguageModel(null).catch((err: unknown) => {
        log.warn({ err }, "could not load the language model; the next task that needs it tries again");
      });
    }
  }

  /** Runs a task. */
  run(task: Task, { signal, report, freePlace, waitingTasks }: RunControl): Promise<SongResult> {
    let latest = INITIAL_PROGRESS;
    const control: TaskControl = {
      signal,
      freePlace,
      waitingTasks,
      report: (progress) => {
        latest = progress;
        report(progress);
      },
      reportWaiting: () => report({ ...latest, ...WAITING_FOR_STORAGE }),
    };
    return this.#withStorage(control, () =>
      this.files.requestedAdapters.withAdapters(
        task.request.loras ?? [],
        (adapters) => this.#make(task, adapters, control),
        signal,
      ),
    );
  }

  async #make(task: Task, adapters: readonly SongAdapter[], control: TaskControl): Promise<SongResult> {
    const { signal, report, freePlace, waitingTasks } = control;
    const { songs, inputs } = this.files;
    const { storage } = songs;
    const destination: Destination = (index, kind) => {
      this.files.makeSongFolder();
      const name =
        kind === "audio"
          ? songs.nameOf(task.id, index, task.request.output.audioFormat)
          : songs.latentsNameOf(task.id, index);
      return { name, path: storage.newPath(name) };
    };
    const request = await this.#withStorage(control, () => inputs.locate(task.request, signal));
    const maxSourceSeconds = this.config.sourceMaxSeconds;
    const { usesLmByDefault } = this;
    const preview = this.previews.of(task.id);
    const planSongs: PlanSongs = (lm, requests, call) =>
      this.#plansAhead.plan(task, lm, requests, call, waitingTasks);
    const options = {
      destination,
      maxSourceSeconds,
      usesLmByDefault,
      writesTags: this.config.writesTags,
      adapters,
      signal,
      onProgress: report,
      onRendered: freePlace,
      preview,
      planSongs,
    };
    const run = request.analysis === null ? makeSongs : analyze;
    const result = await run(this.engine, request, options).finally(() => this.previews.end(task.id));
    const paths = filesOf(result).map(({ name }) => storage.newPath(name));
    try {
      for (const path of paths) await this.#withStorage(control, () => storage.publish(path, signal));
    } catch (error) {
      for (const path of paths) await rm(path, { force: true });
      throw error;
    }
    await this.files.removeStale();
    return result;
  }

  /**
   * Repeats `work` while the object store is unreachable, until the task times out. The progress of the task says
   * that it waits for the storage.
   */
  async #withStorage<T>({ signal, reportWaiting }: TaskControl, work: () => Promise<T>): Promise<T> {
    for (let attempt = 0; ; attempt++) {
      try {
        return await work();
      } catch (error) {
        if (!(error instanceof StoreError && error.code === "UNREACHABLE")) throw error;
        if (attempt === 0) this.log.error({ reason: error.message }, "storage unreachable; the task waits");
        reportWaiting();
        await sleep(retryDelayMs(attempt), undefined, { signal }).catch(() => signal.throwIfAborted());
      }
    }
  }

  close(): void {
    this.#plansAhead.close();
  }

  /** Frees the preview and the plans of an ended task, and deletes its files if it failed. */
  async cleanUp(task: Task): Promise<void> {
    this.previews.end(task.id);
    this.#plansAhead.drop(task.id);
    await this.files.cleanUp(task);
  }
}
