/** Record of the files that a fleet has to delete, which survives the servers that could not delete them. */
import { type DeletionRecord, STORED_NAME } from "../storage/deletion-record.js";
import { type FleetRedis, redisKey } from "./redis.js";

const KEY = redisKey("deletions");

export class FleetDeletionRecord implements DeletionRecord {
  constructor(private readonly redis: FleetRedis) {}

  async all(): Promise<[string, string][]> {
    const entries = Object.entries(await this.redis.attempt(() => this.redis.hgetall(KEY)));
    const readable = entries.filter(([name]) => STORED_NAME.test(name));
    if (readable.length < entries.length)
      this.redis.logUnreadable(KEY, "it is not the name of a stored file");
    return readable;
  }

  async has(name: string): Promise<boolean> {
    return (await this.redis.attempt(() => this.redis.hexists(KEY, name))) === 1;
  }

  async add(task: string, names: readonly string[]): Promise<void> {
    await this.redis.attempt(() =>
      this.redis.hset(KEY, Object.fromEntries(names.map((name) => [name, task]))),
    );
  }

  async drop(names: readonly string[]): Promise<void> {
    await this.redis.attempt(() => this.redis.hdel(KEY, ...names));
  }
}
