import type { ChildProcess } from "node:child_process";
import { fstatSync, writeSync } from "node:fs";
import type { Socket } from "node:net";
import { createInterface } from "node:readline";
import { type Logger, pino } from "pino";

export type { Logger };

const STDERR = 2;
/** Maximum number of bytes that wait in memory if stderr is read slowly. The pipe holds about as much again. */
const MAX_WAITING_BYTES = 2 ** 20;

/**
 * Writes lines to stderr without ever blocking. If the disk is full or the pipe is not read, lines are dropped and
 * counted.
 */
class StderrLines {
  #dropped = 0;
  #isLineOpen = false;
  /** Stream of stderr; null if stderr is a file or a device, which is written synchronously. */
  readonly #pipe = isPipe(STDERR) ? process.stderr : null;

  constructor() {
    // Ignore errors here: `write` counts each lost line.
    this.#pipe?.on("error", () => {});
  }

  get dropped(): number {
    return this.#dropped;
  }

  write(line: string): void {
    remember(line.trimEnd());
    if (this.#pipe === null) this.#writeAtOnce(line);
    else if (this.#pipe.writableLength > MAX_WAITING_BYTES) this.#dropped++;
    else {
      this.#pipe.write(line, (error) => {
        if (error) this.#dropped++;
      });
    }
  }

  #writeAtOnce(line: string): void {
    const bytes = Buffer.from(this.#isLineOpen ? `\n${line}` : line);
    let written = 0;
    try {
      while (written < bytes.length) written += writeSync(STDERR, bytes, written);
      this.#isLineOpen = false;
    } catch {
      this.#dropped++;
      // A full disk may have cut the line off. The next write must then end this line first.
      if (written > 0) this.#isLineOpen = true;
    }
  }
}

function isPipe(descriptor: number): boolean {
  try {
    const found = fstatSync(descriptor);
    return found.isFIFO() || found.isSocket();
  } catch {
    return false;
  }
}

let stderrLines: StderrLines | undefined;

const MAX_RECENT_LINES = 200;

/** The last lines of the log, and the functions that get new ones. */
const recentLines: string[] = [];
const listeners = new Set<(line: string) => void>();

function remember(line: string): void {
  recentLines.push(line);
  if (recentLines.length > MAX_RECENT_LINES) recentLines.shift();
  for (const listener of listeners) listener(line);
}

/** Calls `listener` with the recent lines of this process's log, and with each new line until the signal fires. */
export function followLog(listener: (line: string) => void, signal: AbortSignal): void {
  for (const line of recentLines) listener(line);
  if (signal.aborted) return;
  listeners.add(listener);
  signal.addEventListener("abort", () => listeners.delete(listener), { once: true });
}

function toStderr(): StderrLines {
  stderrLines ??= new StderrLines();
  return stderrLines;
}

/** Creates a logger that writes JSON lines to stderr. stdout is for the output of commands. Never log secrets. */
export function createLogger(level: string): Logger {
  return pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, toStderr());
}

/**
 * Forwards the stderr of a child process. A child that inherits our stderr would make our own writes to
 * stderr blocking.
 */
export function forwardStderr({ stderr }: ChildProcess): void {
  // stderr is undefined if the child could not start, for example for lack of file descriptors.
  if (!stderr) return;
  (stderr as Socket).unref();
  createInterface({ input: stderr }).on("line", (line) => toStderr().write(`${line}\n`));
}

/** Number of log lines that could not be written. */
export function droppedLogLines(): number {
  return stderrLines?.dropped ?? 0;
}
