/**
 * Runs the city in a child process, so that a crash cannot take the music service down. After a crash the parent restarts
 * the child, which resumes the last save. The child saves and exits on request of the parent, or when the parent has ended.
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { ConfigError } from "../system/config-error.js";
import { forwardStderr, type Logger } from "../system/log.js";
import { serveUntilStopped } from "../system/service-process.js";
import type { BridgeServer } from "./server.js";

/** Message that the child sends once: its address, or the reason why it cannot start, with the setting at fault. */
type Report = { readonly url: string } | { readonly error: string; readonly variable?: string | undefined };
/** Message by which the parent asks the child to stop. */
const STOP = "stop";

/** Heap limit: twice the heap that the largest possible city needs during a save. */
const HEAP_MEGABYTES = 1024;
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 30_000;
/** After this uptime a restart is immediate, without back-off. */
const LONG_LIFE_MS = 60_000;
/** A child that does not answer requests after this time is killed. The largest city loads in a fraction of it. */
const START_LIMIT_MS = 120_000;
/** A child that runs this long after a stop request is killed. Requests and the save take less. */
const STOP_LIMIT_MS = 6000;

export interface CityProcessOptions {
  /** Module to run, with its arguments; it must call `serveParent`. */
  readonly command: readonly [module: string, ...args: string[]];
  readonly environment: NodeJS.ProcessEnv;
  readonly log: Logger;
}

/** A city in a child process. Restarts keep the address. */
export class CityProcess {
  #child: ChildProcess | null = null;
  #timer: NodeJS.Timeout | undefined;
  #pauseMs = FIRST_PAUSE_MS;
  #isClosing = false;

  constructor(private readonly options: CityProcessOptions) {}

  /**
   * Starts the city. Resolves with its address once it answers requests.
   * @throws ConfigError if a setting is wrong, Error with the reason if the city cannot start
   */
  start(): Promise<string> {
    return this.#launch({});
  }

  /** Tries to start again a city that could not start, until it runs or is closed. */
  keepTrying(): void {
    this.#startAgain("the city could not start", {});
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    clearTimeout(this.#timer);
    const child = this.#child;
    if (!child) return;
    const ended = once(child, "exit");
    child.send(STOP, () => {});
    const limit = setTimeout(() => {
      this.options.log.error(`the city process did not exit within ${STOP_LIMIT_MS} ms and is killed`);
      child.kill("SIGKILL");
    }, STOP_LIMIT_MS);
    await ended;
    clearTimeout(limit);
  }

  /** Starts the child process, and restarts it when it exits. Resolves with its address once it answers requests. */
  async #launch(settings: NodeJS.ProcessEnv): Promise<string> {
    const url = await this.#fork(settings);
    this.#watch({ CITY_BRIDGE_PORT: new URL(url).port, CITY_NEW: "false" });
    return url;
  }

  #fork(settings: NodeJS.ProcessEnv): Promise<string> {
    const { command, environment, log } = this.options;
    const [module, ...args] = command;
    // The debugger of this process listens at a port, which the child cannot share.
    const options = process.execArgv.filter((option) => !option.startsWith("--inspect"));
    const child = fork(module, args, {
      env: { ...environment, ...settings },
      execArgv: [...options, `--max-old-space-size=${HEAP_MEGABYTES}`],
      stdio: ["ignore", "ignore", "pipe", "ipc"],
    });
    this.#child = child;
    forwardStderr(child);
    const limit = setTimeout(() => {
      log.error(`the city did not start within ${START_LIMIT_MS} ms and is killed`);
      child.kill("SIGKILL");
    }, START_LIMIT_MS);
    return new Promise<string>((resolve, reject) => {
      child.once("message", (report: Report) => {
        if ("url" in report) resolve(report.url);
        else
          reject(report.variable ? new ConfigError(report.variable, report.error) : new Error(report.error));
      });
      child.on("error", (error) => {
        if (child.pid === undefined) this.#forget(child);
        log.error({ err: error }, "city process failed");
        reject(error);
      });
      child.once("exit", (code, signal) => {
        this.#forget(child);
        reject(new Error(`the city process exited while starting, with ${signal ?? `code ${code}`}`));
      });
    }).finally(() => clearTimeout(limit));
  }

  #forget(child: ChildProcess): void {
    if (this.#child === child) this.#child = null;
  }

  /** Restarts the process when it exits. @param settings environment variables for every restart */
  #watch(settings: NodeJS.ProcessEnv): void {
    const startedMs = performance.now();
    this.#child?.once("exit", (code, signal) => {
      if (performance.now() - startedMs > LONG_LIFE_MS) this.#pauseMs = FIRST_PAUSE_MS;
      this.#startAgain(`the city process exited with ${signal ?? `code ${code}`}`, settings);
    });
  }

  #startAgain(reason: string, settings: NodeJS.ProcessEnv): void {
    if (this.#isClosing) return;
    const { log } = this.options;
    log.error(`${reason}; restarting from the last save in ${this.#pauseMs} ms`);
    this.#timer = setTimeout(async () => {
      try {
        log.info(`city restarted at ${await this.#launch(settings)}`);
      } catch (error) {
        this.#startAgain((error as Error).message, settings);
      }
    }, this.#pauseMs);
    this.#pauseMs = Math.min(2 * this.#pauseMs, LONGEST_PAUSE_MS);
  }
}

/** Serves a city in the child process until the parent ends or asks the child to stop. */
export async function serveParent(start: () => Promise<BridgeServer>, log: Logger): Promise<void> {
  // A terminal sends these signals to the whole process group. The child ignores them: they must not interrupt
  // the save.
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.on(signal, () => {});
  const stopRequest = new Promise<string>((resolve) => {
    process.once("message", () => resolve("stopped by the parent process"));
    process.once("disconnect", () => resolve("the parent process ended"));
    if (!process.connected) resolve("the parent process ended");
  });
  const serve = async (add: (service: BridgeServer) => void) => {
    const city = await start();
    add(city);
    await report({ url: city.url });
  };
  try {
    await serveUntilStopped(log, serve, stopRequest);
  } catch (error) {
    const variable = error instanceof ConfigError ? error.variable : undefined;
    await report({ error: error instanceof Error ? error.message : String(error), variable });
    process.exitCode = 1;
    if (process.connected) process.disconnect();
  }
}

/** Resolves once the message is sent or the parent has ended. */
function report(message: Report): Promise<void> {
  return new Promise((resolve) => {
    if (process.connected) process.send?.(message, undefined, undefined, () => resolve());
    else resolve();
  });
}
