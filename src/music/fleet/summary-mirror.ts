/**
 * The summaries of all tasks, as this process last read them: a search looks at each, and to read them all anew takes
 * long. Redis remembers which have changed, so that only those are read again.
 */
import type { Redis } from "ioredis";
import type { TaskSummary } from "../queue/catalog.js";
import { keyOf, piped, reached } from "./redis.js";

/** Summaries that are asked for at a time. */
const BATCH = 1_000;
/** Changes that Redis remembers, the last of each task; who missed more reads all summaries. */
const MAX_CHANGES = 10_000;

/** Each script that changes or removes a summary has this function. */
export const NOTE_CHANGE = `
local function noteChange(p, id)
  redis.call('ZADD', p .. ':changes', redis.call('INCR', p .. ':revision'), id)
  if redis.call('ZCARD', p .. ':changes') > ${MAX_CHANGES} then
    redis.call('SET', p .. ':forgotten', redis.call('ZPOPMIN', p .. ':changes')[2])
  end
end`;

export class SummaryMirror {
  readonly #summaries = new Map<string, TaskSummary>();
  /** The number of the last change that is in the summaries; null: they have to be read from the beginning. */
  #revision: number | null = null;
  #reading: Promise<void> = Promise.resolve();

  constructor(private readonly redis: Redis) {
    // Redis may have forgotten the latest changes, and count others by their numbers.
    redis.on("ready", () => {
      this.#revision = null;
    });
  }

  /** All summaries, with every change that was made before the call. */
  async current(): Promise<Iterable<TaskSummary>> {
    const reading = this.#reading.catch(() => {}).then(() => this.#read());
    this.#reading = reading;
    await reading;
    return this.#summaries.values();
  }

  async #read(): Promise<void> {
    const known = this.#revision;
    // In this order: what changes meanwhile is read once more, or known to be forgotten.
    const asked = this.redis
      .pipeline()
      .get(keyOf("revision"))
      .zrange(keyOf("changes"), `(${known ?? 0}`, "+inf", "BYSCORE")
      .get(keyOf("forgotten"));
    const [revision, changed, forgotten] = (await reached(() => piped(asked))) as [
      string | null,
      string[],
      string | null,
    ];
    const latest = Number(revision);
    const isComplete = known !== null && known <= latest && Number(forgotten) <= known;
    const ids = isComplete ? changed : await reached(() => this.redis.zrange(keyOf("tasks"), "0", "-1"));
    // A connection that is lost from here on asks for all again.
    this.#revision = latest;
    try {
      const summaries = await readSummaries(this.redis, ids);
      if (!isComplete) this.#summaries.clear();
      for (const [index, summary] of summaries.entries()) {
        const id = ids[index] as string;
        if (summary === undefined) this.#summaries.delete(id);
        else this.#summaries.set(id, summary);
      }
    } catch (error) {
      this.#revision = null;
      throw error;
    }
  }
}

/** In the order of the ids; undefined where there is no such task. */
export async function readSummaries(
  redis: Redis,
  ids: readonly string[],
): Promise<(TaskSummary | undefined)[]> {
  const summaries: (TaskSummary | undefined)[] = [];
  for (let begin = 0; begin < ids.length; begin += BATCH) {
    const batch = ids.slice(begin, begin + BATCH);
    const texts = await reached(() => redis.hmget(keyOf("summaries"), ...batch));
    for (const text of texts) summaries.push(text === null ? undefined : (JSON.parse(text) as TaskSummary));
  }
  return summaries;
}
