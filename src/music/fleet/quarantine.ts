/**
 * Quarantine for data that the fleet did not write: damaged records, values of another type, unknown members.
 * Copies stay under `carillon:quarantine:` for a week, and `carillon:quarantine` lists them. If Redis rejects
 * a command because of a key's type or content, all keys are inspected, and the command runs again. Lost
 * indices are rebuilt from the records. A task with a damaged record is reported as failed.
 */
import type { Logger } from "../../system/log.js";
import { type FleetRedis, KEY_PREFIX, redisKey } from "./redis.js";

const KEPT_MS = 7 * 24 * 60 * 60_000;
/**
 * Maximum number of copies; beyond it, the oldest ones are deleted. A copy above the size limit is deleted at
 * once.
 */
const MAX_COPIES = 100;
const MAX_COPY_BYTES = 256 * 2 ** 10;
const BATCH = 500;
const MAX_NAMED = 5;

/** Adds a copy to the list, and deletes copies over the limits. */
const RECORD_COPY = `
local function noteCopy(p, copy)
  if (redis.call('MEMORY', 'USAGE', copy) or 0) > ${MAX_COPY_BYTES} then return redis.call('UNLINK', copy) end
  redis.call('PEXPIRE', copy, ${KEPT_MS})
  local index = p .. ':quarantine'
  if redis.call('TYPE', index).ok ~= 'zset' then redis.call('DEL', index) end
  redis.call('ZADD', index, redis.call('TIME')[1], copy)
  while redis.call('ZCARD', index) > ${MAX_COPIES} do redis.call('UNLINK', redis.call('ZPOPMIN', index)[1]) end
end
local function copyOf(p, key) return p .. ':quarantine:' .. string.sub(key, #p + 2) end`;

/**
 * Quarantines keys whose type or content breaks their rule. ARGV: the prefix, then name, type and rule of
 * each key. Rule `integer`: the value is a whole number. Rule `expires`: the key has a time to live. Rule
 * `meta`: BullMQ's queue settings in the hash are whole numbers.
 */
const MOVE_KEYS = `${RECORD_COPY}
local function isInteger(text) return not text or string.match(text, '^%d+$') end
local function areIntegers(key)
  for _, text in ipairs(redis.call('HMGET', key, 'opts.maxLenEvents', 'concurrency', 'max', 'duration')) do
    if not isInteger(text) then return false end
  end
  return true
end
local p, moved = ARGV[1], {}
for i = 2, #ARGV, 3 do
  local key, kind, rule = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local found = redis.call('TYPE', key).ok
  local isForeign = found ~= 'none' and (found ~= kind
    or (rule == 'integer' and not isInteger(redis.call('GET', key)))
    or (rule == 'meta' and not areIntegers(key))
    or (rule == 'expires' and redis.call('PTTL', key) == -1))
  if isForeign then
    redis.call('RENAME', key, copyOf(p, key))
    noteCopy(p, copyOf(p, key))
    table.insert(moved, key)
  end
end
return moved`;

/**
 * Quarantines entries of a key. ARGV: the prefix and the key, then two arguments per entry. The first is the
 * entry's field, member or id; the second is its value, or "" for an entry without one.
 */
const MOVE_ENTRIES = `${RECORD_COPY}
local p, key = ARGV[1], ARGV[2]
local kind, removed = redis.call('TYPE', key).ok, {}
for i = 3, #ARGV, 2 do
  local entry, value, count = ARGV[i], ARGV[i + 1], 0
  if kind == 'hash' and redis.call('HGET', key, entry) == value then count = redis.call('HDEL', key, entry)
  elseif kind == 'set' then count = redis.call('SREM', key, entry)
  elseif kind == 'zset' then count = redis.call('ZREM', key, entry)
  elseif kind == 'list' then count = redis.call('LREM', key, 0, entry)
  elseif kind == 'stream' then count = redis.call('XDEL', key, entry) end
  if count > 0 then
    local copy = copyOf(p, key .. ':' .. string.sub(entry, 1, 200))
    redis.call('SET', copy, value ~= '' and value or entry)
    noteCopy(p, copy)
    table.insert(removed, entry)
  end
end
return removed`;

/**
 * Quarantines a key of any type. ARGV: the prefix and the key. Returns 0 if the key does not exist or its
 * value is empty.
 */
const MOVE_KEY = `${RECORD_COPY}
local p, key = ARGV[1], ARGV[2]
local kind = redis.call('TYPE', key).ok
if kind == 'none' or (kind == 'string' and redis.call('STRLEN', key) == 0) then return 0 end
redis.call('RENAME', key, copyOf(p, key))
noteCopy(p, copyOf(p, key))
return 1`;

interface Rule {
  type: "string" | "hash" | "set" | "zset" | "list" | "stream";
  also?: "integer" | "expires" | "meta";
}

const COUNTER: Rule = { type: "string", also: "integer" };
const EXPIRING: Rule = { type: "string", also: "expires" };

/** Rules for the fleet's own keys, by the first word after the prefix. */
const RULES: Readonly<Record<string, Rule>> = {
  task: { type: "string" },
  progress: EXPIRING,
  worker: EXPIRING,
  checkpoint: EXPIRING,
  lease: EXPIRING,
  store: EXPIRING,
  sequence: COUNTER,
  revision: COUNTER,
  forgotten: COUNTER,
  turn: COUNTER,
  turns: { type: "hash" },
  summaries: { type: "hash" },
  routes: { type: "hash" },
  submissions: { type: "hash" },
  adapters: { type: "hash" },
  deletions: { type: "hash" },
  tasks: { type: "zset" },
  state: { type: "zset" },
  favorites: { type: "zset" },
  ended: { type: "zset" },
  changes: { type: "zset" },
  callbacks: { type: "zset" },
  queues: { type: "set" },
  workers: { type: "set" },
  seconds: { type: "list" },
};

/**
 * Rules for BullMQ's keys of a queue, by the last word of the key. A key with any other last word is a job.
 */
const QUEUE_RULES: Readonly<Record<string, Rule>> = {
  wait: { type: "list" },
  active: { type: "list" },
  paused: { type: "list" },
  prioritized: { type: "zset" },
  delayed: { type: "zset" },
  completed: { type: "zset" },
  failed: { type: "zset" },
  repeat: { type: "zset" },
  marker: { type: "zset" },
  "waiting-children": { type: "zset" },
  stalled: { type: "set" },
  "stalled-check": EXPIRING,
  meta: { type: "hash", also: "meta" },
  events: { type: "stream" },
  id: COUNTER,
  pc: COUNTER,
  limiter: EXPIRING,
};

/** Rule for a key; null for a key that is not the fleet's. */
function ruleOf(key: string): Rule | null {
  const [prefix, kind = "", ...rest] = key.split(":");
  if (prefix !== KEY_PREFIX) return null;
  if (kind !== "queue") return Object.hasOwn(RULES, kind) ? (RULES[kind] as Rule) : null;
  const [, part = "", beside] = rest;
  if (beside !== undefined) return beside === "lock" ? EXPIRING : null;
  return Object.hasOwn(QUEUE_RULES, part) ? (QUEUE_RULES[part] as Rule) : { type: "hash" };
}

export class Quarantine {
  constructor(
    private readonly redis: FleetRedis,
    private readonly log: Logger,
  ) {}

  /** Inspects all keys of the fleet. Resolves with the quarantined ones. */
  async inspectAll(): Promise<string[]> {
    const moved: string[] = [];
    let cursor = "0";
    do {
      const [next, keys] = await this.redis.scan(cursor, "MATCH", redisKey("*"), "COUNT", BATCH);
      cursor = next;
      moved.push(...(await this.inspect(keys)));
    } while (cursor !== "0");
    return moved;
  }

  /** Quarantines keys with foreign data and returns them. */
  async inspect(keys: readonly string[]): Promise<string[]> {
    const args = keys.flatMap((key) => {
      const rule = ruleOf(key);
      return rule === null ? [] : [key, rule.type, rule.also ?? ""];
    });
    if (args.length === 0) return [];
    const moved = (await this.redis.eval(MOVE_KEYS, 0, KEY_PREFIX, ...args)) as string[];
    this.#report(moved);
    return moved;
  }

  async moveKey(key: string, reason: string): Promise<void> {
    const moved = await this.redis.attempt(() => this.redis.eval(MOVE_KEY, 0, KEY_PREFIX, key));
    if (moved === 1) this.#report([key], reason);
  }

  /**
   * Quarantines members of a list or set, entries of a stream, or fields of a hash. A field is quarantined
   * only if it still has the given value.
   */
  async moveEntries(key: string, entries: readonly (readonly [entry: string, value?: string])[]) {
    if (entries.length === 0) return;
    const args = entries.flatMap(([entry, value = ""]) => [entry, value]);
    const removed = (await this.redis.attempt(() =>
      this.redis.eval(MOVE_ENTRIES, 0, KEY_PREFIX, key, ...args),
    )) as string[];
    this.#report(removed.map((entry) => `${key}: ${entry}`));
  }

  #report(entries: readonly string[], reason = "not written by the fleet"): void {
    if (entries.length === 0) return;
    const named = { count: entries.length, entries: entries.slice(0, MAX_NAMED), reason };
    this.log.error(
      named,
      `foreign data in Redis moved to ${redisKey("quarantine")}, where it stays for a week`,
    );
  }
}
