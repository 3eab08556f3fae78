/** What the endpoints do, in terms of tasks and models: between the routes and the engine. */
import { EventEmitter, once } from "node:events";
import { join } from "node:path";
import type { z } from "zod";
import type { Config } from "../config.js";
import type { MusicEngine } from "../engine/types.js";
import type { Logger } from "../log.js";
import { describe } from "../parameters.js";
import { Adapters } from "./adapters.js";
import type { AudioFiles } from "./audio/audio-files.js";
import { ownFiles } from "./audio/audio-inputs.js";
import { removeOrphanUploads } from "./audio/uploads.js";
import type { Caller } from "./concurrency-limit.js";
import { DataSetEditor } from "./dataset/editor.js";
import { LabelTasks } from "./dataset/label.js";
import { PreparationTasks } from "./dataset/prepare.js";
import { detailFor, HttpError, RequestError } from "./errors.js";
import { ModelPulls } from "./model-pulls.js";
import type { acceptedTask } from "./openapi/answers.js";
import { PermittedRoot } from "./permitted-root.js";
import { type CatalogFilter, hasEnded } from "./queue/catalog.js";
import { type JobQueue, type LiveState, SubmissionTakenError } from "./queue/job-queue.js";
import { Retention } from "./queue/retention.js";
import { DamagedRecordError, type Task } from "./queue/store.js";
import { TaskEvents, type TaskLog } from "./queue/task-events.js";
import { type TaskRow, taskRow, wholeTaskRow } from "./queue/task-row.js";
import { damagedTask, type TaskStatusItem, taskStatus, unknownTask } from "./queue/task-status.js";
import type { SubmissionKey } from "./request/idempotency.js";
import type { GenerationRequest } from "./request/schema.js";
import { checkWords } from "./song/job-context.js";
import type { Preview } from "./song/preview.js";
import type { SongJobs } from "./song-jobs.js";
import { Telemetry } from "./telemetry.js";
import { AdapterTrainer } from "./training/trainer.js";
import { refusalOf, TextWriter } from "./words/text-writer.js";

const SWEEP_INTERVAL_MS = 5 * 60 * 1000;
/** What the records of finished tasks may take together. */
const MAX_RECORD_BYTES = 256 * 2 ** 20;
/** Tasks that are read side by side: few, as each may be large. */
const ROWS_AT_ONCE = 8;
/** Where a page of a list ends before it has as many tasks as were asked for. */
const MAX_PAGE_BYTES = 8 * 2 ** 20;

/** A task that has ended neither waits nor goes on. */
const ENDED: LiveState = { progress: undefined, position: undefined };

/** What a client is told of its submission. */
export type AcceptedTask = z.output<typeof acceptedTask>;

export class MusicService {
  readonly audioFiles: AudioFiles;
  readonly uploadsDirectory: string;
  readonly adapters: Adapters;
  readonly modelPulls: ModelPulls;
  /** Where the paths of training requests must lie. */
  readonly trainingRoot: PermittedRoot;
  readonly training: AdapterTrainer;
  readonly dataSet: DataSetEditor;
  readonly labeling: LabelTasks;
  readonly preparations: PreparationTasks;
  readonly telemetry: Telemetry;
  readonly writer: TextWriter;
  readonly #events: TaskEvents;
  readonly #retention: Retention;
  /** What clients are shown of a message. */
  readonly #detail: (detail: string) => string;
  /** Emits the id of every task that has ended. */
  readonly #endings = new EventEmitter();
  /** Ends what is done for requests that have no task yet. */
  readonly #stopping = new AbortController();
  /** Submissions under a key that have no task yet. */
  readonly #submitting = new Map<string, Promise<AcceptedTask>>();
  #sweepTimer: NodeJS.Timeout | undefined;
  /** The sweep under way, if any. */
  #sweeping: Promise<void> = Promise.resolve();

  /** @param engine what clients are told of models, and what trains adapters and writes words */
  constructor(
    readonly config: Config,
    readonly engine: MusicEngine,
    readonly queue: JobQueue,
    private readonly jobs: SongJobs,
    private readonly log: Logger,
  ) {
    this.audioFiles = jobs.audioFiles;
    this.uploadsDirectory = jobs.uploads.directory;
    this.#detail = detailFor(config);
    this.trainingRoot = new PermittedRoot(config.trainingRoot);
    this.adapters = new Adapters(engine, this.trainingRoot, config.isLocal);
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
    this.#retention = new Retention(this.queue, this.audioFiles, limits, log);
    this.queue.events.on("ended", (task) => this.#told(task));
    this.#events = new TaskEvents(this.queue);
    this.telemetry = new Telemetry({ queue: this.queue, engine }, log);
  }

  /** Takes up stored tasks and lets expired ones go. Requests may come from then on; jobs wait for `start`. */
  async open(): Promise<void> {
    /** The audio that a task names; of an unfinished one none, as what it made so far it makes again. */
    const audio = new Map<string, readonly string[] | "all">();
    const uploads = new Set<string>();
    await this.queue.open((stored) => {
      if (stored.task === null) {
        audio.set(stored.id, "all");
        this.log.error({ task: stored.id, reason: stored.damage.message }, "a task is left out");
        return;
      }
      const { id, state, result, request } = stored.task;
      audio.set(id, result?.audioFiles.map(({ name }) => name) ?? []);
      if (!hasEnded(state)) for (const path of ownFiles(request)) uploads.add(path);
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
   * @throws where the model of slot 1 cannot be loaded; the others only warn
   */
  async start(): Promise<void> {
    await this.jobs.prepare();
    this.queue.start();
  }

  /**
   * Starts no more jobs, gives running ones `graceSeconds` to finish, and puts the rest back into the queue. Training
   * stops at once, with a checkpoint to resume from; so does the preparation of a data set, after its sample.
   */
  async stop(graceSeconds: number): Promise<void> {
    clearInterval(this.#sweepTimer);
    this.#stopping.abort(new HttpError(500, "The server is stopping"));
    await Promise.all([
      this.queue.stop(graceSeconds),
      this.training.close(),
      this.labeling.close(),
      this.preparations.close(),
      this.modelPulls.close(),
    ]);
    await this.#sweeping;
  }

  /** Lets old results go; one sweep at a time. */
  sweep(): Promise<void> {
    this.#sweeping = this.#sweeping
      .then(() => this.queue.asJanitor((nowMs) => this.#retention.sweep(nowMs)))
      .then(() => this.jobs.tidy())
      .catch((err: unknown) => this.log.error({ err }, "expired audio could not be removed"));
    return this.#sweeping;
  }

  /**
   * Checks the recordings of the task and queues it. An accepted task owns the files that were uploaded for it.
   * @param caller going away ends the check, not the task
   * @throws QueueFullError where the queue has no room, HttpError 400 for a recording that cannot be worked on, 429
   * where too many of the caller wait for the check, 500 where the service stops meanwhile, DecodeError where the server
   * is at fault, StoreError where the task cannot be recorded, or the reason of the caller's signal; the task has then
   * left no trace
   */
  async submit(
    request: GenerationRequest,
    caller: Caller,
    key: SubmissionKey | null = null,
  ): Promise<AcceptedTask> {
    await this.queue.assertRoom();
    await checkWords(this.engine, request).catch((error: unknown) => {
      const refusal = refusalOf(error);
      // All else shows when the task runs.
      if (refusal instanceof RequestError) throw refusal;
    });
    const signal = AbortSignal.any([caller.signal, this.#stopping.signal]);
    const admitted = await this.jobs.inputs.admit(request, { ...caller, signal });
    const published = await this.jobs.inputs.publish(admitted);
    const origin = { submission: key, requestId: caller.requestId, share: caller.share ?? "" };
    const { task, position } = await this.queue.submit(published, origin).catch(async (error: unknown) => {
      if (published !== admitted) await this.jobs.inputs.release(published).catch(() => {});
      throw error;
    });
    return { task_id: task.id, status: "queued", queue_position: position, warnings: request.warnings };
  }

  /**
   * What `submit` answers where it is called for the first submission under the key, which others wait for; for all
   * later ones the first answer. The key lasts as long as the task.
   * @throws HttpError 422 where the first submission under the key had another body
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
    // It was removed since, and its key with it.
    if (task?.submission === undefined) return this.submitOnce(key, submit);
    const { digest, position } = task.submission;
    if (digest !== key.digest) {
      throw new HttpError(
        422,
        `Idempotency-Key ${describe(key.key)} was used for another body, that of task ${id}: send a new key`,
      );
    }
    return { task_id: id, status: "queued", queue_position: position, warnings: task.request.warnings };
  }

  async #clearOrphanAudio(namesOf: Parameters<AudioFiles["clearOrphans"]>[0]): Promise<void> {
    const quarantine = join(this.config.temporaryDirectory, "quarantine");
    try {
      for (const name of await this.audioFiles.clearOrphans(namesOf, quarantine)) {
        this.log.warn({ name, quarantine }, "audio without a record was put into quarantine");
      }
    } catch (err) {
      this.log.error({ err }, "audio without a record could not be moved, and stays where it is");
    }
  }

  /** Those who wait for a task, or follow it, hear of its end. */
  #told(task: Task): void {
    this.#endings.emit(task.id);
    this.#events.end(task.id, this.#row(task, ENDED));
  }

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

  /** A page of all tasks, newest first. It ends early where its rows are large. */
  async list(filter: CatalogFilter) {
    const { total, ids } = await this.queue.page(filter);
    const tasks: TaskRow[] = [];
    let bytes = 0;
    for (let begin = 0; begin < ids.length; begin += ROWS_AT_ONCE) {
      const rows = await Promise.all(ids.slice(begin, begin + ROWS_AT_ONCE).map((id) => this.#rowOf(id)));
      for (const row of rows) {
        // It was removed since.
        if (row === undefined) continue;
        bytes += JSON.stringify(row).length;
        if (bytes > MAX_PAGE_BYTES && tasks.length > 0) return { tasks, total, offset: filter.offset };
        tasks.push(row);
      }
    }
    return { tasks, total, offset: filter.offset };
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

  /** Undefined also where the record is damaged. */
  #read(id: string): Promise<Task | undefined> {
    return this.queue.get(id).catch((error: unknown) => {
      if (error instanceof DamagedRecordError) return undefined;
      throw error;
    });
  }

  /**
   * The events of a task, and the number of the one that has the id `lastEventId`.
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
   * What can be heard of a task until the signal fires; null of one that has ended.
   * @throws HttpError 404
   */
  async preview(id: string, signal: AbortSignal): Promise<Preview | null> {
    const { previews } = this.jobs;
    // An end that comes while the task is read ends it too.
    const preview = previews.of(id);
    preview.hold(signal);
    const task = await this.#read(id);
    if (task !== undefined && !hasEnded(task.state)) return preview;
    previews.end(id);
    if (task === undefined) throw noSuchTask(id);
    return null;
  }

  /**
   * Names a task, or makes it a favourite; undefined leaves as it is.
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
   * Lets a task go: one that waits or runs is cancelled, a finished one is removed with its songs.
   * @throws HttpError 404, or 409 where it ended before it could be cancelled; StoreError where it cannot be recorded now
   */
  async remove(id: string): Promise<"cancelled" | "deleted"> {
    if (await this.#retention.remove(id)) return "deleted";
    if (await this.queue.cancel(id)) return "cancelled";
    if ((await this.queue.get(id)) === undefined) throw noSuchTask(id);
    throw new HttpError(409, "The task ended before it could be cancelled: delete it again to remove it");
  }

  /**
   * Resolves with a task once it has ended, however.
   * @throws the signal's reason, or HttpError 500 where the service stops before
   */
  async whenEnded(id: string, signal: AbortSignal): Promise<Task> {
    const waiting = AbortSignal.any([signal, this.#stopping.signal]);
    // Rejects where the signal fires, which is asked below.
    const ended = once(this.#endings, id, { signal: waiting }).catch(() => null);
    const current = await this.queue.get(id);
    if (current !== undefined && current.finishedAtMs !== null) return current;
    await ended;
    waiting.throwIfAborted();
    const task = await this.queue.get(id);
    if (task === undefined) throw new HttpError(500, "The task was removed before it was read");
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
