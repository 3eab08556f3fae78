/** Redis server for tests, which can kill it and restart it with its data. */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import { freePort, listenLocally } from "../../local-server.js";
import { temporaryDirectory } from "../tasks.js";

export class RedisServer {
  #child: ChildProcess | null = null;

  private constructor(
    private readonly directory: string,
    private readonly port: number,
    /** Null means no password and no TLS. */
    private readonly password: string | null = null,
  ) {}

  /** Starts a Redis. Kill it in a hook of the suite. */
  static async start(directory = temporaryDirectory()): Promise<RedisServer> {
    const server = new RedisServer(directory, await freePort());
    await server.start();
    return server;
  }

  /** Starts a Redis that accepts only TLS, with a self-signed certificate and a password. */
  static async startSecured(password: string): Promise<RedisServer> {
    const server = new RedisServer(temporaryDirectory(), await freePort(), password);
    const written = ["-keyout", server.#keyFile, "-out", server.certificateFile];
    const subject = ["-subj", "/CN=redis", "-addext", "subjectAltName=IP:127.0.0.1"];
    const kind = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"];
    execFileSync("openssl", ["req", ...kind, ...written, ...subject], { stdio: "pipe" });
    await server.start();
    return server;
  }

  get url(): string {
    if (this.password === null) return `redis://127.0.0.1:${this.port}`;
    return `rediss://:${this.password}@127.0.0.1:${this.port}`;
  }

  get certificateFile(): string {
    return join(this.directory, "certificate.pem");
  }

  get #keyFile(): string {
    return join(this.directory, "key.pem");
  }

  get #listening(): string[] {
    if (this.password === null) return ["--port", String(this.port)];
    const own = ["--tls-cert-file", this.certificateFile, "--tls-key-file", this.#keyFile];
    const clients = ["--tls-auth-clients", "no", "--requirepass", this.password];
    return ["--port", "0", "--tls-port", String(this.port), ...own, ...clients];
  }

  /** Resolves when Redis responds. */
  async start(): Promise<void> {
    const options = ["--dir", this.directory, "--appendonly", "yes", "--save", ""];
    const child = spawn("redis-server", [...this.#listening, ...options], { stdio: "ignore" });
    this.#child = child;
    const failed = once(child, "error").then(([error]) => {
      throw new Error(`redis-server cannot be run: install it, or run "npm run setup" as root: ${error}`);
    });
    await Promise.race([failed, this.#untilAnswers(child)]);
  }

  /** @throws Error if Redis exits, for example because its port is taken */
  async #untilAnswers(child: ChildProcess): Promise<void> {
    const trust = this.password === null ? {} : { tls: { ca: readFileSync(this.certificateFile) } };
    const redis = new Redis(this.url, { maxRetriesPerRequest: null, retryStrategy: () => 20, ...trust });
    redis.on("error", () => {});
    // Redis answers LOADING until it has read its append-only file.
    while (child.exitCode === null && (await answerOf(redis)) !== "PONG") await sleep(20);
    redis.disconnect();
    if (child.exitCode !== null) throw new Error(`redis-server exited with code ${child.exitCode}`);
  }

  /** Kills Redis with SIGKILL. */
  async kill(): Promise<void> {
    const child = this.#child;
    this.#child = null;
    if (child === null || child.exitCode !== null) return;
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
  }

  /** Contents of the append-only files: all write commands since the first start. */
  get written(): string {
    const folder = join(this.directory, "appendonlydir");
    return readdirSync(folder)
      .map((name) => readFileSync(join(folder, name), "latin1"))
      .join("");
  }

  async forget(key: string): Promise<void> {
    const redis = new Redis(this.url);
    await redis.del(key);
    redis.disconnect();
  }

  /** Deletes all data. */
  async clear(): Promise<void> {
    const redis = new Redis(this.url);
    await redis.flushall();
    redis.disconnect();
  }
}

/** A way to a Redis on which connections can fall silent, as if a router had forgotten them. */
export async function startSilentWay(redis: RedisServer) {
  const sockets = new Set<Socket>();
  const server = createServer((near) => {
    const far = connect(Number(new URL(redis.url).port), "127.0.0.1");
    near.pipe(far).pipe(near);
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => sockets.delete(socket));
    }
  });
  const { port } = await listenLocally(server);
  return {
    url: `redis://127.0.0.1:${port}`,
    /** Passes on nothing more on the present connections, and keeps them open. */
    silence: () => {
      for (const socket of sockets) socket.unpipe().resume();
    },
    close: () => {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** Answer to a ping; "" after a second, so that the caller can look whether Redis still runs. */
function answerOf(redis: Redis): Promise<string> {
  const ping = redis.ping().catch(() => "");
  return Promise.race([ping, sleep(1000, "")]);
}
