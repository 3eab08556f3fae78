/**
 * Checks that all servers of a fleet see the same store. The store contains a token file whose name is in
 * Redis. Every server looks for this file when it joins and after a reconnect. If the file is missing, a
 * joining server exits, and a running server takes no tasks and rejects new ones (503). The name in Redis
 * expires soon after the last server has stopped.
 */
import { randomUUID } from "node:crypto";
import { z } from "zod";
import { ConfigError } from "../../system/config-error.js";
import type { Logger } from "../../system/log.js";
import type { StoreTokens } from "../storage/store-token.js";
import { parseJson } from "./messages.js";
import type { Quarantine } from "./quarantine.js";
import { type FleetRedis, FleetUnreachableError, redisKey } from "./redis.js";

const KEY = redisKey("store");
const EXPIRY_MS = 30_000;
const CHECK_MS = 5_000;

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
    private readonly quarantine: Quarantine,
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
    const announced = (await this.#announced()) ?? (await this.#announce());
    if (announced.token !== this.#found) {
      const isFound = await this.tokens.has(announced.token);
      this.#setFault(isFound ? null : this.#explain(announced.storage));
      if (!isFound) return;
      this.#found = announced.token;
    }
    await this.redis.attempt(() => this.redis.pexpire(KEY, EXPIRY_MS));
  }

  async #announced(): Promise<z.output<typeof announcedSchema> | null> {
    const text = await this.redis.attempt(() => this.redis.get(KEY));
    if (text === null) return null;
    const { data } = announcedSchema.safeParse(parseJson(text));
    if (data === undefined) await this.quarantine.moveKey(KEY, "it is not the name of a store");
    return data ?? null;
  }

  /** Announces this server's store in Redis, unless another server has announced its store. */
  async #announce(): Promise<z.output<typeof announcedSchema>> {
    const own = { token: await this.tokens.getOrCreate(randomUUID), storage: this.storage };
    const set = () => this.redis.set(KEY, JSON.stringify(own), "PX", EXPIRY_MS, "NX");
    if ((await this.redis.attempt(set)) === "OK") return own;
    return (await this.#announced()) ?? own;
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
