/**
 * The city in a process of its own, so that nothing that happens to it touches its parent, which serves the music: the
 * parent starts it anew where it ends, and it goes on with its last save. It lives no longer than its parent: when that
 * one asks, or is gone, the city is saved and ends.
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import type { Logger } from "../log.js";
import { serveUntilStopped } from "../service-process.js";
import type { BridgeServer } from "./server.js";

/** What the city's process says to its parent: once, when it answers or cannot. */
type Report = { readonly url: string } | { readonly error: string };
/** All that the parent says to it. */
const STOP = "stop";

/** A city at the limits of the game and a save of it need half of this. */
const HEAP_MEGABYTES = 1024;
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 30_000;
/** A city that lived this long is started at once when it ends. */
const LONG_LIFE_MS = 60_000;
/** Requests under way and the save take less; beyond, the process is killed, while there is somebody to do it. */
const STOP_LIMIT_MS = 6000;

export interface CityProcessOptions {
  /** A module and its arguments that end in `serveParent`. */
  readonly command: readonly [module: string, ...args: string[]];
  readonly environment: NodeJS.ProcessEnv;
  readonly log: Logger;
}

/**
 * Starts the city in a process of its own; resolves once it answers. It keeps its address through all restarts.
 * @throws Error with the reason, where it cannot start
 */
export async function startCityProcess(options: CityProcessOptions): Promise<BridgeServer> {
  const city = new CityProcess(options);
  const url = await city.start();
  return { url, close: () => city.close() };
}

class CityProcess {
  readonly #options: CityProcessOptions;
  #child: ChildProcess | null = null;
  #timer: NodeJS.Timeout | undefined;
  #pauseMs = FIRST_PAUSE_MS;
  #isClosing = false;

  constructor(options: CityProcessOptions) {
    this.#options = options;
  }

  async start(): Promise<string> {
    const url = await this.#launch({});
    this.#watch({ CITY_BRIDGE_PORT: new URL(url).port, CITY_NEW: "false" });
    return url;
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    clearTimeout(this.#timer);
    const child = this.#child;
    if (!child) return;
    const ended = once(child, "exit");
    child.send(STOP, () => {});
    const limit = setTimeout(() => {
      this.#options.log.error(`the city did not end within ${STOP_LIMIT_MS} ms and is killed`);
      child.kill("SIGKILL");
    }, STOP_LIMIT_MS);
    await ended;
    clearTimeout(limit);
  }

  /** Resolves with the address once the process answers there. */
  #launch(settings: NodeJS.ProcessEnv): Promise<string> {
    const { command, environment, log } = this.#options;
    const [module, ...args] = command;
    const child = fork(module, args, {
      env: { ...environment, ...settings },
      execArgv: [...process.execArgv, `--max-old-space-size=${HEAP_MEGABYTES}`],
      stdio: ["ignore", "ignore", "inherit", "ipc"],
    });
    this.#child = child;
    return new Promise((resolve, reject) => {
      child.once("message", (report: Report) => {
        if ("url" in report) resolve(report.url);
        else reject(new Error(report.error));
      });
      child.on("error", (error) => {
        if (child.pid === undefined) this.#forget(child);
        log.error({ err: error }, "the city's process");
        reject(error);
      });
      child.once("exit", (code, signal) => {
        this.#forget(child);
        reject(new Error(`the city's process ended before it answered, with ${signal ?? `code ${code}`}`));
      });
    });
  }

  #forget(child: ChildProcess): void {
    if (this.#child === child) this.#child = null;
  }

  /** @param settings of every later process */
  #watch(settings: NodeJS.ProcessEnv): void {
    const startedMs = performance.now();
    this.#child?.once("exit", (code, signal) => {
      if (performance.now() - startedMs > LONG_LIFE_MS) this.#pauseMs = FIRST_PAUSE_MS;
      this.#startAgain(`the city's process ended with ${signal ?? `code ${code}`}`, settings);
    });
  }

  #startAgain(reason: string, settings: NodeJS.ProcessEnv): void {
    if (this.#isClosing) return;
    const { log } = this.#options;
    log.error(`${reason}; it starts again in ${this.#pauseMs} ms with its last save`);
    this.#timer = setTimeout(async () => {
      try {
        log.info(`city on ${await this.#launch(settings)} again`);
        this.#watch(settings);
      } catch (error) {
        this.#startAgain((error as Error).message, settings);
      }
    }, this.#pauseMs);
    this.#pauseMs = Math.min(2 * this.#pauseMs, LONGEST_PAUSE_MS);
  }
}

/** The other end: serves a city until the parent asks for its end or is gone. */
export async function serveParent(start: () => Promise<BridgeServer>, log: Logger): Promise<void> {
  // Whoever stops the parent may send these to its child too, as often as he is impatient: the save must not end by them.
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.on(signal, () => {});
  const asked = new Promise<string>((resolve) => {
    process.once("message", () => resolve("asked by the parent process"));
    process.once("disconnect", () => resolve("the parent process ended"));
    if (!process.connected) resolve("the parent process ended");
  });
  const serve = async (add: (service: BridgeServer) => void) => {
    const city = await start();
    add(city);
    await report({ url: city.url });
  };
  try {
    await serveUntilStopped(log, serve, asked);
  } catch (error) {
    await report({ error: error instanceof Error ? error.message : String(error) });
    process.exitCode = 1;
    if (process.connected) process.disconnect();
  }
}

/** Resolves once it is sent, or there is nobody to send it to. */
function report(message: Report): Promise<void> {
  return new Promise((resolve) => {
    if (process.connected) process.send?.(message, undefined, undefined, () => resolve());
    else resolve();
  });
}
