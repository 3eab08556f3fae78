/** Operations of the endpoints on tasks and models, between routes and engine. */
import { EventEmitter, once } from "node:events";
import { join } from "node:path";
import type { z } from "zod";
import type { Config } from "../config.js";
import type { MusicEngine } from "../engine/types.js";
import { describe } from "../parameters.js";
import type { Logger } from "../system/log.js";
import type { Caller } from "./access/concurrency-limit.js";
import { type AudioFiles, type FoundAudio, songOf } from "./audio/audio-files.js";
import { ownFiles } from "./audio/audio-inputs.js";
import type { SongTags } from "./audio/tags.js";
import { removeOrphanUploads, type UploadKind, type Uploads, uploadKind } from "./audio/uploads.js";
import { Callbacks } from "./callbacks/callbacks.js";
import { DataSetEditor } from "./dataset/editor.js";
import { LabelTasks } from "./dataset/label.js";
import { PreparationTasks } from "./dataset/prepare.js";
import { detailFor, HttpError, RequestError } from "./errors.js";
import { Adapters } from "./models/adapters.js";
import { ModelPulls } from "./models/model-pulls.js";
import type { acceptedTask } from "./openapi/answers.js";
import { isOutstanding } from "./queue/callback-schedule.js";
import { type CatalogFilter, hasEnded } from "./queue/catalog.js";
import { Retention, type RetentionForecast } from "./queue/retention.js";
import { DamagedRecordError, filesOf, type Task, type TaskState } from "./queue/store.js";
import { TaskEvents, type TaskLog } from "./queue/task-events.js";
import { type LiveState, type Origin, SubmissionTakenError, type TaskQueue } from "./queue/task-queue.js";
import { type TaskRow, taskRow, wholeTaskRow } from "./queue/task-row.js";
import { damagedTask, type TaskStatusItem, taskStatus, unknownTask } from "./queue/task-status.js";
import type { SubmissionKey } from "./request/idempotency.js";
import type { Fields } from "./request/json.js";
import { parametersOf, uploadsOf } from "./request/replay.js";
import type { GenerationRequest } from "./request/schema.js";
import type { Preview } from "./song/preview.js";
import { checkWords } from "./song/song-context.js";
import type { SongRunner } from "./song/song-runner.js";
import { titleOf, versionLetter } from "./song/title.js";
import { PermittedRoot } from "./storage/permitted-root.js";
import { Telemetry } from "./telemetry.js";
import { AdapterTrainer } from "./training/trainer.js";
import { refusalOf, TextWriter } from "./words/text-writer.js";

const SWEEP_INTERVAL_MS = 5 * 60 * 1000;
/** Size limit for the records of finished tasks. */
const MAX_RECORD_BYTES = 256 * 2 ** 20;
/** Tasks read concurrently; few, because each may be large. */
const ROWS_AT_ONCE = 8;
/** Size limit of a page of tasks; it may hold fewer tasks than requested. */
const MAX_PAGE_BYTES = 8 * 2 ** 20;

const ENDED: LiveState = { progress: undefined, position: undefined };

/** Response to a submission. */
export type AcceptedTask = z.output<typeof acceptedTask>;

export class MusicService {
  readonly audioFiles: AudioFiles;
  readonly uploadsDirectory: string;
  readonly adapters: Adapters;
  readonly modelPulls: ModelPulls;
  /** Root for paths of training requests. */
  readonly trainingRoot: PermittedRoot;
  readonly training: AdapterTrainer;
  readonly dataSet: DataSetEditor;
  readonly labeling: LabelTasks;
  readonly preparations: PreparationTasks;
  readonly telemetry: Telemetry;
  readonly writer: TextWriter;
  readonly #callbacks: Callbacks;
  readonly #events: TaskEvents;
  readonly #retention: Retention;
  /** Filters messages for clients; see `detailFor`. */
  readonly #detail: (detail: string) => string;
  /** Emits the id of every ended task. */
  readonly #endings = new EventEmitter();
  /** Aborts work for requests that have no task yet. */
  readonly #stopping = new AbortController();
  /** Running submissions by Idempotency-Key. */
  readonly #submitting = new Map<string, Promise<AcceptedTask>>();
  #sweepTimer: NodeJS.Timeout | undefined;
  /** Running sweep, if any. */
  #sweeping: Promise<void> = Promise.resolve();

  /** @param engine for model lists, training and text; songs are made by `runner` */
  constructor(
    readonly config: Config,
    readonly engine: MusicEngine,
    readonly queue: TaskQueue,
    private readonly runner: SongRunner,
    private readonly log: Logger,
  ) {
    this.audioFiles = runner.audioFiles;
    this.uploadsDirectory = runner.uploads.directory;
    this.#detail = detailFor(config);
    this.trainingRoot = new PermittedRoot(config.trainingRoot);
    this.adapters = new Adapters(engine, (path) => runner.loras.resolve(path));
    this.modelPulls = new ModelPulls(config, log);
    this.training = new AdapterTrainer(engine, this.trainingRoot, log);
    this.dataSet = new DataSetEditor(this.trainingRoot);
    this.labeling = new LabelTasks(engine, this.trainingRoot, this.dataSet, log);
    this.preparations = new PreparationTasks(engine, this.trainingRoot, log);
    this.writer = new TextWriter(engine, this.#stopping.signal);
    const limits = {
      maxAgeSeconds: config.audioMaxAgeSeconds,
      maxAudioBytes: config.audioMaxTotalBytes,
      maxRecordBytes: MAX_RECORD_BYTES,
    };
    const removeUploads = (names: readonly string[]) => runner.inputs.removeUploads(names);
    this.#retention = new Retention(this.queue, this.audioFiles, removeUploads, limits, log);
    this.queue.events.on("ended", (task) => this.#onTaskEnded(task));
    const itemOf = (task: Task) => taskStatus(this.#shown(task), ENDED, this.audioFiles);
    this.#callbacks = new Callbacks(this.queue, config, itemOf, log);
    this.#events = new TaskEvents(this.queue);
    this.telemetry = new Telemetry({ queue: this.queue, engine }, log);
    this.telemetry.gauge(
      "carillon_preview_bytes",
      "Audio of previews in memory",
      async () => this.runner.previews.bytes,
    );
    this.telemetry.gauge("carillon_event_logs", "Tasks with events in memory", async () => this.#events.size);
  }

  /** Opens stored tasks and deletes expired ones. Requests are accepted afterwards; jobs wait for `start`. */
  async open(): Promise<void> {
    /** Audio files of each task. An unfinished task has none, because it makes its songs again. */
    const audio = new Map<string, readonly string[] | "all">();
    const uploads = new Set<string>();
    await this.queue.open((stored) => {
      if (stored.task === null) {
        audio.set(stored.id, "all");
        this.log.error(
          { task: stored.id, reason: stored.damage.message },
          "skipped a task with a damaged record",
        );
        return;
      }
      const { id, state, result, request } = stored.task;
      audio.set(
        id,
        filesOf(result?.audioFiles ?? []).map(({ name }) => name),
      );
      if (state !== "failed") for (const path of ownFiles(request)) uploads.add(path);
    });
    if (!this.queue.isShared && this.config.storage === null) {
      await this.#clearOrphanAudio((id) => audio.get(id) ?? null);
      await removeOrphanUploads(this.uploadsDirectory, (path) => uploads.has(path));
    }
    await this.sweep();
    this.#sweepTimer = setInterval(() => void this.sweep(), SWEEP_INTERVAL_MS).unref();
  }

  /**
   * Loads the configured models and starts the workers.
   * @throws if the model of slot 1 cannot be loaded; failures of other models are logged
   */
  async start(): Promise<void> {
    await this.runner.prepare();
    this.queue.start();
    this.#callbacks.start();
  }

  /**
   * Starts no more jobs, gives running ones `graceSeconds` to finish, and requeues the rest. Training stops at once with a
   * checkpoint; data set preparation stops after the current sample.
   */
  async stop(graceSeconds: number): Promise<void> {
    clearInterval(this.#sweepTimer);
    this.#stopping.abort(new HttpError(500, "The server is stopping"));
    await Promise.all([
      this.queue.stop(graceSeconds),
      this.#callbacks.stop(),
      this.training.close(),
      this.labeling.close(),
      this.preparations.close(),
      this.modelPulls.close(),
    ]);
    await this.#sweeping;
  }

  /** Deletes expired tasks; one sweep at a time. */
  sweep(): Promise<void> {
    this.#sweeping = this.#sweeping
      .then(() => this.queue.runCleanUp((nowMs) => this.#retention.sweep(nowMs)))
      .then(() => this.runner.tidy())
      .catch((err: unknown) => this.log.error({ err }, "expired tasks not deleted"));
    return this.#sweeping;
  }

  /**
   * Checks the recordings of the task and queues it. An accepted task owns its uploads, which survive a restart and are
   * deleted when it ends.
   * @param caller disconnecting ends the check, not an accepted task
   * @throws QueueFullError; HttpError 400 for an unusable recording, 429 if too many checks of the caller wait, 500 if the
   * service stops; DecodeError for server errors; StoreError if the task cannot be recorded; the reason of the caller's
   * signal. Nothing is left of the task then.
   */
  async submit(
    request: GenerationRequest,
    caller: Caller,
    { submission = null, retakeOf }: Pick<Origin, "submission" | "retakeOf"> = {},
  ): Promise<AcceptedTask> {
    await this.queue.assertRoom();
    await checkWords(this.engine, request).catch((error: unknown) => {
      const refusal = refusalOf(error);
      // Other errors are reported when the task runs.
      if (refusal instanceof RequestError) throw refusal;
    });
    await this.#callbacks.admit(request.callbackUrl ?? null);
    const signal = AbortSignal.any([caller.signal, this.#stopping.signal]);
    const { inputs } = this.runner;
    const claimed = await inputs.claim(request);
    try {
      const admitted = await inputs.admit(claimed, { ...caller, signal });
      const published = await inputs.publish(await this.#withAdapters(admitted));
      const origin = { submission, retakeOf, requestId: caller.requestId, share: caller.share ?? "" };
      const { task, position } = await this.queue.submit(published, origin).catch(async (error: unknown) => {
        if (published !== admitted) await inputs.release(published).catch(() => {});
        throw error;
      });
      return { task_id: task.id, status: "queued", queue_position: position, warnings: request.warnings };
    } catch (error) {
      await inputs.unclaim(request, claimed);
      throw error;
    }
  }

  /**
   * Submits once per Idempotency-Key. Concurrent submissions wait for the first; later ones get its response. The key
   * lasts as long as the task.
   * @throws HttpError 422 if the key was used for a different body
   */
  async submitOnce(key: SubmissionKey, submit: () => Promise<AcceptedTask>): Promise<AcceptedTask> {
    for (;;) {
      const pending = this.#submitting.get(key.key);
      if (pending === undefined) break;
      await pending.catch(() => {});
    }
    const id = await this.queue.submittedAs(key.key);
    if (id === undefined) {
      const pending = submit();
      this.#submitting.set(key.key, pending);
      try {
        return await pending;
      } catch (error) {
        if (!(error instanceof SubmissionTakenError)) throw error;
      } finally {
        this.#submitting.delete(key.key);
      }
      return this.submitOnce(key, submit);
    }
    const task = await this.queue.get(id);
    // The task and its key were deleted meanwhile.
    if (task?.submission === undefined) return this.submitOnce(key, submit);
    const { digest, position } = task.submission;
    if (digest !== key.digest) {
      throw new HttpError(
        422,
        `Idempotency-Key ${describe(key.key)} was used for a different body by task ${id}: send a new key`,
      );
    }
    return { task_id: id, status: "queued", queue_position: position, warnings: task.request.warnings };
  }

  /** Resolves the adapters of the request. @throws as RequestedAdapters.resolveAll */
  async #withAdapters(request: GenerationRequest): Promise<GenerationRequest> {
    if (request.loras === null) return request;
    const loras = await this.runner.loras.resolveAll(request.loras, () => this.engine.adapters());
    return { ...request, loras };
  }

  async #clearOrphanAudio(namesOf: Parameters<AudioFiles["clearOrphans"]>[0]): Promise<void> {
    const quarantine = join(this.config.temporaryDirectory, "quarantine");
    try {
      for (const name of await this.audioFiles.clearOrphans(namesOf, quarantine)) {
        this.log.warn({ name, quarantine }, "moved audio without a task record to quarantine");
      }
    } catch (err) {
      this.log.error({ err }, "audio without a task record not moved to quarantine");
    }
  }

  #onTaskEnded(task: Task): void {
    this.#endings.emit(task.id);
    this.#events.end(task.id, this.#row(task, ENDED));
    if (isOutstanding(task)) void this.#callbacks.look();
  }

  /** An unknown id has status 0, because the API has no other status for it; `stage` is `unknown`. */
  async query(id: string): Promise<TaskStatusItem> {
    try {
      const task = await this.queue.get(id);
      if (task === undefined) return unknownTask(id);
      return taskStatus(this.#shown(task), await this.#live(task), this.audioFiles);
    } catch (error) {
      if (error instanceof DamagedRecordError) return damagedTask(id, error.message);
      throw error;
    }
  }

  async #live({ id, state }: Task): Promise<LiveState> {
    return hasEnded(state) ? ENDED : this.queue.live(id);
  }

  #shown(task: Task): Task {
    return { ...task, error: task.error === null ? null : this.#detail(task.error) };
  }

  #row(task: Task, live: LiveState): TaskRow {
    return taskRow(this.#shown(task), live, this.audioFiles);
  }

  /** Page of tasks, newest first; it is shorter if rows are large. */
  async list(filter: CatalogFilter) {
    const { total, ids } = await this.queue.page(filter);
    const tasks: TaskRow[] = [];
    let bytes = 0;
    for (let begin = 0; begin < ids.length; begin += ROWS_AT_ONCE) {
      const rows = await Promise.all(ids.slice(begin, begin + ROWS_AT_ONCE).map((id) => this.#rowOf(id)));
      for (const row of rows) {
        // Deleted meanwhile.
        if (row === undefined) continue;
        bytes += JSON.stringify(row).length;
        if (bytes > MAX_PAGE_BYTES && tasks.length > 0) return { tasks, total, offset: filter.offset };
        tasks.push(row);
      }
    }
    return { tasks, total, offset: filter.offset };
  }

  /** Size of all songs, its limits, and when these tasks are deleted. */
  retention(ids: readonly string[]): Promise<RetentionForecast> {
    return this.#retention.forecast(ids);
  }

  async #rowOf(id: string): Promise<TaskRow | undefined> {
    const task = await this.#read(id);
    return task && this.#row(task, await this.#live(task));
  }

  /** @throws HttpError 404 */
  async task(id: string): Promise<TaskRow> {
    const task = await this.#read(id);
    if (task === undefined) throw noSuchTask(id);
    return wholeTaskRow(this.#shown(task), await this.#live(task), this.audioFiles);
  }

  /** Undefined also for a damaged record. */
  #read(id: string): Promise<Task | undefined> {
    return this.queue.get(id).catch((error: unknown) => {
      if (error instanceof DamagedRecordError) return undefined;
      throw error;
    });
  }

  /** Title of the song in a file, which version of it, and its tags; null for a file without a task. */
  async songIn(path: string): Promise<{ title: string; version: string | null; tags: SongTags } | null> {
    const found = songOf(path);
    const task = found === null ? undefined : await this.#read(found.taskId);
    if (found === null || !task?.result) return null;
    const { index } = found;
    const { audioFiles, seeds } = task.result;
    const { prompt, lyrics, metas, trackName } = audioFiles[index]?.description ?? task.result;
    const { bpm = null, keyscale = "" } = metas;
    const title = titleOf(task);
    const isAlone = audioFiles.length === 1 && trackName === undefined;
    return {
      title,
      version: isAlone ? null : (trackName ?? versionLetter(index)),
      tags: { title, prompt, lyrics, bpm, key: keyscale, seed: String(seeds[index] ?? "") },
    };
  }

  /** A kept upload as a readable file; null if `path` refers to none. @throws StoreError */
  async keptUpload(path: string): Promise<FoundAudio | null> {
    const found = await this.runner.inputs.keptUpload(path);
    return found === null ? null : { path: found, stored: null };
  }

  /**
   * Event log of a task, and the number of the event with id `lastEventId`.
   * @throws HttpError 404
   */
  async follow(id: string, lastEventId: string): Promise<{ log: TaskLog; number: number }> {
    const log = await this.#events.follow(id);
    const task = await this.#read(id);
    if (task !== undefined && task.finishedAtMs === null)
      return { log, number: this.#events.numberOf(lastEventId) };
    if (task !== undefined) this.#events.end(id, this.#row(task, ENDED));
    this.#events.forget(id);
    if (task === undefined) throw noSuchTask(id);
    return { log, number: 0 };
  }

  /**
   * Preview of a task, held until the signal fires; null if the task has ended.
   * @throws HttpError 404
   */
  async preview(id: string, signal: AbortSignal): Promise<Preview | null> {
    const { previews } = this.runner;
    // Registered first, so that an end of the task during the read ends the preview, too.
    const preview = previews.of(id);
    preview.addListener(signal);
    const task = await this.#read(id);
    if (task !== undefined && !hasEnded(task.state)) return preview;
    previews.end(id);
    if (task === undefined) throw noSuchTask(id);
    return null;
  }

  /**
   * Body of a retake (without seeds), and the first task of the retake group.
   * @throws HttpError 404; 409 if an upload of the task was deleted and not `sent` again
   */
  async retakeOf(id: string, sent: Uploads): Promise<{ first: string; parameters: Fields }> {
    const task = await this.#read(id);
    if (task === undefined) throw noSuchTask(id);
    const { seed: _seed, use_random_seed: _random, ...parameters } = parametersOf(task);
    const lost = uploadsOf(task).filter((field) => sent[uploadKind(field) as UploadKind] === null);
    if (lost.length > 0) {
      throw new HttpError(409, `The upload of the task is not kept: send ${lost.join(" and ")} again`);
    }
    return { first: task.retakeOf ?? id, parameters };
  }

  /**
   * Sets title or favourite of a task; undefined leaves a value unchanged.
   * @throws HttpError 404
   */
  async mark(
    id: string,
    { title, favorite }: { title: string | undefined; favorite: boolean | undefined },
  ): Promise<TaskRow> {
    const task = await this.queue.update(id, (current) => ({
      ...current,
      ...(title === undefined ? {} : { title }),
      ...(favorite === undefined ? {} : { favorite }),
    }));
    if (task === undefined) throw noSuchTask(id);
    return this.#row(task, await this.#live(task));
  }

  /**
   * Cancels a waiting or running task, or deletes an ended one with its songs, if it is in one of the states.
   * @throws HttpError 404, or 409 in another state; StoreError if this cannot be recorded
   */
  async remove(id: string, states: readonly TaskState[]): Promise<"cancelled" | "deleted"> {
    const task = await this.queue.get(id);
    if (task === undefined) throw noSuchTask(id);
    const { state } = this.#row(task, await this.#live(task));
    if (!states.includes(state)) {
      throw new HttpError(409, `The task is ${state}: to remove it in this state, add ?state=${state}`);
    }
    if (await (hasEnded(state) ? this.#retention.remove(id) : this.queue.cancel(id))) {
      return hasEnded(state) ? "deleted" : "cancelled";
    }
    throw new HttpError(409, `The task was ${state} and ended before it could be removed: look again`);
  }

  /**
   * Waits until a task has ended in any state.
   * @throws the signal's reason, or HttpError 500 if the service stops first
   */
  async whenEnded(id: string, signal: AbortSignal): Promise<Task> {
    const waiting = AbortSignal.any([signal, this.#stopping.signal]);
    // Rejects if the signal fires; checked below.
    const ended = once(this.#endings, id, { signal: waiting }).catch(() => null);
    const current = await this.queue.get(id);
    if (current !== undefined && current.finishedAtMs !== null) return current;
    await ended;
    waiting.throwIfAborted();
    const task = await this.queue.get(id);
    if (task === undefined) throw new HttpError(500, "The task was deleted before its result was read");
    return task;
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

function noSuchTask(id: string): HttpError {
  return new HttpError(404, `No such task: ${describe(id)}`);
}
