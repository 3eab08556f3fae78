/**
 * Checks that all servers of a fleet see the same store. The store contains a token file whose name is in
 * Redis. Every server looks for this file when it joins and after a reconnect. If the file is missing, a
 * joining server exits, and a running server takes no tasks and rejects new ones (503). The name in Redis
 * expires soon after the last server has stopped.
 */
import { z } from "zod";
import { ConfigError } from "../../system/config-error.js";
import type { Logger } from "../../system/log.js";
import type { StoreTokens } from "../storage/store-token.js";
import { parseJson } from "./messages.js";
import { type FleetRedis, FleetUnreachableError, redisKey } from "./redis.js";

const KEY = redisKey("store");
const EXPIRY_MS = 30_000;
const CHECK_MS = 5_000;

/** Lua script: announces a store, unless the announcement has changed since it was read. */
const ANNOUNCE = `
if (redis.call('GET', KEYS[1]) or '') == ARGV[1] then redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3]) end`;

const announcedSchema = z.object({ token: z.uuid(), storage: z.string() });

export class SharedStore {
  /** Why this server must not take tasks: it does not see the fleet's store. Null if it sees the store. */
  fault: string | null = null;
  /** Token that the last successful check found in the store. */
  #found: string | null = null;
  #timer: NodeJS.Timeout | undefined;

  /** @param storage value of SVC_STORAGE, for messages */
  constructor(
    private readonly redis: FleetRedis,
    private readonly tokens: StoreTokens,
    private readonly storage: string,
    private readonly log: Logger,
  ) {}

  /** @throws ConfigError if this server's store cannot be used, or is not the fleet's store */
  async join(): Promise<void> {
    await this.check().catch((error: Error) => {
      if (error instanceof FleetUnreachableError) throw error;
      throw new ConfigError("SVC_STORAGE", `SVC_STORAGE: ${this.storage} cannot be used: ${error.message}`);
    });
    if (this.fault !== null) throw new ConfigError("SVC_STORAGE", `SVC_STORAGE: ${this.fault}`);
    this.redis.on("ready", () => {
      // Redis or the store may have been replaced while the connection was down, so look for the token again.
      this.#found = null;
    });
    this.#timer = setInterval(() => {
      this.check().catch((err: unknown) => this.log.debug({ err }, "could not check the shared storage"));
    }, CHECK_MS).unref();
  }

  close(): void {
    clearInterval(this.#timer);
  }

  async check(): Promise<void> {
    const announced = await this.#announced();
    if (announced.token !== this.#found) {
      const isFound = await this.tokens.has(announced.token);
      this.#setFault(isFound ? null : this.#explain(announced.storage));
      if (!isFound) return;
      this.#found = announced.token;
    }
    await this.redis.attempt(() => this.redis.pexpire(KEY, EXPIRY_MS));
  }

  /** Announces this server's store in Redis, unless a server has announced one. Returns the announced store. */
  async #announced(): Promise<z.output<typeof announcedSchema>> {
    const text = await this.redis.attempt(() => this.redis.get(KEY));
    const { data } = announcedSchema.safeParse(parseJson(text ?? ""));
    if (data !== undefined) return data;
    if (text !== null) this.redis.logUnreadable(KEY, "it is not the name of a store");
    const own = { token: await this.tokens.getOrCreate(), storage: this.storage };
    const args = [text ?? "", JSON.stringify(own), EXPIRY_MS];
    await this.redis.attempt(() => this.redis.eval(ANNOUNCE, 1, KEY, ...args));
    return this.#announced();
  }

  #setFault(fault: string | null): void {
    if (fault !== null && this.fault === null) this.log.error(`SVC_STORAGE: ${fault}`);
    if (fault === null && this.fault !== null) this.log.info("this server sees the fleet's storage again");
    this.fault = fault;
  }

  #explain(theirs: string): string {
    const { host = "", port = "", db = 0 } = this.redis.options;
    const fleet = `the fleet at SVC_REDIS_URL (${host}:${port}/${db})`;
    const what =
      theirs === this.storage
        ? `${fleet} also uses ${theirs}, but this server sees other files there: mount or set the same store`
        : `${this.storage} is not the storage of ${fleet}, which uses ${theirs}: set the same on all servers`;
    return `${what}, or use another database of Redis. ${EXPIRY_MS / 1000} seconds after the last server has stopped the fleet accepts another storage`;
  }
}
