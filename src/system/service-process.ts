/** Runs a process that serves until stopped; handles signals and uncaught errors. */
import { Worker } from "node:worker_threads";
import type { Logger } from "./log.js";

/** Time to close after the grace period; then the process exits anyway. */
const CLOSING_SECONDS = 2.5;
/** Time to close after a failure, without waiting for running jobs. */
const FAILURE_SECONDS = 4;
/** Time for a normal exit before the process is killed. */
const EXIT_SECONDS = 0.8;

export interface Service {
  /** `graceSeconds`: time for work in progress; absent: the service's default. */
  close(graceSeconds?: number): Promise<void>;
}

/**
 * Runs services until SIGTERM, SIGINT, SIGHUP (terminal closed) or `stopRequest`, then closes them in parallel and exits
 * with 0. An uncaught error is logged once; services are closed immediately and the process exits with 1; unfinished
 * tasks return to the queue. A second signal exits immediately.
 * @param start starts the services; its `fail` argument exits as on an uncaught error
 * @param stopRequest resolves with a reason to stop other than a signal
 * @param workSeconds time for work in progress before closing
 * @throws the error of `start`, after closing the services that it added
 */
export async function serveUntilStopped(
  log: Logger,
  start: (add: (service: Service) => void, fail: (err: Error, what: string) => void) => Promise<void>,
  stopRequest?: Promise<string>,
  workSeconds = 4,
): Promise<void> {
  const services: Service[] = [];
  let isEnding = false;
  const close = async (graceSeconds?: number) => {
    for (const closing of await Promise.allSettled(services.map((service) => service.close(graceSeconds)))) {
      if (closing.status === "rejected")
        log.error({ err: closing.reason }, "a service did not close cleanly");
    }
  };
  const end = async (code: number, limitSeconds: number, graceSeconds?: number) => {
    isEnding = true;
    endAfter(limitSeconds, code, log);
    await close(graceSeconds);
    process.exit(code);
  };

  const fail = (err: Error, what: string) => {
    if (isEnding) return;
    log.fatal({ err }, what);
    void end(1, FAILURE_SECONDS, 0);
  };
  // Services keep running when stdout is a full disk or a closed pipe.
  process.stdout.on("error", (err) => log.warn({ err }, "could not write a line to stdout"));
  // Node reports unhandled rejections as uncaught exceptions too.
  process.on("uncaughtException", (err) => fail(err, "uncaught error: the server stops"));
  const stop = (reason: string) => {
    process.off("SIGTERM", stop).off("SIGINT", stop).off("SIGHUP", stop);
    if (isEnding) return;
    log.info(`${reason}: stopping`);
    void end(0, workSeconds + CLOSING_SECONDS);
  };
  process.on("SIGTERM", stop).on("SIGINT", stop).on("SIGHUP", stop);
  void stopRequest?.then(stop);

  try {
    await start((service) => services.push(service), fail);
  } catch (error) {
    if (!isEnding) {
      isEnding = true;
      await close(0);
      throw error;
    }
  }
}

/** Kills the process after the time limit, from another thread in case this one is blocked. */
function endAfter(seconds: number, code: number, log: Logger): void {
  setTimeout(() => {
    log.warn("some services did not close in time");
    process.exit(code);
  }, seconds * 1000);
  const limitMs = (seconds + EXIT_SECONDS) * 1000;
  const program = `setTimeout(() => process.kill(process.pid, "SIGKILL"), ${limitMs})`;
  const watchdog = new Worker(program, { eval: true, execArgv: [] });
  watchdog.on("error", (err) => log.warn({ err }, "no watchdog: a blocked process will not be killed"));
  watchdog.unref();
}
