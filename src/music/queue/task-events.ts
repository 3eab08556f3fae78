/** Streams task events to subscribers and replays missed ones on reconnect. */
import type { TaskProgress } from "../song/progress.js";
import type { TaskQueue } from "./task-queue.js";
import type { TaskRow } from "./task-row.js";

/** Data of each event of a task, by event name. Fractions are from 0 to 1; positions start at 1. */
export interface TaskEventData {
  queued: { task_id: string; position: number };
  position: { task_id: string; position: number };
  stage: { task_id: string; stage: string };
  progress: { task_id: string; progress: number; stage: string; text: string; preview_seconds: number };
  done: TaskRow;
  failed: TaskRow;
}

export type TaskEvent = {
  [Name in keyof TaskEventData]: { id: string; event: Name; data: TaskEventData[Name] };
}[keyof TaskEventData];

/** Data of the events of GET /v1/events, by event name. */
export interface ChangeEventData {
  /** First event: changes are streamed from now on. */
  ready: Record<string, never>;
  /** A task that was queued, changed or has ended. */
  task: TaskRow;
  progress: TaskEventData["progress"];
  removed: { task_id: string };
}

export type ChangeEvent = {
  [Name in keyof ChangeEventData]: { event: Name; data: ChangeEventData[Name] };
}[keyof ChangeEventData];

/** Id of the last event of every task, the same in all processes. */
export const LAST_EVENT_ID = "end";

/**
 * Names of events that supersede earlier events of the same name. A log keeps only the latest event of each
 * name.
 */
const SUPERSEDED: ReadonlySet<string> = new Set(["position", "progress"]);

interface Entry {
  number: number;
  event: TaskEvent;
}

export class TaskEventLog {
  readonly #entries: Entry[] = [];
  readonly #listeners = new Set<() => void>();
  #isClosed = false;

  get hasEnded(): boolean {
    return this.#isClosed || this.#entries.at(-1)?.event.id === LAST_EVENT_ID;
  }

  /** Ends the log without a last event. */
  close(): void {
    this.#isClosed = true;
    for (const listener of this.#listeners) listener();
  }

  get isForgettable(): boolean {
    return this.#entries.length === 0 && this.#listeners.size === 0;
  }

  get isFollowed(): boolean {
    return this.#listeners.size > 0;
  }

  add(number: number, event: TaskEvent): void {
    if (this.hasEnded) return;
    const isStale = (entry: Entry) => SUPERSEDED.has(event.event) && entry.event.event === event.event;
    const stale = this.#entries.findIndex(isStale);
    if (stale >= 0) this.#entries.splice(stale, 1);
    this.#entries.push({ number, event });
    for (const listener of this.#listeners) listener();
  }

  latest<Name extends keyof TaskEventData>(name: Name): TaskEventData[Name] | undefined {
    return this.#entries.findLast(({ event }) => event.event === name)?.event.data as
      | TaskEventData[Name]
      | undefined;
  }

  after(number: number): readonly Entry[] {
    return this.#entries.filter((entry) => entry.number > number);
  }

  /** Calls `listener` at each new event until the signal aborts. */
  onEvent(listener: () => void, signal: AbortSignal): void {
    if (signal.aborted) return;
    this.#listeners.add(listener);
    signal.addEventListener("abort", () => this.#listeners.delete(listener));
  }
}

/** Event logs of unfinished tasks. */
export class TaskEvents {
  readonly #logs = new Map<string, TaskEventLog>();
  /**
   * Start time of this process. It is part of each event id, because event numbers are valid only within one
   * process.
   */
  readonly #epoch = Date.now().toString(36);
  #lastNumber = 0;

  constructor(private readonly queue: TaskQueue) {
    queue.events.on("queued", (id, position) => this.#addQueued(this.logOf(id), id, position));
    queue.events.on("progress", (id, progress) => this.#addProgress(this.logOf(id), id, progress));
    queue.events.on("positionsChanged", () => {
      for (const [id, log] of this.#logs) if (log.isFollowed) void this.#updatePosition(log, id);
    });
  }

  /** Returns the event log of a task. Call `forget` if no subscriber stays. */
  logOf(id: string): TaskEventLog {
    const known = this.#logs.get(id);
    if (known !== undefined) return known;
    const log = new TaskEventLog();
    this.#logs.set(id, log);
    return log;
  }

  /**
   * Adds events that describe the current state, unless the log has them. Read the stored task only after this
   * call: the task's end is then either stored or in the log.
   */
  async addState(log: TaskEventLog, id: string): Promise<void> {
    const { progress, position } = await this.queue.live(id);
    if (progress !== undefined && log.latest("stage") === undefined) this.#addProgress(log, id, progress);
    if (log.latest("queued") === undefined) this.#addQueued(log, id, position);
    this.#addPosition(log, id, position);
  }

  get size(): number {
    return this.#logs.size;
  }

  /** Deletes the log of a task if it has no events and no subscribers. */
  forget(id: string): void {
    if (this.#logs.get(id)?.isForgettable) this.#logs.delete(id);
  }

  /** Adds the last event of a task, and deletes the log. */
  end(id: string, row: TaskRow): void {
    const event = row.state === "succeeded" ? "done" : "failed";
    this.#logs.get(id)?.add(++this.#lastNumber, { id: LAST_EVENT_ID, event, data: row });
    this.#logs.delete(id);
  }

  /** Ends the log of a task whose record is gone. */
  close(id: string): void {
    this.#logs.get(id)?.close();
    this.#logs.delete(id);
  }

  /** Returns the number in an event id. An id from another process gives 0, which is before all events. */
  numberOf(eventId: string): number {
    const [epoch, number] = eventId.split("-");
    return epoch === this.#epoch ? Number(number) || 0 : 0;
  }

  #addQueued(log: TaskEventLog, id: string, position: number | undefined): void {
    if (position !== undefined) this.#add(log, "queued", { task_id: id, position });
  }

  /**
   * Adds an event with the queue position. Adds none if the task has started meanwhile or the queue does not
   * answer.
   */
  async #updatePosition(log: TaskEventLog, id: string): Promise<void> {
    const stage = log.latest("stage");
    const { position } = await this.queue.live(id).catch(() => ({ position: undefined }));
    if (log.latest("stage") === stage) this.#addPosition(log, id, position);
  }

  #addPosition(log: TaskEventLog, id: string, position: number | undefined): void {
    const last = (log.latest("position") ?? log.latest("queued"))?.position;
    if (position !== undefined && position !== last) this.#add(log, "position", { task_id: id, position });
  }

  #addProgress(log: TaskEventLog, id: string, { value, stage, text, previewSeconds }: TaskProgress): void {
    if (log.latest("stage")?.stage !== stage) this.#add(log, "stage", { task_id: id, stage });
    const preview_seconds = previewSeconds;
    this.#add(log, "progress", { task_id: id, progress: value, stage, text, preview_seconds });
  }

  #add<Name extends keyof TaskEventData>(log: TaskEventLog, event: Name, data: TaskEventData[Name]): void {
    const number = ++this.#lastNumber;
    log.add(number, { id: `${this.#epoch}-${number}`, event, data } as TaskEvent);
  }
}
