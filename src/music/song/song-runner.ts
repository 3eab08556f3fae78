/** Runs tasks in this process: loads models, makes songs, publishes their files and cleans up. */
import { accessSync, constants, mkdirSync, rmSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Config } from "../../config.js";
import type { MusicEngine, SongAdapter } from "../../engine/types.js";
import type { Logger } from "../../system/log.js";
import { AudioFiles } from "../audio/audio-files.js";
import { AudioInputs } from "../audio/audio-inputs.js";
import { findFfmpeg } from "../audio/ffmpeg.js";
import { StoreError } from "../errors.js";
import { filesOf, type SongResult, type Task } from "../queue/store.js";
import type { RunControl, TaskRunner } from "../queue/task-queue.js";
import { INITIAL_PROGRESS, retryDelayMs } from "../queue/task-run.js";
import { AdapterStorage } from "../storage/adapter-storage.js";
import { OwnDeletionRecord } from "../storage/deletion-record.js";
import { Deletions } from "../storage/deletions.js";
import { FileStorage } from "../storage/file-storage.js";
import type { ObjectStore } from "../storage/object-store.js";
import { PermittedRoot } from "../storage/permitted-root.js";
import type { Destination } from "./finish-song.js";
import { plansOnGpu, usesLmByDefault } from "./language-model.js";
import { makeSongs } from "./make-songs.js";
import { PlansAhead } from "./plans-ahead.js";
import { Previews } from "./preview.js";
import { RequestedAdapters } from "./requested-adapters.js";
import type { PlanSongs } from "./song-context.js";

const WAITING_FOR_STORAGE = {
  stage: "Waiting for the storage...",
  text: "Waiting for the storage (SVC_STORAGE), which is unreachable",
};

interface TaskControl extends RunControl {
  reportWaiting(): void;
}

export class SongRunner implements TaskRunner {
  readonly audioFiles: AudioFiles;
  readonly inputs: AudioInputs;
  readonly adapters: AdapterStorage;
  readonly loras: RequestedAdapters;
  /** Uploaded files of unfinished tasks, and of tasks whose songs are kept. */
  readonly uploads: FileStorage;
  readonly deletions: Deletions;
  readonly previews = new Previews();
  /**
   * Whether the language model also plans songs that do not require a plan (SVC_INIT_LLM). The value is fixed at
   * start, so that loading a model later does not change the songs of a request.
   */
  readonly usesLmByDefault: boolean;
  readonly #plansAhead: PlansAhead | null;
  readonly #adapterFiles: FileStorage;

  /**
   * @param engine null: this process accepts tasks but does not run them
   * @param store object store that keeps songs and uploads; null: local folders keep them
   */
  constructor(
    private readonly config: Config,
    readonly engine: MusicEngine | null,
    private readonly log: Logger,
    private readonly store: ObjectStore | null = null,
  ) {
    const { temporaryDirectory, storage, initLanguageModel, languageModelDevice } = config;
    const root = storage?.directory ?? temporaryDirectory;
    // Delete files that the previous process did not publish. Its interrupted songs are made again.
    const staging = storage?.directory == null ? null : join(temporaryDirectory, "unpublished");
    if (staging !== null) {
      rmSync(staging, { recursive: true, force: true });
      mkdirSync(staging, { recursive: true });
    }
    const isDeleted = (name: string) => this.deletions.has(name);
    this.audioFiles = new AudioFiles(join(root, "api_audio"), store, staging, isDeleted);
    this.uploads = new FileStorage(join(root, "uploads"), store, "uploads/", null, isDeleted);
    this.#adapterFiles = new FileStorage(join(root, "adapters"), store, "adapters/");
    const record = storage === null ? null : join(temporaryDirectory, "deletions.json");
    this.deletions = new Deletions(
      new OwnDeletionRecord(record, log),
      [this.audioFiles.storage, this.uploads, this.#adapterFiles],
      log,
    );
    this.adapters = new AdapterStorage(this.#adapterFiles);
    const permittedRoot = new PermittedRoot(config.trainingRoot);
    const isShared = config.redisUrl !== null;
    this.loras = new RequestedAdapters(permittedRoot, config.isLocal, this.adapters, isShared);
    this.inputs = new AudioInputs({
      roots: config.audioRoots,
      songs: this.audioFiles.storage,
      uploads: this.uploads,
      maxSeconds: config.sourceMaxSeconds,
      discard: (names) => this.deletions.discard(names),
    });
    const runtime = engine?.catalog.runtimeInfo();
    this.usesLmByDefault =
      runtime !== undefined && usesLmByDefault(initLanguageModel, languageModelDevice, runtime);
    const isOnGpu = runtime !== undefined && plansOnGpu(languageModelDevice, runtime);
    this.#plansAhead =
      engine === null ? null : new PlansAhead(engine.planner, this.usesLmByDefault, isOnGpu, config);
  }

  /** @throws if the model of slot 1 cannot be loaded; failures of other models are logged */
  async prepare(): Promise<void> {
    const { engine, log } = this;
    if (engine === null) return;
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
  run(task: Task, { signal, report, waitingTasks }: RunControl): Promise<SongResult> {
    let latest = INITIAL_PROGRESS;
    const control: TaskControl = {
      signal,
      waitingTasks,
      report: (progress) => {
        latest = progress;
        report(progress);
      },
      reportWaiting: () => report({ ...latest, ...WAITING_FOR_STORAGE }),
    };
    return this.#withStorage(control, () =>
      this.loras.withAdapters(
        task.request.loras ?? [],
        (adapters) => this.#make(task, adapters, control),
        signal,
      ),
    );
  }

  async #make(task: Task, adapters: readonly SongAdapter[], control: TaskControl): Promise<SongResult> {
    const { signal, report, waitingTasks } = control;
    const { engine } = this;
    const plansAhead = this.#plansAhead;
    if (engine === null || plansAhead === null)
      throw new Error("This process has no engine and runs no tasks");
    const { storage } = this.audioFiles;
    const destination: Destination = (index, kind) => {
      this.makeSongFolder();
      const name =
        kind === "audio"
          ? this.audioFiles.nameOf(task.id, index, task.request.output.audioFormat)
          : this.audioFiles.latentsNameOf(task.id, index);
      return { name, path: storage.newPath(name) };
    };
    const request = await this.#withStorage(control, () => this.inputs.locate(task.request, signal));
    const maxSourceSeconds = this.config.sourceMaxSeconds;
    const { usesLmByDefault } = this;
    const preview = this.previews.of(task.id);
    const planSongs: PlanSongs = (lm, requests, call) =>
      plansAhead.plan(task, lm, requests, call, waitingTasks);
    const options = {
      destination,
      maxSourceSeconds,
      usesLmByDefault,
      writesTags: this.config.writesTags,
      adapters,
      signal,
      onProgress: report,
      preview,
      planSongs,
    };
    const result = await makeSongs(engine, request, options).finally(() => this.previews.end(task.id));
    const paths = filesOf(result.audioFiles).map(({ name }) => storage.newPath(name));
    try {
      for (const path of paths) await this.#withStorage(control, () => storage.publish(path, signal));
    } catch (error) {
      for (const path of paths) await rm(path, { force: true });
      throw error;
    }
    await this.removeStaleFiles();
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

  /**
   * Makes the local folder of new songs again if it was deleted, so that no song is made in vain.
   * @throws StoreError if it cannot be written
   */
  makeSongFolder(): void {
    const folder = this.audioFiles.storage.newPath("");
    try {
      mkdirSync(folder, { recursive: true });
      accessSync(folder, constants.W_OK);
    } catch (cause) {
      const { message } = cause as Error;
      throw new StoreError("WRITE_FAILED", `the folder of songs is not writable: ${message}`, { cause });
    }
  }

  /** Deletes unfinished files of killed processes, and old local copies of files in the object store. */
  async removeStaleFiles(): Promise<void> {
    await this.audioFiles.removeAbandoned();
    await this.audioFiles.storage.removeUnusedCopies();
    await this.uploads.removeUnusedCopies();
    await this.#adapterFiles.removeUnusedCopies();
  }

  close(): void {
    this.#plansAhead?.close();
    this.store?.close();
  }

  /**
   * Frees the previews and plans of an ended task. If the task failed, also deletes its uploads and songs. The files of
   * a successful task are kept until the task is removed.
   */
  async cleanUp(task: Task): Promise<void> {
    this.previews.end(task.id);
    this.#plansAhead?.drop(task.id);
    if (task.state !== "failed") return;
    const songs = this.audioFiles.namesOf(task).map((name) => this.audioFiles.storage.objectName(name));
    await this.deletions.discard([...this.inputs.objectNames(task.request), ...songs], task.id);
  }
}
