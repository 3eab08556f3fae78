/** The work on tasks, by whatever process does it: the models it needs, the songs, and what is left once a task ended. */
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Config } from "../config.js";
import type { MusicEngine, SongAdapter } from "../engine/types.js";
import type { Logger } from "../log.js";
import { AudioFiles } from "./audio/audio-files.js";
import { AudioInputs } from "./audio/audio-inputs.js";
import { findFfmpeg } from "./audio/ffmpeg.js";
import { StoreError } from "./errors.js";
import { makeSongs } from "./job.js";
import type { JobControl, Jobs } from "./queue/job-queue.js";
import { retryDelayMs } from "./queue/running-job.js";
import type { SongResult, Task } from "./queue/store.js";
import { plansUnasked } from "./song/job-context.js";
import { Previews } from "./song/preview.js";
import { AdapterShelf } from "./storage/adapter-shelf.js";
import type { ObjectStore } from "./storage/object-store.js";
import { Shelf } from "./storage/shelf.js";

export class SongJobs implements Jobs {
  readonly audioFiles: AudioFiles;
  readonly inputs: AudioInputs;
  readonly adapters: AdapterShelf;
  /** Files that came with tasks that have not ended. */
  readonly uploads: Shelf;
  readonly previews = new Previews();
  /** Settled once: what is loaded meanwhile does not change what a request means. */
  readonly plansUnasked: boolean;
  readonly #adapterFiles: Shelf;

  /**
   * @param engine null where this process accepts tasks and runs none
   * @param store what lies behind the folders of songs and uploads; null: nothing does
   */
  constructor(
    private readonly config: Config,
    readonly engine: MusicEngine | null,
    private readonly log: Logger,
    private readonly store: ObjectStore | null = null,
  ) {
    const { temporaryDirectory, storage, initLanguageModel, languageModelDevice } = config;
    const root = storage?.directory ?? temporaryDirectory;
    this.audioFiles = new AudioFiles(join(root, "api_audio"), store);
    this.uploads = new Shelf(join(root, "uploads"), store, "uploads/");
    this.#adapterFiles = new Shelf(join(root, "adapters"), store, "adapters/");
    this.adapters = new AdapterShelf(this.#adapterFiles);
    this.inputs = new AudioInputs({
      roots: config.audioRoots,
      songs: this.audioFiles.shelf,
      uploads: this.uploads,
      maxSeconds: config.sourceMaxSeconds,
    });
    this.plansUnasked =
      engine !== null && plansUnasked(initLanguageModel, languageModelDevice, engine.runtimeInfo());
  }

  /**
   * Loads the configured models.
   * @throws where the model of slot 1 cannot be loaded; the others only warn
   */
  async prepare(): Promise<void> {
    const { engine, log } = this;
    if (engine === null) return;
    // While this process is small. Nobody waits for it: it takes several short processes.
    void findFfmpeg().then(
      ({ program, confinement: { description } }) =>
        log.info({ program, confinement: description }, "ffmpeg runs confined"),
      (err: unknown) => log.error({ err }, "no song can be encoded"),
    );
    await engine.loadSlot(1, null);
    for (const { slot } of engine.slots().filter((state) => state.slot > 1)) {
      await engine.loadSlot(slot, null).catch((err: unknown) => {
        log.warn({ err, slot }, "the model of a slot could not be loaded");
      });
    }
    if (this.plansUnasked) {
      await engine.loadLanguageModel(null).catch((err: unknown) => {
        log.warn({ err }, "the language model could not be loaded; it is tried again when needed");
      });
    }
  }

  /** Tasks of a fleet name the adapter that acts, or none; those of a server that works alone take what its slot has. */
  run(task: Task, control: JobControl): Promise<SongResult> {
    const { adapter } = task;
    if (adapter === undefined)
      return this.#make(task, this.config.redisUrl === null ? undefined : null, control);
    return this.adapters.lend(adapter, (path) => this.#make(task, { ...adapter, path }, control));
  }

  async #make(
    task: Task,
    adapter: SongAdapter | null | undefined,
    { signal, report }: JobControl,
  ): Promise<SongResult> {
    if (this.engine === null) throw new Error("this process runs no tasks");
    const destination = (index: number) => {
      const name = this.audioFiles.nameOf(task.id, index, task.request.audioFormat);
      return { name, path: this.audioFiles.pathOf(name) };
    };
    const request = await this.inputs.locate(task.request);
    const maxSourceSeconds = this.config.sourceMaxSeconds;
    const { plansUnasked } = this;
    const preview = this.previews.of(task.id);
    const options = { destination, maxSourceSeconds, plansUnasked, adapter, signal, report, preview };
    const result = await makeSongs(this.engine, request, options).finally(() => this.previews.end(task.id));
    for (const { name } of result.audioFiles) await this.#publish(this.audioFiles.pathOf(name), signal);
    await this.tidy();
    return result;
  }

  /** A finished song waits for a store that is away as long as its task may take. */
  async #publish(path: string, signal: AbortSignal): Promise<void> {
    for (let attempt = 0; ; attempt++) {
      try {
        await this.audioFiles.shelf.publish(path);
        return;
      } catch (error) {
        if (!(error instanceof StoreError)) throw error;
        if (attempt === 0) this.log.error({ reason: error.message }, "a song waits for its storage");
        await sleep(retryDelayMs(attempt), undefined, { signal }).catch(() => signal.throwIfAborted());
      }
    }
  }

  /** Lets go what killed processes have left half written, and copies of what the store has. */
  async tidy(): Promise<void> {
    await this.audioFiles.dropUnfinished();
    await this.audioFiles.shelf.dropCopies();
    await this.uploads.dropCopies();
    await this.#adapterFiles.dropCopies();
  }

  close(): void {
    this.store?.close();
  }

  /** Nothing stays of a failed task but its record, however late it failed. */
  async ended(task: Task): Promise<void> {
    this.previews.end(task.id);
    await this.inputs.release(task.request);
    if (task.state === "failed") await this.audioFiles.remove(this.audioFiles.namesOf(task));
  }
}
