/** Assembles, starts and stops the music service, and deletes expired tasks. */
import { join } from "node:path";
import type { Config } from "../config.js";
import type { ModelCatalog, MusicEngine, SheetWriter } from "../engine/types.js";
import type { Logger } from "../system/log.js";
import type { AudioFiles } from "./audio/audio-files.js";
import { uploadPathsOf } from "./audio/audio-inputs.js";
import { removeOrphanUploads } from "./audio/uploads.js";
import { Callbacks } from "./callbacks/callbacks.js";
import { detailFilter, serverStops, throwNotAvailableInFleet } from "./errors.js";
import { LocalWork } from "./local-work.js";
import { Adapters } from "./models/adapters.js";
import type { AdapterRecord } from "./models/loaded-adapters.js";
import { isCallbackPending } from "./queue/callback-schedule.js";
import { Retention } from "./queue/retention.js";
import { filesOf } from "./queue/store.js";
import type { TaskQueue } from "./queue/task-queue.js";
import { Previews } from "./song/preview.js";
import type { SongRunner } from "./song/song-runner.js";
import { PermittedRoot } from "./storage/permitted-root.js";
import { Submissions } from "./submissions.js";
import type { TaskFiles } from "./task-files.js";
import { Tasks } from "./tasks.js";
import { Telemetry } from "./telemetry.js";
import { TextWriter } from "./words/text-writer.js";

const SWEEP_INTERVAL_MS = 5 * 60 * 1000;
/** Maximum total size of the records of finished tasks. */
const MAX_RECORD_BYTES = 256 * 2 ** 20;

export interface ServiceParts {
  config: Config;
  catalog: ModelCatalog;
  writer: SheetWriter;
  /** Engine of this process; null in a fleet, where other processes work. */
  engine: MusicEngine | null;
  queue: TaskQueue;
  files: TaskFiles;
  /** Runs tasks in this process; null: other processes run them. */
  runner: SongRunner | null;
  /** The adapters that clients have loaded. */
  adapters: AdapterRecord;
  log: Logger;
}

export class MusicService {
  readonly config: Config;
  readonly catalog: ModelCatalog;
  readonly queue: TaskQueue;
  readonly audioFiles: AudioFiles;
  readonly uploadsDirectory: string;
  readonly adapters: Adapters;
  /** Directory that must contain all paths of training requests. */
  readonly trainingRoot: PermittedRoot;
  readonly telemetry: Telemetry;
  readonly writer: TextWriter;
  readonly retention: Retention;
  readonly submissions: Submissions;
  readonly tasks: Tasks;
  readonly #files: TaskFiles;
  readonly #runner: SongRunner | null;
  readonly #log: Logger;
  readonly #local: LocalWork | null;
  readonly #callbacks: Callbacks;
  /** Aborts requests in progress when the service stops. Jobs are stopped by the queue instead. */
  readonly #stopping = new AbortController();
  #sweepTimer: NodeJS.Timeout | undefined;
  #sweeping: Promise<void> = Promise.resolve();

  constructor({ config, catalog, writer, engine, queue, files, runner, adapters, log }: ServiceParts) {
    this.config = config;
    this.catalog = catalog;
    this.queue = queue;
    this.#files = files;
    this.#runner = runner;
    this.#log = log;
    this.audioFiles = files.songs;
    this.uploadsDirectory = files.uploads.directory;
    this.trainingRoot = new PermittedRoot(config.trainingRoot);
    this.adapters = new Adapters(adapters, catalog, files.requestedAdapters);
    this.#local = engine && new LocalWork(config, engine, this.trainingRoot, log);
    this.writer = new TextWriter(catalog, writer, this.#stopping.signal);
    const limits = {
      maxAgeSeconds: config.audioMaxAgeSeconds,
      maxAudioBytes: config.audioMaxTotalBytes,
      maxRecordBytes: MAX_RECORD_BYTES,
    };
    this.retention = new Retention(this.queue, files.deletions, limits, log);
    const { signal } = this.#stopping;
    // Only a process that runs tasks fills previews.
    const previews = runner?.previews ?? new Previews();
    this.tasks = new Tasks(queue, files, previews, this.retention, detailFilter(config), signal);
    this.#callbacks = new Callbacks(queue, config, (task) => this.tasks.statusOf(task), log);
    this.submissions = new Submissions(queue, files, this.writer, this.adapters, this.#callbacks, signal);
    queue.events.on("ended", (task) => {
      if (isCallbackPending(task)) void this.#callbacks.deliverDue();
    });
    this.telemetry = new Telemetry(queue, catalog, log);
    this.telemetry.gauge("carillon_preview_bytes", "Audio of previews in memory", async () => previews.bytes);
    this.telemetry.gauge(
      "carillon_event_logs",
      "Tasks with events in memory",
      async () => this.tasks.eventLogs,
    );
  }

  /**
   * Opens the stored tasks and deletes expired ones. Then requests are accepted, but jobs do not run before
   * `start`.
   */
  async open(): Promise<void> {
    /**
     * Names of the audio files to keep, by task id. An unfinished task keeps none, because it makes its songs
     * again.
     */
    const audio = new Map<string, readonly string[] | "all">();
    const uploads = new Set<string>();
    await this.queue.open((stored) => {
      if (stored.task === null) {
        audio.set(stored.id, "all");
        this.#log.error(
          { task: stored.id, reason: stored.damage.message },
          "skipped a task with a damaged record",
        );
        return;
      }
      const { id, state, result, request } = stored.task;
      audio.set(
        id,
        filesOf(result).map(({ name }) => name),
      );
      if (state !== "failed") for (const path of uploadPathsOf(request)) uploads.add(path);
    });
    if (!this.queue.isShared && this.config.storage === null) {
      await this.#clearOrphanAudio((id) => audio.get(id) ?? null);
      await removeOrphanUploads(this.uploadsDirectory, (path) => uploads.has(path));
    }
    await this.sweep();
    this.#sweepTimer = setInterval(() => void this.sweep(), SWEEP_INTERVAL_MS).unref();
  }

  /** @throws if the model of slot 1 cannot be loaded; failures of other models are logged */
  async start(): Promise<void> {
    await this.#runner?.prepare();
    this.queue.start();
    this.#callbacks.start();
  }

  /**
   * Starts no more jobs, gives running ones `graceSeconds` to finish, and requeues the rest. Training stops at once
   * and saves a checkpoint. Data set preparation stops after the current sample.
   */
  async stop(graceSeconds: number): Promise<void> {
    clearInterval(this.#sweepTimer);
    this.#stopping.abort(serverStops());
    await Promise.all([this.queue.stop(graceSeconds), this.#callbacks.stop(), this.#local?.close()]);
    await this.#sweeping;
  }

  /** Deletes expired tasks. Sweeps never overlap. */
  sweep(): Promise<void> {
    const { signal } = this.#stopping;
    const note = (err: unknown) => {
      if (!signal.aborted) this.#log.error({ err }, "could not delete expired tasks or unused files");
    };
    this.#sweeping = this.#sweeping
      .then(() =>
        this.queue.runCleanUp(async (nowMs) => {
          await this.retention.sweep(nowMs, signal);
          await this.adapters.removeUnused(signal);
        }),
      )
      .catch(note)
      .then(() => this.#files.removeStale())
      .catch(note);
    return this.#sweeping;
  }

  async #clearOrphanAudio(namesOf: Parameters<AudioFiles["clearOrphans"]>[0]): Promise<void> {
    const quarantine = join(this.config.temporaryDirectory, "quarantine");
    try {
      for (const name of await this.audioFiles.clearOrphans(namesOf, quarantine)) {
        this.#log.warn({ name, quarantine }, "moved audio without a task record to quarantine");
      }
    } catch (err) {
      this.#log.error({ err }, "could not move audio without a task record to quarantine");
    }
  }

  /** Work on the models and files of this machine. @throws HttpError in a fleet */
  get local(): LocalWork {
    return this.#local ?? throwNotAvailableInFleet();
  }

  async statistics() {
    const { counts, waiting, averageJobSeconds, workers } = await this.queue.statistics();
    return {
      jobs: counts,
      queue_size: waiting,
      queue_maxsize: this.config.queueMaxSize,
      avg_job_seconds: Math.round(averageJobSeconds * 100) / 100,
      ...(workers && { workers }),
    };
  }
}
