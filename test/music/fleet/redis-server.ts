/** A Redis of a test's own, to be killed and started again where it left off. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import { temporaryDirectory } from "../tasks.js";

export class RedisServer {
  #child: ChildProcess | null = null;

  private constructor(
    private readonly directory: string,
    private readonly port: number,
  ) {}

  /** Whoever starts it kills it, in a hook of the suite. */
  static async start(): Promise<RedisServer> {
    const server = new RedisServer(temporaryDirectory(), await freePort());
    await server.start();
    return server;
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`;
  }

  /** Resolves once it answers. */
  async start(): Promise<void> {
    const options = ["--port", this.port, "--dir", this.directory, "--appendonly", "yes", "--save", ""];
    this.#child = spawn("redis-server", options.map(String), { stdio: "ignore" });
    const failed = once(this.#child, "error").then(([error]) => {
      throw new Error(`redis-server cannot be run; set-up installs it where it may: ${error}`);
    });
    await Promise.race([failed, this.#answers()]);
  }

  async #answers(): Promise<void> {
    const redis = new Redis(this.url, { maxRetriesPerRequest: null, retryStrategy: () => 20 });
    redis.on("error", () => {});
    // While it reads its file it answers that it is loading.
    while ((await redis.ping().catch(() => "")) !== "PONG") await sleep(20);
    redis.disconnect();
  }

  /** kill -9 */
  async kill(): Promise<void> {
    const child = this.#child;
    this.#child = null;
    if (child === null || child.exitCode !== null) return;
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
  }

  /** Forgets everything. */
  async clear(): Promise<void> {
    const redis = new Redis(this.url);
    await redis.flushall();
    redis.disconnect();
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  return typeof address === "object" && address !== null ? address.port : 0;
}
