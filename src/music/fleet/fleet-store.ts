/**
 * Tasks in Redis, shared by several processes. Each change is a compare-and-set script that also updates the indices,
 * so concurrent changes do not overwrite each other. API keys are never stored, and no Redis key contains text of a
 * request.
 */
import { isCallbackPending } from "../queue/callback-schedule.js";
import { type CatalogFilter, hasEnded, pageOf, summaryOf, type TaskSummary } from "../queue/catalog.js";
import { decodeTask, encodeTask } from "../queue/lmdb-store.js";
import { DamagedRecordError, TASK_STATES, type Task, type TaskState } from "../queue/store.js";
import { DuplicateSubmissionError } from "../queue/task-queue.js";
import { makeCallbackDue } from "./fleet-callbacks.js";
import type { Quarantine } from "./quarantine.js";
import { type FleetRedis, FleetUnreachableError, KEY_PREFIX, redisKey } from "./redis.js";
import { parseSummary, SummaryMirror } from "./summary-mirror.js";
import {
  DISCARD_CHANGES_SCRIPT,
  REMOVE_IDS_SCRIPT,
  REMOVE_TASK_SCRIPT,
  RESERVE_PLACE_SCRIPT,
  WRITE_TASK_SCRIPT,
} from "./task-scripts.js";

/** Number of finished tasks that are cached, to be readable while Redis is unreachable. */
const MAX_REMEMBERED = 200;
/** How long a damaged task is reported as failed. */
const LOST_SECONDS = 24 * 60 * 60;
const BATCH = 1_000;
/** Sorted sets of task ids in Redis, except those of waiting and running tasks. */
const SORTED_INDICES = ["tasks", "favorites", "ended", "state:succeeded", "state:failed"];
const HASH_INDICES = ["summaries", "routes"];

const INDEX_KEYS = [
  ...SORTED_INDICES,
  ...HASH_INDICES,
  "state:queued",
  "state:running",
  "submissions",
  "queues",
].map((name) => redisKey(name));
const CHANGE_KEYS = ["changes", "revision", "forgotten"].map((name) => redisKey(name));

interface StoredRecord {
  task: Task;
  /** First line of the stored record; contains the checksum. */
  head: Buffer;
}

export class FleetStore {
  readonly #remembered = new Map<string, Task>();
  readonly #mirror: SummaryMirror;

  constructor(
    private readonly redis: FleetRedis,
    private readonly quarantine: Quarantine,
  ) {
    this.#mirror = new SummaryMirror(redis, (ids) => this.#summaries(ids));
  }

  /** Reserves a place in the queue. Null if the queue is full. */
  async reserve(id: string, client: string, capacity: number) {
    const reserved = (await this.#eval(RESERVE_PLACE_SCRIPT, [capacity, client, id])) as
      | []
      | [number, number, number, number];
    if (reserved.length === 0) return null;
    const [sequence, turn, position, createdAtMs] = reserved;
    return { sequence, turn, position, createdAtMs };
  }

  release(id: string): Promise<void> {
    return this.drop([id]);
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

  /** Moves a damaged record to quarantine; the task is then reported as failed for a day. @throws DamagedRecordError */
  async #read(id: string): Promise<StoredRecord | undefined> {
    const key = redisKey("task", id);
    const record = await this.redis.attempt(() => this.redis.getBuffer(key));
    if (record === null) return undefined;
    try {
      return { task: decodeFleetTask(id, record), head: record.subarray(0, record.indexOf("\n")) };
    } catch (error) {
      if (error instanceof DamagedRecordError && error.kind === "corrupt") {
        await this.quarantine.moveKey(key, error.message);
        await this.#markLost(id);
      }
      throw error;
    }
  }

  /** Reports the task as failed and removes it from all lists and queues. */
  async #markLost(id: string): Promise<void> {
    await this.redis.attempt(() => this.redis.set(redisKey("task", id), "", "EX", LOST_SECONDS, "NX"));
    await this.drop([id]);
  }

  /** Removes ids without a record from all indices. */
  async drop(ids: readonly string[]): Promise<void> {
    for (let begin = 0; begin < ids.length; begin += BATCH) {
      await this.#eval(REMOVE_IDS_SCRIPT, ids.slice(begin, begin + BATCH));
    }
  }

  /** Rebuilds the indices of a task from its record. */
  async restore(id: string): Promise<Task | undefined> {
    const stored = await this.#read(id).catch((error: unknown) => {
      if (error instanceof DamagedRecordError) return undefined;
      throw error;
    });
    if (stored === undefined) await this.drop([id]);
    // If another process has changed the task meanwhile, nothing is written: that process has updated the
    // indices.
    else await this.#write(stored, stored.task);
    return stored?.task;
  }

  /** Rebuilds indices after keys were moved to quarantine. */
  async restoreAll(moved: readonly string[]): Promise<void> {
    const lost = moved.filter((key) => key.startsWith(redisKey("task", "")));
    for (const key of lost) await this.#markLost(key.slice(redisKey("task", "").length));
    const isIndexLost = moved.some((key) => INDEX_KEYS.includes(key));
    if (isIndexLost) {
      let cursor = "0";
      do {
        const [next, keys] = await this.redis.scan(cursor, "MATCH", redisKey("task", "*"), "COUNT", BATCH);
        cursor = next;
        for (const key of keys) await this.restore(key.slice(redisKey("task", "").length));
      } while (cursor !== "0");
    }
    if (isIndexLost || moved.some((key) => CHANGE_KEYS.includes(key)))
      await this.#eval(DISCARD_CHANGES_SCRIPT, []);
    // If the sequence counter was quarantined, continue from the number of the latest task. New tasks then still
    // sort last.
    if (moved.includes(redisKey("sequence"))) {
      const [, latest = "0"] = await this.redis.zrevrange(redisKey("tasks"), "0", "0", "WITHSCORES");
      await this.redis.incrby(redisKey("sequence"), latest);
    }
  }

  /** Removes ids without a task record from the indices, except reserved ids. */
  async dropForeignEntries(): Promise<void> {
    for (const name of [...SORTED_INDICES, ...HASH_INDICES]) {
      const key = redisKey(name);
      const isHash = HASH_INDICES.includes(name);
      const ids = await this.redis.attempt(() =>
        isHash ? this.redis.hkeys(key) : this.redis.zrange(key, "0", "-1"),
      );
      const foreign = await this.#withoutRecord(ids);
      const values = isHash && foreign.length > 0 ? await this.redis.hmget(key, ...foreign) : [];
      await this.quarantine.moveEntries(
        key,
        foreign.map((id, index) => [id, values[index] ?? ""]),
      );
      await this.drop(foreign);
    }
  }

  async #withoutRecord(ids: readonly string[]): Promise<string[]> {
    const missing: string[] = [];
    for (let begin = 0; begin < ids.length; begin += BATCH) {
      const batch = ids.slice(begin, begin + BATCH);
      const lengths = await this.redis.batch((pipeline) => {
        for (const id of batch) pipeline.strlen(redisKey("task", id));
      });
      missing.push(...batch.filter((_, index) => lengths[index] === 0));
    }
    return missing;
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
    if (id === null || (await this.#withoutRecord([id])).length === 0) return id;
    await this.quarantine.moveEntries(submissions, [[key, id]]);
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
    return pageOf(await this.#mirror.current(), filter);
  }

  async finished(): Promise<TaskSummary[]> {
    const ids = await this.redis.attempt(() => this.redis.zrange(redisKey("ended"), "0", "-1"));
    return (await this.#summaries(ids)).filter((summary) => summary !== undefined);
  }

  /** Summaries in the order of the ids; undefined for unknown ids. Damaged summaries are rebuilt. */
  async #summaries(ids: readonly string[]): Promise<(TaskSummary | undefined)[]> {
    const summaries: (TaskSummary | undefined)[] = [];
    for (let begin = 0; begin < ids.length; begin += BATCH) {
      const batch = ids.slice(begin, begin + BATCH);
      const texts = await this.redis.attempt(() => this.redis.hmget(redisKey("summaries"), ...batch));
      const read = texts.map((text, index) => parseSummary(batch[index] as string, text));
      const damaged = batch.flatMap((id, index) =>
        read[index] === undefined && texts[index] != null ? [[id, texts[index]] as const] : [],
      );
      await this.quarantine.moveEntries(redisKey("summaries"), damaged);
      for (const [id] of damaged) {
        const task = await this.restore(id);
        if (task !== undefined)
          read[batch.indexOf(id)] = summaryOf(task, hasEnded(task.state) ? encodeTask(task).length : 0);
      }
      summaries.push(...read);
    }
    return summaries;
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
      summary.isFavorite ? "1" : "0",
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

/** Decodes a record. All versions of the fleet wrote a checksum, so a record without one is damaged. */
function decodeFleetTask(id: string, record: Buffer): Task {
  if (record.length > 0 && record.indexOf("\n") < 0) {
    throw new DamagedRecordError(id, "corrupt", "the record has no checksum");
  }
  return decodeTask(id, record);
}

/**
 * Key of the index that contains exactly the tasks of the filter. Null if no index does; the summaries must then be
 * searched.
 */
function indexOf({ ids, state, favorite, retakesOf, search, order }: CatalogFilter): string | null {
  if (ids !== null || order === "title") return null;
  if (search.trim() !== "" || favorite === false || retakesOf !== null) return null;
  if (favorite === null) return state === null ? redisKey("tasks") : redisKey("state", state);
  return state === null ? redisKey("favorites") : null;
}
