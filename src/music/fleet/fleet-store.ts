/** Tasks in Redis, for several processes: each change is made once, whoever else changes the task meanwhile. */
import type { Redis } from "ioredis";
import { type CatalogFilter, hasEnded, pageOf, summaryOf, type TaskSummary } from "../queue/catalog.js";
import { SubmissionTakenError } from "../queue/job-queue.js";
import { decodeTask, encodeTask } from "../queue/lmdb-store.js";
import type { Task, TaskState } from "../queue/store.js";
import { FleetUnreachableError, keyOf, PREFIX, piped, reached, timeMs } from "./redis.js";
import { NOTE_CHANGE, readSummaries, SummaryMirror } from "./summary-mirror.js";

const STATES: readonly TaskState[] = ["queued", "running", "succeeded", "failed"];
/** Finished tasks that this process remembers for those who ask while Redis is gone. */
const MAX_REMEMBERED = 200;
/** Turns are priorities of BullMQ, whose largest this is. They begin anew whenever no task waits or runs. */
const MAX_TURN = 2 ** 21 - 1;

/**
 * Room and a place for a new task: its sequence, its turn (see `Turns` of the queue's rules), how many wait, and the
 * adapters of its model. Nothing where there is no room.
 */
const RESERVE = `
local p, capacity, share, id, model = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4], ARGV[5]
local waiting = redis.call('ZCARD', p .. ':state:queued')
if capacity > 0 and waiting >= capacity then return {} end
if waiting + redis.call('ZCARD', p .. ':state:running') == 0 then redis.call('DEL', p .. ':turn', p .. ':turns') end
local current = tonumber(redis.call('GET', p .. ':turn') or 0)
local last = tonumber(redis.call('HGET', p .. ':turns', share) or 0)
local turn = math.min(math.max(current, last + 1), ${MAX_TURN})
redis.call('HSET', p .. ':turns', share, turn)
local sequence = redis.call('INCR', p .. ':sequence')
redis.call('ZADD', p .. ':state:queued', sequence, id)
return {sequence, turn, waiting + 1, redis.call('HGET', p .. ':adapters', model)}`;

/**
 * Stores a record with all that is known of it, if it still is the one that begins with ARGV[2] ('': if there is none).
 * Once a task has begun no new one gets a turn before its. An end is told in the same step, so that nobody waits in vain
 * for one whose worker died behind it.
 */
const WRITE = `${NOTE_CHANGE}
local p, head, record, id, sequence = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local state, summary, favorite, ended, submission, route = ARGV[6], ARGV[7], ARGV[8], ARGV[9], ARGV[10], ARGV[11]
local turn = tonumber(ARGV[12])
local key = p .. ':task:' .. id
if head == '' then
  if submission ~= '' and redis.call('HSETNX', p .. ':submissions', submission, id) == 0 then
    redis.call('ZREM', p .. ':state:queued', id)
    return 0
  end
  redis.call('SADD', p .. ':queues', route)
elseif redis.call('GETRANGE', key, 0, #head - 1) ~= head then
  return 0
end
redis.call('SET', key, record)
redis.call('ZADD', p .. ':tasks', sequence, id)
for _, other in ipairs({'queued', 'running', 'succeeded', 'failed'}) do
  if other ~= state then redis.call('ZREM', p .. ':state:' .. other, id) end
end
redis.call('ZADD', p .. ':state:' .. state, sequence, id)
redis.call('HSET', p .. ':summaries', id, summary)
redis.call('HSET', p .. ':routes', id, route)
if favorite == '1' then redis.call('ZADD', p .. ':favorites', sequence, id)
else redis.call('ZREM', p .. ':favorites', id) end
if state == 'running' and turn > tonumber(redis.call('GET', p .. ':turn') or 0) then redis.call('SET', p .. ':turn', turn) end
if ended ~= '' and redis.call('ZADD', p .. ':ended', ended, id) == 1 then
  redis.call('PUBLISH', p .. ':events', cjson.encode({type = 'ended', id = id}))
end
noteChange(p, id)
return 1`;

const REMOVE = `${NOTE_CHANGE}
local p, id, submission = ARGV[1], ARGV[2], ARGV[3]
if redis.call('ZREM', p .. ':ended', id) == 0 then return 0 end
redis.call('DEL', p .. ':task:' .. id, p .. ':progress:' .. id)
for _, key in ipairs({'tasks', 'favorites', 'state:succeeded', 'state:failed'}) do redis.call('ZREM', p .. ':' .. key, id) end
redis.call('HDEL', p .. ':summaries', id)
redis.call('HDEL', p .. ':routes', id)
if submission ~= '' then redis.call('HDEL', p .. ':submissions', submission) end
noteChange(p, id)
return 1`;

export class FleetStore {
  readonly #remembered = new Map<string, Task>();
  readonly #mirror: SummaryMirror;

  constructor(private readonly redis: Redis) {
    this.#mirror = new SummaryMirror(redis);
  }

  /** Null where there is no room. */
  async reserve(id: string, share: string, capacity: number, model: string) {
    const reserved = (await this.#eval(RESERVE, [capacity, share, id, model])) as
      | []
      | [number, number, number, string?];
    if (reserved.length === 0) return null;
    const [sequence, turn, position, adapters = null] = reserved;
    return { sequence, turn, position, adapters };
  }

  /** Gives back what was reserved. */
  async release(id: string): Promise<void> {
    await reached(() => this.redis.zrem(keyOf("state", "queued"), id));
  }

  /** @throws SubmissionTakenError */
  async add(task: Task): Promise<void> {
    if ((await this.#write(task, "")) === 0) throw new SubmissionTakenError();
  }

  /** @throws DamagedRecordError; FleetUnreachableError where it is not among the last that this process saw the end of */
  async get(id: string): Promise<Task | undefined> {
    try {
      const record = await reached(() => this.redis.getBuffer(keyOf("task", id)));
      return record === null ? undefined : this.#remember(decodeTask(id, record));
    } catch (error) {
      const remembered = this.#remembered.get(id);
      if (error instanceof FleetUnreachableError && remembered !== undefined) return remembered;
      throw error;
    }
  }

  /** Resolves with the task as it then is; `change` may return its argument, and may be called several times. */
  async update(id: string, change: (task: Task, nowMs: number) => Task): Promise<Task | undefined> {
    for (;;) {
      const read = reached(() => this.redis.getBuffer(keyOf("task", id)));
      const [record, nowMs] = await Promise.all([read, timeMs(this.redis)]);
      if (record === null) return undefined;
      const current = decodeTask(id, record);
      const next = change(current, nowMs);
      if (next === current) return current;
      const head = record.subarray(0, record.indexOf("\n")).toString("latin1");
      if ((await this.#write(next, head)) === 1) return this.#remember(next);
    }
  }

  /** Forgets a task that has ended; undefined where none of this id has. */
  async remove(id: string): Promise<TaskSummary | undefined> {
    const [summary] = await readSummaries(this.redis, [id]);
    if (summary === undefined || !hasEnded(summary.state)) return undefined;
    this.#remembered.delete(id);
    const isRemoved = await this.#eval(REMOVE, [id, summary.submissionKey ?? ""]);
    return isRemoved === 1 ? summary : undefined;
  }

  submittedAs(key: string): Promise<string | null> {
    return reached(() => this.redis.hget(keyOf("submissions"), key));
  }

  /** The ids of the tasks that the filter fits, newest first, and how many fit in all. */
  async page(filter: CatalogFilter): Promise<{ total: number; ids: string[] }> {
    const { offset, limit } = filter;
    const index = indexOf(filter);
    if (index !== null) {
      const counted = this.redis
        .pipeline()
        .zcard(index)
        .zrevrange(index, offset, offset + limit - 1);
      const [total, ids] = (await reached(() => piped(counted))) as [number, string[]];
      return { total, ids };
    }
    return pageOf(await this.#mirror.current(), filter);
  }

  async finished(): Promise<TaskSummary[]> {
    const ids = await reached(() => this.redis.zrange(keyOf("ended"), "0", "-1"));
    return (await readSummaries(this.redis, ids)).filter((summary) => summary !== undefined);
  }

  /** Ids by state, in the order of acceptance. */
  inState(state: TaskState): Promise<string[]> {
    return reached(() => this.redis.zrange(keyOf("state", state), "0", "-1"));
  }

  async counts(): Promise<Record<TaskState | "total", number>> {
    const pipeline = this.redis.pipeline();
    for (const state of STATES) pipeline.zcard(keyOf("state", state));
    const [queued, running, succeeded, failed] = (await reached(() => piped(pipeline))) as number[] as [
      number,
      number,
      number,
      number,
    ];
    return { total: queued + running + succeeded + failed, queued, running, succeeded, failed };
  }

  /** Which of the tasks have ended. */
  async endedAmong(ids: readonly string[]): Promise<string[]> {
    const pipeline = this.redis.pipeline();
    for (const id of ids) pipeline.zscore(keyOf("ended"), id);
    const scores = await reached(() => piped(pipeline));
    return ids.filter((_, index) => scores[index] !== null);
  }

  #write(task: Task, head: string): Promise<unknown> {
    const record = encodeTask(task);
    const summary = summaryOf(task, hasEnded(task.state) ? record.length : 0);
    const { id, sequence, state } = task;
    return this.#eval(WRITE, [
      head,
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
    ]);
  }

  #eval(script: string, args: readonly (string | number | Buffer)[]): Promise<unknown> {
    return reached(() => this.redis.eval(script, 0, PREFIX, ...args));
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

/** The index that holds just what the filter fits; null where each summary has to be looked at. */
function indexOf({ state, favorite, search }: CatalogFilter): string | null {
  if (search.trim() !== "" || favorite === false) return null;
  if (favorite === null) return state === null ? keyOf("tasks") : keyOf("state", state);
  return state === null ? keyOf("favorites") : null;
}
