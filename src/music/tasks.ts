/** Operations on tasks for clients: read, follow events, change, remove. */
import { EventEmitter, once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import type { z } from "zod";
import { say } from "../notes.js";
import { describe, type Fields } from "../parameters.js";
import { type FoundAudio, songOf } from "./audio/audio-files.js";
import type { SongTags } from "./audio/tags.js";
import { type UploadKind, type Uploads, uploadKind } from "./audio/uploads.js";
import { HttpError, StoreError } from "./errors.js";
import { type CatalogFilter, hasEnded } from "./queue/catalog.js";
import type { Retention } from "./queue/retention.js";
import { DamagedRecordError, type Task, type TaskState } from "./queue/store.js";
import { type TaskEventLog, TaskEvents } from "./queue/task-events.js";
import type { LiveState, TaskQueue } from "./queue/task-queue.js";
import { type TaskRow, taskRow, taskRowWithCodes } from "./queue/task-row.js";
import { retryDelayMs } from "./queue/task-run.js";
import {
  damagedTaskStatus,
  type TaskStatusItem,
  taskStatus,
  unknownTaskStatus,
} from "./queue/task-status.js";
import { lostUploadFields, parametersOf } from "./request/replay.js";
import type { taskChanges } from "./request/service-bodies.js";
import type { Preview, Previews } from "./song/preview.js";
import type { TaskProgress } from "./song/progress.js";
import { titleOf, versionLetter } from "./song/title.js";
import type { TaskFiles } from "./task-files.js";

/** Maximum number of task records read at once. It is small because a record may be large. */
const ROWS_AT_ONCE = 8;
/** Maximum size of a page of tasks. A page may therefore have fewer tasks than requested. */
const MAX_PAGE_BYTES = 8 * 2 ** 20;

const ENDED: LiveState = { progress: undefined, position: undefined };

export class Tasks {
  readonly #events: TaskEvents;
  /** Emits the id of every ended task. */
  readonly #endings = new EventEmitter();
  readonly #changes = new EventEmitter<{ change: [id: string, progress: TaskProgress | null] }>();

  /**
   * @param detail removes server paths from error messages for clients, see `detailFilter`
   * @param stopping fires when the service stops; ends `whenEnded`
   */
  constructor(
    private readonly queue: TaskQueue,
    private readonly files: TaskFiles,
    private readonly previews: Previews,
    private readonly retention: Retention,
    private readonly detail: (detail: string) => string,
    private readonly stopping: AbortSignal,
  ) {
    queue.events.on("ended", (task) => {
      this.#endings.emit(task.id);
      this.#events.end(task.id, this.#row(task, ENDED));
    });
    queue.events.on("removed", (id) => {
      this.#endings.emit(id);
      this.#events.close(id);
    });
    this.#events = new TaskEvents(queue);
    this.#changes.setMaxListeners(0);
    const emit = (id: string, progress: TaskProgress | null = null) =>
      this.#changes.emit("change", id, progress);
    queue.events.on("queued", (id) => emit(id));
    queue.events.on("progress", (id, progress) => emit(id, progress));
    queue.events.on("ended", ({ id }) => emit(id));
    queue.events.on("removed", (id) => emit(id));
    queue.events.on("updated", (id) => emit(id));
  }

  /**
   * Calls `onChange` for each change of any task, until the signal aborts.
   * @param onChange its second argument is null unless only the progress has changed
   */
  watch(onChange: (id: string, progress: TaskProgress | null) => void, signal: AbortSignal): void {
    if (signal.aborted) return;
    this.#changes.on("change", onChange);
    signal.addEventListener("abort", () => this.#changes.off("change", onChange));
  }

  get eventLogs(): number {
    return this.#events.size;
  }

  /** Returns the status item of a task. An unknown id gets status 0 and the stage `unknown`. */
  async status(id: string): Promise<TaskStatusItem> {
    try {
      const task = await this.queue.get(id);
      if (task === undefined) return unknownTaskStatus(id);
      return taskStatus(this.#shown(task), await this.#live(task), this.files.songs);
    } catch (error) {
      if (error instanceof DamagedRecordError) return damagedTaskStatus(id, error.message);
      throw error;
    }
  }

  /** Returns the status item that the callback of an ended task contains. */
  statusOf(task: Task): TaskStatusItem {
    return taskStatus(this.#shown(task), ENDED, this.files.songs);
  }

  async #live({ id, state }: Task): Promise<LiveState> {
    return hasEnded(state) ? ENDED : this.queue.live(id);
  }

  #shown(task: Task): Task {
    return { ...task, error: task.error === null ? null : this.detail(task.error) };
  }

  #row(task: Task, live: LiveState): TaskRow {
    return taskRow(this.#shown(task), live, this.files.songs);
  }

  /**
   * Returns a page of tasks in the order of the filter. The page has fewer tasks than requested if their rows are
   * large.
   */
  async list(filter: CatalogFilter) {
    const { total, ids } = await this.queue.page(filter);
    const tasks: TaskRow[] = [];
    let bytes = 0;
    for (let begin = 0; begin < ids.length; begin += ROWS_AT_ONCE) {
      const rows = await Promise.all(ids.slice(begin, begin + ROWS_AT_ONCE).map((id) => this.row(id)));
      for (const row of rows) {
        // The task was deleted meanwhile.
        if (row === undefined) continue;
        bytes += JSON.stringify(row).length;
        if (bytes > MAX_PAGE_BYTES && tasks.length > 0) return { tasks, total, offset: filter.offset };
        tasks.push(row);
      }
    }
    return { tasks, total, offset: filter.offset };
  }

  /** Returns a task as lists show it; undefined if it is unknown or its record is damaged. */
  async row(id: string): Promise<TaskRow | undefined> {
    const task = await this.#read(id);
    return task && this.#row(task, await this.#live(task));
  }

  /** @throws HttpError 404 */
  async get(id: string): Promise<TaskRow> {
    const task = await this.#read(id);
    if (task === undefined) throw noSuchTask(id);
    return taskRowWithCodes(this.#shown(task), await this.#live(task), this.files.songs);
  }

  /** Reads a task; undefined if it is unknown or its record is damaged. */
  #read(id: string): Promise<Task | undefined> {
    return unlessDamaged(this.queue.get(id));
  }

  /** Returns title, version letter and tags of the song at a path; null if no task has this file. */
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

  /**
   * Finds an upload that is still stored; null if `path` does not refer to one.
   * @throws StoreError, or the signal's reason
   */
  async keptUpload(path: string, signal: AbortSignal): Promise<FoundAudio | null> {
    const found = await this.files.inputs.keptUpload(path, signal);
    return found === null ? null : { path: found, stored: null };
  }

  /** Returns the event log of a task, and the number of the event `lastEventId` in this log. @throws HttpError 404 */
  async follow(id: string, lastEventId: string): Promise<{ log: TaskEventLog; number: number }> {
    const log = this.#events.logOf(id);
    try {
      await this.#events.addState(log, id);
      const task = await this.#read(id);
      if (task === undefined) throw noSuchTask(id);
      if (task.finishedAtMs === null) return { log, number: this.#events.numberOf(lastEventId) };
      this.#events.end(id, this.#row(task, ENDED));
      return { log, number: 0 };
    } catch (error) {
      this.#events.forget(id);
      throw error;
    }
  }

  /**
   * Returns the preview of a running task; null if the task has ended. Memory for the preview is held until the
   * signal fires.
   * @throws HttpError 404
   */
  async preview(id: string, signal: AbortSignal): Promise<Preview | null> {
    // Register the listener before reading the task. If the task ends in between, the preview then ends, too.
    const preview = this.previews.of(id);
    preview.addListener(signal);
    const task = await this.#read(id);
    if (task !== undefined && !hasEnded(task.state)) return preview;
    this.previews.end(id);
    if (task === undefined) throw noSuchTask(id);
    return null;
  }

  /**
   * Returns the request body for a retake (without seeds), the defaults of the original request's endpoint, and the id of
   * the first task in the group of retakes.
   * @throws HttpError 404; 409 if an upload of the task was deleted, and `sent` does not contain it again
   */
  async retakeOf(
    id: string,
    sent: Uploads,
  ): Promise<{ first: string; parameters: Fields; defaults: Fields | undefined }> {
    const task = await this.#read(id);
    if (task === undefined) throw noSuchTask(id);
    const { seed: _seed, use_random_seed: _random, ...parameters } = parametersOf(task);
    const lost = lostUploadFields(task).filter((field) => sent[uploadKind(field) as UploadKind] === null);
    if (lost.length > 0) {
      throw new HttpError(
        409,
        `The upload of the task is no longer stored: send ${lost.join(" and ")} again`,
      );
    }
    return { first: task.retakeOf ?? id, parameters, defaults: task.request.defaults };
  }

  /** Sets title or marks; undefined leaves a value unchanged. @throws HttpError 404 */
  async mark(id: string, { title, favorite, temporary }: z.output<typeof taskChanges>): Promise<TaskRow> {
    const change = (current: Task) => ({
      ...current,
      ...(title === undefined ? {} : { title }),
      ...(favorite === undefined ? {} : { favorite }),
      ...(temporary === undefined ? {} : { isTemporary: temporary }),
    });
    const task = await unlessDamaged(this.queue.update(id, change));
    if (task === undefined) throw noSuchTask(id);
    return this.#row(task, await this.#live(task));
  }

  /**
   * Removes a task whose state is in `states`: cancels a waiting or running task, deletes an ended one with its
   * songs.
   * @throws HttpError 404, or 409 in another state; StoreError if the removal cannot be recorded
   */
  async remove(id: string, states: readonly TaskState[]): Promise<"cancelled" | "deleted"> {
    const task = await this.#read(id);
    if (task === undefined) throw noSuchTask(id);
    const { state } = this.#row(task, await this.#live(task));
    if (!states.includes(state)) {
      throw new HttpError(409, `The task is ${state}: to remove it in this state, add ?state=${state}`);
    }
    if (await (hasEnded(state) ? this.retention.remove(id) : this.queue.cancel(id))) {
      return hasEnded(state) ? "deleted" : "cancelled";
    }
    if ((await this.#read(id)) === undefined) throw noSuchTask(id);
    throw new HttpError(
      409,
      `The task was ${state} and ended before it could be removed: read its state again`,
    );
  }

  /** @throws HttpError 404 if no waiting or running task has this id; StoreError */
  async cancel(id: string): Promise<void> {
    if (!(await unlessDamaged(this.queue.cancel(id))))
      throw new HttpError(404, "No waiting or running task has this id");
  }

  /**
   * Waits until the task has ended, also while the task store does not answer.
   * @throws the reason of the signal, or HttpError 500 if the service stops first or the task is removed
   */
  async whenEnded(id: string, signal: AbortSignal): Promise<Task> {
    const waiting = AbortSignal.any([signal, this.stopping]);
    // If the signal fires, `once` rejects. The rejection is ignored, because `throwIfAborted` below throws.
    const ended = once(this.#endings, id, { signal: waiting }).catch(() => null);
    const current = await this.#untilRead(id, waiting);
    if (current.finishedAtMs !== null) return current;
    await ended;
    waiting.throwIfAborted();
    return this.#untilRead(id, waiting);
  }

  async #untilRead(id: string, signal: AbortSignal): Promise<Task> {
    for (let attempt = 0; ; attempt++) {
      try {
        const task = await this.queue.get(id);
        if (task === undefined) throw new HttpError(500, "The task was deleted before its result was read");
        return task;
      } catch (error) {
        if (!(error instanceof StoreError)) throw error;
        await sleep(retryDelayMs(attempt), undefined, { signal }).catch(() => signal.throwIfAborted());
      }
    }
  }
}

/** Undefined if the record of the task is damaged: clients may do as little with it as with an unknown task. */
function unlessDamaged<T>(work: Promise<T>): Promise<T | undefined> {
  return work.catch((error: unknown) => {
    if (error instanceof DamagedRecordError) return undefined;
    throw error;
  });
}

function noSuchTask(id: string): HttpError {
  return new HttpError(404, say("task_gone", { id: describe(id) }));
}
