/** Runs a process with services until it is stopped. Handles signals and uncaught errors. */
import { Worker } from "node:worker_threads";
import type { Logger } from "./log.js";

/** Time for closing services after the grace period. Then the process exits in any case. */
const CLOSING_SECONDS = 2.5;
/** Time for closing services after an uncaught error. Running jobs get no grace period. */
const FAILURE_SECONDS = 4;
/** Time that `process.exit` may take before the process is killed. */
const EXIT_SECONDS = 0.8;

export interface Service {
  /** @param graceSeconds time in which running work may finish; default: chosen by the service */
  close(graceSeconds?: number): Promise<void>;
}

/**
 * Runs services until SIGTERM, SIGINT, SIGHUP or `stopRequest`. Then closes all services in parallel, and exits with
 * code 0. A second signal ends the process immediately. An uncaught error is logged and closes the services without a
 * grace period; the exit code is 1, and unfinished tasks return to the queue.
 * @param start starts the services; calling its argument `fail` has the effect of an uncaught error
 * @param stopRequest resolves with the reason if the process should stop without a signal
 * @param workSeconds grace period in which running work may finish
 * @throws the error of `start`, after closing the services that were added
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
  // A full disk or a closed pipe behind stdout must not stop the services.
  process.stdout.on("error", (err) => log.warn({ err }, "could not write a line to stdout"));
  // Node also reports unhandled rejections as uncaught exceptions.
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

/** Ends the process after a time limit. A second thread kills it if this thread is blocked. */
function endAfter(seconds: number, code: number, log: Logger): void {
  setTimeout(() => {
    log.warn("some services did not close in time");
    process.exit(code);
  }, seconds * 1000);
  const limitMs = (seconds + EXIT_SECONDS) * 1000;
  const program = `setTimeout(() => process.kill(process.pid, "SIGKILL"), ${limitMs})`;
  const watchdog = new Worker(program, { eval: true, execArgv: [] });
  watchdog.on("error", (err) =>
    log.warn({ err }, "could not start the watchdog: a blocked process will not be killed"),
  );
  watchdog.unref();
}
