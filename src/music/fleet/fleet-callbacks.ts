/**
 * Schedules the callbacks of a fleet, by Redis's clock. A gateway that takes a due callback has a minute to
 * deliver it.
 */
import { CALLBACK_LEASE_MS } from "../queue/callback-schedule.js";
import { type FleetRedis, redisKey } from "./redis.js";

/** Task ids sorted by due time. */
const KEY = redisKey("callbacks");

/** Takes due callbacks. Each is due again after CALLBACK_LEASE_MS, in case its gateway stops. */
const TAKE = `
local now = redis.call('TIME')
local nowMs = now[1] * 1000 + math.floor(now[2] / 1000)
local ids = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', nowMs, 'LIMIT', 0, ARGV[1])
for _, id in ipairs(ids) do redis.call('ZADD', KEYS[1], nowMs + ARGV[2], id) end
return ids`;

export function takeCallbacks(redis: FleetRedis, max: number): Promise<string[]> {
  return redis.attempt(() => redis.eval(TAKE, 1, KEY, max, CALLBACK_LEASE_MS)) as Promise<string[]>;
}

/** @param delayMs null removes the callback from the schedule */
export async function scheduleCallback(redis: FleetRedis, id: string, delayMs: number | null): Promise<void> {
  if (delayMs === null) await redis.attempt(() => redis.zrem(KEY, id));
  else await redis.attempt(async () => redis.zadd(KEY, (await redis.timeMs()) + delayMs, id));
}

/** Makes the callback of an ended task due now. */
export async function makeCallbackDue(redis: FleetRedis, id: string): Promise<void> {
  await redis.attempt(() => redis.zadd(KEY, "XX", 0, id));
}
