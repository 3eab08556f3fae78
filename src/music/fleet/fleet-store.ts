/**
 * Tasks in Redis, shared by several processes. Each change is a compare-and-set script that also updates the indices,
 * so concurrent changes do not overwrite each other. API keys are never stored, and no Redis key contains text of a
 * request.
 */
import { isCallbackPending } from "../queue/callback-schedule.js";
import {
  type CatalogFilter,
  hasEnded,
  pageOf,
  summaryOf,
  summarySchema,
  type TaskSummary,
} from "../queue/catalog.js";
import { decodeTask, encodeTask } from "../queue/lmdb-store.js";
import { DamagedRecordError, TASK_STATES, type Task, type TaskState } from "../queue/store.js";
import { DuplicateSubmissionError } from "../queue/task-queue.js";
import { makeCallbackDue } from "./fleet-callbacks.js";
import { parseJson } from "./messages.js";
import { type FleetRedis, FleetUnreachableError, isDataFault, KEY_PREFIX, redisKey } from "./redis.js";
import {
  DROP_ID_SCRIPT,
  REMOVE_TASK_SCRIPT,
  RESERVE_PLACE_SCRIPT,
  WRITE_TASK_SCRIPT,
} from "./task-scripts.js";

/** Number of finished tasks that are cached, to be readable while Redis is unreachable. */
const MAX_REMEMBERED = 200;
/** How long a damaged task is reported as failed. */
const LOST_SECONDS = 24 * 60 * 60;
const BATCH = 1_000;
const SUMMARIES = redisKey("summaries");

interface StoredRecord {
  task: Task;
  /** First line of the stored record; contains the checksum. */
  head: Buffer;
}

export class FleetStore {
  readonly #remembered = new Map<string, Task>();

  constructor(private readonly redis: FleetRedis) {}

  /** Reserves a place in the queue. Null if the queue is full. */
  async reserve(id: string, client: string, capacity: number) {
    const reserved = (await this.#eval(RESERVE_PLACE_SCRIPT, [capacity, client, id])) as
      | []
      | [number, number, number, number];
    if (reserved.length === 0) return null;
    const [sequence, turn, position, createdAtMs] = reserved;
    return { sequence, turn, position, createdAtMs };
  }

  /** Removes the id of a task without a record from all indices, and so gives back a reserved place. */
  async release(id: string): Promise<void> {
    await this.#eval(DROP_ID_SCRIPT, [id]);
  }

  /**
   * @param deadlineMs time on Redis's clock after which the task is not stored any more; 0: no limit
   * @throws DuplicateSubmissionError; FleetUnreachableError, after which the task may be stored
   */
  async add(task: Task, deadlineMs = 0): Promise<void> {
    const written = await this.#write(null, task, deadlineMs);
    if (written === 0) throw new DuplicateSubmissionError();
    if (written === -1) throw new FleetUnreachableError("Redis answered too late");
  }

  /** @throws DamagedRecordError; FleetUnreachableError if Redis fails and the task is not in the cache */
  async get(id: string): Promise<Task | undefined> {
    try {
      const stored = await this.#read(id);
      return stored && this.#remember(stored.task);
    } catch (error) {
      const remembered = this.#remembered.get(id);
      if (error instanceof FleetUnreachableError && remembered !== undefined) return remembered;
      throw error;
    }
  }

  /** Resolves with the task after the change. `change` may return its argument, and may be called several times. */
  async update(id: string, change: (task: Task, nowMs: number) => Task): Promise<Task | undefined> {
    for (;;) {
      const [current, nowMs] = await Promise.all([this.#read(id), this.redis.timeMs()]);
      if (current === undefined) return undefined;
      const next = change(current.task, nowMs);
      if (next === current.task) return next;
      if ((await this.#write(current, next)) !== 1) continue;
      // If this process dies before it makes the callback due, a gateway does so within a minute.
      if (!hasEnded(current.task.state) && hasEnded(next.state) && isCallbackPending(next)) {
        await makeCallbackDue(this.redis, id).catch(() => {});
      }
      return this.#remember(next);
    }
  }

  /** A task with a damaged record leaves all lists, and is reported as failed for a day. @throws DamagedRecordError */
  async #read(id: string): Promise<StoredRecord | undefined> {
    const key = redisKey("task", id);
    try {
      const record = await this.redis.attempt(() =>
        this.redis.getBuffer(key).catch((error: unknown) => {
          throw isDataFault(error) ? new DamagedRecordError(id, "corrupt", "it is no text") : error;
        }),
      );
      if (record === null) return undefined;
      return { task: decodeTask(id, record), head: record.subarray(0, record.indexOf("\n")) };
    } catch (error) {
      if (error instanceof DamagedRecordError && error.kind === "corrupt") {
        this.redis.logUnreadable(redisKey("task"), error.message);
        await this.redis.attempt(() => this.redis.set(key, "", "EX", LOST_SECONDS));
        await this.release(id);
      }
      throw error;
    }
  }

  async remove(id: string, prepare?: (task: TaskSummary) => Promise<void>): Promise<TaskSummary | undefined> {
    const [summary] = await this.#summaries([id]);
    if (summary === undefined || !hasEnded(summary.state)) return undefined;
    await prepare?.(summary);
    this.#remembered.delete(id);
    const isRemoved = await this.#eval(REMOVE_TASK_SCRIPT, [id, summary.submissionKey ?? ""]);
    return isRemoved === 1 ? summary : undefined;
  }

  async submittedAs(key: string): Promise<string | null> {
    const submissions = redisKey("submissions");
    const id = await this.redis.attempt(() => this.redis.hget(submissions, key));
    if (id === null) return null;
    if ((await this.redis.attempt(() => this.redis.strlen(redisKey("task", id)))) > 0) return id;
    // The task was lost.
    await this.redis.attempt(() => this.redis.hdel(submissions, key));
    return null;
  }

  async page(filter: CatalogFilter): Promise<{ total: number; ids: string[] }> {
    const { offset, limit, order } = filter;
    const index = indexOf(filter);
    if (index !== null) {
      const last = offset + limit - 1;
      const [total, ids] = (await this.redis.batch((pipeline) => {
        pipeline.zcard(index);
        if (order === "oldest") pipeline.zrange(index, String(offset), String(last));
        else pipeline.zrevrange(index, offset, last);
      })) as [number, string[]];
      return { total, ids };
    }
    const texts = await this.redis.attempt(() => this.redis.hvals(SUMMARIES));
    return pageOf(
      texts.flatMap((text) => this.#summaryIn(text) ?? []),
      filter,
    );
  }

  async finished(): Promise<TaskSummary[]> {
    const ids = await this.redis.attempt(() => this.redis.zrange(redisKey("ended"), "0", "-1"));
    return (await this.#summaries(ids)).filter((summary) => summary !== undefined);
  }

  /** Summaries in the order of the ids; undefined for unknown ids and for summaries that cannot be read. */
  async #summaries(ids: readonly string[]): Promise<(TaskSummary | undefined)[]> {
    const summaries: (TaskSummary | undefined)[] = [];
    for (let begin = 0; begin < ids.length; begin += BATCH) {
      const batch = ids.slice(begin, begin + BATCH);
      const texts = await this.redis.attempt(() => this.redis.hmget(SUMMARIES, ...batch));
      summaries.push(...texts.map((text) => (text === null ? undefined : this.#summaryIn(text))));
    }
    return summaries;
  }

  #summaryIn(text: string): TaskSummary | undefined {
    const { data } = summarySchema.safeParse(parseJson(text));
    if (data === undefined) this.redis.logUnreadable(SUMMARIES, "it is not a task's summary");
    return data;
  }

  async unfinished(): Promise<string[]> {
    const states = (await this.redis.batch((pipeline) =>
      pipeline.zrange(redisKey("state", "queued"), "0", "-1").zrange(redisKey("state", "running"), "0", "-1"),
    )) as string[][];
    return states.flat();
  }

  async counts(): Promise<Record<TaskState | "total", number>> {
    const [queued, running, succeeded, failed] = (await this.redis.batch((pipeline) => {
      for (const state of TASK_STATES) pipeline.zcard(redisKey("state", state));
    })) as number[] as [number, number, number, number];
    return { total: queued + running + succeeded + failed, queued, running, succeeded, failed };
  }

  /** The tasks that have ended or were removed. */
  async endedAmong(ids: readonly string[]): Promise<string[]> {
    const scores = await this.redis.batch((pipeline) => {
      for (const id of ids) pipeline.zscore(redisKey("ended"), id).zscore(redisKey("tasks"), id);
    });
    return ids.filter((_, index) => scores[2 * index] !== null || scores[2 * index + 1] === null);
  }

  /** @param current the stored record; null for a new task */
  #write(current: StoredRecord | null, task: Task, deadlineMs = 0): Promise<unknown> {
    const record = encodeTask(task);
    const summary = summaryOf(task, hasEnded(task.state) ? record.length : 0);
    const { id, sequence, state } = task;
    const ends = hasEnded(state) && current !== null && !hasEnded(current.task.state);
    return this.#eval(WRITE_TASK_SCRIPT, [
      current?.head ?? "",
      record,
      id,
      sequence,
      state,
      JSON.stringify(summary),
      summary.finishedAtMs ?? "",
      summary.submissionKey ?? "",
      task.route ?? "",
      task.turn ?? 0,
      this.redis.eventsChannel,
      ends ? "1" : "0",
      deadlineMs,
    ]);
  }

  #eval(script: string, args: readonly (string | number | Buffer)[]): Promise<unknown> {
    return this.redis.attempt(() => this.redis.eval(script, 0, KEY_PREFIX, ...args));
  }

  #remember(task: Task): Task {
    if (!hasEnded(task.state)) return task;
    this.#remembered.delete(task.id);
    this.#remembered.set(task.id, task);
    const [oldest] = this.#remembered.keys();
    if (this.#remembered.size > MAX_REMEMBERED) this.#remembered.delete(oldest as string);
    return task;
  }
}

/**
 * Key of the index that contains exactly the tasks of the filter. Null if no index does; the summaries must then be
 * searched.
 */
function indexOf({
  ids,
  state,
  favorite,
  analysis,
  temporary,
  retakesOf,
  search,
  order,
}: CatalogFilter): string | null {
  if (ids !== null || order === "title") return null;
  if (search.trim() !== "" || retakesOf !== null) return null;
  if (favorite !== null || analysis !== null || temporary !== null) return null;
  return state === null ? redisKey("tasks") : redisKey("state", state);
}
