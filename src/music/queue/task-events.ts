/** What happens to a task, told as it happens to whoever follows it, and again to whoever comes back. */
import type { TaskProgress } from "../song/progress.js";
import type { JobQueue } from "./job-queue.js";
import type { TaskRow } from "./task-row.js";

/** What the events of a task say, by their names. Shares are from 0 to 1, positions begin at 1. */
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

/** The id of a task's last event, whatever process tells it. */
export const LAST_EVENT_ID = "end";

/** Only the latest of each of these is kept: it says all that those before it said. */
const SUPERSEDED: ReadonlySet<string> = new Set(["position", "progress"]);

interface Entry {
  number: number;
  event: TaskEvent;
}

/** The events of one task. */
export class TaskLog {
  readonly #entries: Entry[] = [];
  readonly #listeners = new Set<() => void>();

  get hasEnded(): boolean {
    return this.#entries.at(-1)?.event.id === LAST_EVENT_ID;
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

  /** What came after the event of this number. */
  after(number: number): readonly Entry[] {
    return this.#entries.filter((entry) => entry.number > number);
  }

  /** `listener` is called at every new event, until the signal fires. */
  onEvent(listener: () => void, signal: AbortSignal): void {
    if (signal.aborted) return;
    this.#listeners.add(listener);
    signal.addEventListener("abort", () => this.#listeners.delete(listener));
  }
}

/** The logs of all tasks that have not ended. */
export class TaskEvents {
  readonly #logs = new Map<string, TaskLog>();
  /** Numbers of another process mean nothing here. */
  readonly #epoch = Date.now().toString(36);
  #lastNumber = 0;

  constructor(private readonly queue: JobQueue) {
    queue.events.on("queued", (id, position) => this.#tellQueued(this.#logOf(id), id, position));
    queue.events.on("progress", (id, progress) => this.#tellProgress(this.#logOf(id), id, progress));
    queue.events.on("moved", () => {
      for (const [id, log] of this.#logs) if (log.isFollowed) void this.#tellMoved(log, id);
    });
  }

  /** The log of a task, which begins with how the task stands. Ask what is stored of the task after, not before. */
  async follow(id: string): Promise<TaskLog> {
    const log = this.#logOf(id);
    const { progress, position } = await this.queue.live(id);
    if (progress !== undefined && log.latest("stage") === undefined) this.#tellProgress(log, id, progress);
    if (log.latest("queued") === undefined) this.#tellQueued(log, id, position);
    this.#tellPosition(log, id, position);
    return log;
  }

  /** For a log that nobody follows after all. */
  forget(id: string): void {
    if (this.#logs.get(id)?.isForgettable) this.#logs.delete(id);
  }

  /** The last event of a task; later ones are not told. */
  end(id: string, row: TaskRow): void {
    const event = row.state === "succeeded" ? "done" : "failed";
    this.#logs.get(id)?.add(++this.#lastNumber, { id: LAST_EVENT_ID, event, data: row });
    this.#logs.delete(id);
  }

  /** The number in the id of an event; 0, before all of them, where it is of another process. */
  numberOf(eventId: string): number {
    const [epoch, number] = eventId.split("-");
    return epoch === this.#epoch ? Number(number) || 0 : 0;
  }

  #logOf(id: string): TaskLog {
    const known = this.#logs.get(id);
    if (known !== undefined) return known;
    const log = new TaskLog();
    this.#logs.set(id, log);
    return log;
  }

  #tellQueued(log: TaskLog, id: string, position: number | undefined): void {
    if (position !== undefined) this.#add(log, "queued", { task_id: id, position });
  }

  /** Nothing where the task has begun, or the queue cannot say, while it was asked. */
  async #tellMoved(log: TaskLog, id: string): Promise<void> {
    const stage = log.latest("stage");
    const { position } = await this.queue.live(id).catch(() => ({ position: undefined }));
    if (log.latest("stage") === stage) this.#tellPosition(log, id, position);
  }

  #tellPosition(log: TaskLog, id: string, position: number | undefined): void {
    const told = (log.latest("position") ?? log.latest("queued"))?.position;
    if (position !== undefined && position !== told) this.#add(log, "position", { task_id: id, position });
  }

  #tellProgress(log: TaskLog, id: string, { value, stage, text, previewSeconds }: TaskProgress): void {
    if (log.latest("stage")?.stage !== stage) this.#add(log, "stage", { task_id: id, stage });
    const preview_seconds = previewSeconds;
    this.#add(log, "progress", { task_id: id, progress: value, stage, text, preview_seconds });
  }

  #add<Name extends keyof TaskEventData>(log: TaskLog, event: Name, data: TaskEventData[Name]): void {
    const number = ++this.#lastNumber;
    log.add(number, { id: `${this.#epoch}-${number}`, event, data } as TaskEvent);
  }
}
