/** Lua scripts that change task records and their indices atomically. */

/**
 * Largest turn of a task. Turns are job priorities in BullMQ, and this is BullMQ's largest priority. Turns restart
 * at 1 when no task waits or runs.
 */
const MAX_TURN = 2 ** 21 - 1;

/**
 * Reserves a place for a new task. Returns the task's sequence, turn (see `FairTurns`) and position, and Redis's time.
 * Returns an empty list if the queue is full.
 */
export const RESERVE_PLACE_SCRIPT = `
local p, capacity, client, id = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4]
local waiting = redis.call('ZCARD', p .. ':state:queued')
if capacity > 0 and waiting >= capacity then return {} end
if waiting + redis.call('ZCARD', p .. ':state:running') == 0 then redis.call('DEL', p .. ':turn', p .. ':turns') end
local current = tonumber(redis.call('GET', p .. ':turn') or 0)
local last = tonumber(redis.call('HGET', p .. ':turns', client) or 0)
local turn = math.min(math.max(current, last + 1), ${MAX_TURN})
redis.call('HSET', p .. ':turns', client, turn)
local sequence = redis.call('INCR', p .. ':sequence')
redis.call('ZADD', p .. ':state:queued', sequence, id)
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
return {sequence, turn, waiting + 1, nowMs}`;

/**
 * Stores a record and its indices if the stored record still starts with ARGV[2] ('' for a new task). Once a task has
 * started, no new task gets an earlier turn. The script also publishes the end of a task, so that waiting clients
 * learn of it even if the worker dies. The record is written last, so that the script can run again after an error.
 * Returns 1, 0 if the stored record or the owner of the idempotency key differs, or -1 after the deadline.
 */
export const WRITE_TASK_SCRIPT = `
local p, head, record, id, sequence = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local state, summary, ended, submission, route = ARGV[6], ARGV[7], ARGV[8], ARGV[9], ARGV[10]
local turn, channel, ends, deadline = tonumber(ARGV[11]), ARGV[12], ARGV[13], tonumber(ARGV[14])
local time = redis.call('TIME')
if deadline > 0 and time[1] * 1000 + time[2] / 1000 > deadline then
  redis.call('ZREM', p .. ':state:queued', id)
  return -1
end
local key = p .. ':task:' .. id
if head ~= '' and redis.call('GETRANGE', key, 0, #head - 1) ~= head then return 0 end
if submission ~= '' and redis.call('HSETNX', p .. ':submissions', submission, id) == 0
  and head == '' and redis.call('HGET', p .. ':submissions', submission) ~= id then
  redis.call('ZREM', p .. ':state:queued', id)
  return 0
end
redis.call('SADD', p .. ':queues', route)
redis.call('ZADD', p .. ':tasks', sequence, id)
for _, other in ipairs({'queued', 'running', 'succeeded', 'failed'}) do
  if other ~= state then redis.call('ZREM', p .. ':state:' .. other, id) end
end
redis.call('ZADD', p .. ':state:' .. state, sequence, id)
redis.call('HSET', p .. ':summaries', id, summary)
redis.call('HSET', p .. ':routes', id, route)
if state == 'running' and turn > tonumber(redis.call('GET', p .. ':turn') or 0) then redis.call('SET', p .. ':turn', turn) end
if ended ~= '' then redis.call('ZADD', p .. ':ended', ended, id) end
redis.call('SET', key, record)
if ends == '1' then redis.call('PUBLISH', channel, cjson.encode({type = 'ended', id = id})) end
return 1`;

export const REMOVE_TASK_SCRIPT = `
local p, id, submission = ARGV[1], ARGV[2], ARGV[3]
if not redis.call('ZSCORE', p .. ':ended', id) then return 0 end
for _, key in ipairs({'tasks', 'state:succeeded', 'state:failed'}) do redis.call('ZREM', p .. ':' .. key, id) end
redis.call('HDEL', p .. ':summaries', id)
redis.call('HDEL', p .. ':routes', id)
if submission ~= '' then redis.call('HDEL', p .. ':submissions', submission) end
redis.call('DEL', p .. ':task:' .. id, p .. ':progress:' .. id)
redis.call('ZREM', p .. ':ended', id)
return 1`;

/** Removes an id without a record from the indices. */
export const DROP_ID_SCRIPT = `
local p, id = ARGV[1], ARGV[2]
if redis.call('STRLEN', p .. ':task:' .. id) > 0 then return end
for _, key in ipairs({'tasks', 'ended', 'state:queued', 'state:running', 'state:succeeded', 'state:failed'}) do
  redis.call('ZREM', p .. ':' .. key, id)
end
redis.call('HDEL', p .. ':summaries', id)
redis.call('HDEL', p .. ':routes', id)`;
