/** A process that serves until it is told to stop, and how it ends when something went wrong that nobody caught. */
import { Worker } from "node:worker_threads";
import type { Logger } from "./log.js";

/** From the end of the grace to the end of the process, whatever hangs. */
const CLOSING_SECONDS = 2.5;
/** From a failure of the process to its end; running jobs get no time then. */
const FAILURE_SECONDS = 4;
/** What the process gets to end by itself once its time is over. */
const EXIT_SECONDS = 0.8;

export interface Service {
  /** `graceSeconds`: what work under way may still take; absent: the service's own default. */
  close(graceSeconds?: number): Promise<void>;
}

/**
 * Runs services until SIGTERM, SIGINT or `asked`, then closes them side by side and ends the process with 0. An error
 * that nobody caught is logged once; the services are closed at once and the process ends with 1: it may be in any
 * state, but the tasks of its jobs go back into the queue. A second signal ends the process as it stands.
 * @param start is also given what ends the process as such an error does
 * @param asked resolves with the reason where somebody asks for the end by another way than a signal
 * @param workSeconds what work under way gets to finish before it is closed
 * @throws what `start` throws, once the services that it added are closed
 */
export async function serveUntilStopped(
  log: Logger,
  start: (add: (service: Service) => void, fail: (err: Error, what: string) => void) => Promise<void>,
  asked?: Promise<string>,
  workSeconds = 4,
): Promise<void> {
  const services: Service[] = [];
  let isEnding = false;
  const close = async (graceSeconds?: number) => {
    for (const closing of await Promise.allSettled(services.map((service) => service.close(graceSeconds)))) {
      if (closing.status === "rejected")
        log.error({ err: closing.reason }, "a service was not closed cleanly");
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
  // Rejections that nobody heard arrive here too.
  process.on("uncaughtException", (err) => fail(err, "an error that nobody caught ends the server"));
  const stop = (reason: string) => {
    process.off("SIGTERM", stop).off("SIGINT", stop);
    if (isEnding) return;
    log.info(`${reason}: stopping`);
    void end(0, workSeconds + CLOSING_SECONDS);
  };
  process.on("SIGTERM", stop).on("SIGINT", stop);
  void asked?.then(stop);

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

/** Ends the process when the time is over; from another thread where this one is caught in a call. */
function endAfter(seconds: number, code: number, log: Logger): void {
  setTimeout(() => {
    log.warn("not everything could be closed in time");
    process.exit(code);
  }, seconds * 1000);
  const limitMs = (seconds + EXIT_SECONDS) * 1000;
  const program = `setTimeout(() => process.kill(process.pid, "SIGKILL"), ${limitMs})`;
  const watchdog = new Worker(program, { eval: true, execArgv: [] });
  watchdog.on("error", (err) => log.warn({ err }, "nothing ends the process where it hangs"));
  watchdog.unref();
}
