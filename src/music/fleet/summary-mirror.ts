/**
 * Local copy of all task summaries for searches, because reading all of them takes 0.3 seconds for 10,000 tasks.
 * Changes are numbered in Redis, and a search first reads the changes since the last search.
 */
import { summarySchema, type TaskSummary } from "../queue/catalog.js";
import { parseJson } from "./messages.js";
import { type FleetRedis, redisKey } from "./redis.js";

/**
 * Redis lists the tasks that changed last, at most this many. A process that has missed
 * more changes reads all summaries again.
 */
const MAX_CHANGES = 10_000;

/** Lua function `noteChange`. Scripts must call it after they change or remove a summary. */
export const NOTE_CHANGE_LUA = `
local function noteChange(p, id)
  redis.call('ZADD', p .. ':changes', redis.call('INCR', p .. ':revision'), id)
  if redis.call('ZCARD', p .. ':changes') > ${MAX_CHANGES} then
    redis.call('SET', p .. ':forgotten', redis.call('ZPOPMIN', p .. ':changes')[2])
  end
end`;

export class SummaryMirror {
  readonly #summaries = new Map<string, TaskSummary>();
  /** Number of the last change in the copy; null if everything must be read. */
  #revision: number | null = null;
  #reading: Promise<void> = Promise.resolve();

  /** @param readSummaries returns the summary of each id, or undefined if the id is unknown */
  constructor(
    private readonly redis: FleetRedis,
    private readonly readSummaries: (ids: readonly string[]) => Promise<(TaskSummary | undefined)[]>,
  ) {
    // Read everything again after a reconnect: Redis may have lost the latest changes and reused their numbers.
    redis.on("ready", () => {
      this.#revision = null;
    });
  }

  /** All summaries, including every change before the call. */
  async current(): Promise<Iterable<TaskSummary>> {
    const reading = this.#reading.catch(() => {}).then(() => this.#read());
    this.#reading = reading;
    await reading;
    return this.#summaries.values();
  }

  async #read(): Promise<void> {
    const known = this.#revision;
    // `revision` is read first: the next search then reads any change between these reads again. `forgotten` is
    // read last: it then covers every change that Redis had dropped from the list by then.
    const [revision, changed, forgotten] = (await this.redis.batch((pipeline) =>
      pipeline
        .get(redisKey("revision"))
        .zrange(redisKey("changes"), `(${known ?? 0}`, "+inf", "BYSCORE")
        .get(redisKey("forgotten")),
    )) as [string | null, string[], string | null];
    const latest = Number(revision) || 0;
    const isComplete = known !== null && known <= latest && Number(forgotten) <= known;
    const ids = isComplete
      ? changed
      : await this.redis.attempt(() => this.redis.zrange(redisKey("tasks"), "0", "-1"));
    // Set the revision before reading the summaries. A reconnect during the read sets the revision to null,
    // and it must stay null.
    this.#revision = latest;
    try {
      const summaries = await this.readSummaries(ids);
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

/** Parses a summary; undefined if the text is not the summary of this task. */
export function parseSummary(id: string, text: string | null | undefined): TaskSummary | undefined {
  if (text == null) return undefined;
  const { data } = summarySchema.safeParse(parseJson(text));
  return data?.id === id ? data : undefined;
}
