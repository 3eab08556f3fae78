/** Runs the training programs at idle priority within a memory limit, and reports their progress. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { tryLock } from "fs-native-extensions";
import { groupMemoryBytes } from "./group-memory.js";

export interface Program {
  command: string;
  parameters: string[];
  env: NodeJS.ProcessEnv;
  /** Stage to show until the program prints a line that names another stage. */
  stage: string;
}

/** Progress of a program, read from the lines that it prints. */
interface Progress {
  stage: string;
  step: number;
  steps: number;
  secondsPerStep?: number;
  /** Estimated hours that remain: first for making the data set, later for all training stages. */
  hoursLeft?: number;
  memoryMegabytes?: number;
}

export interface Status extends Progress {
  state: "running" | "stopped" | "finished" | "failed";
  pid: number;
  updatedAt: string;
  /** Training time in hours, summed over all runs. */
  trainedHours: number;
  loss?: number;
  heldOutLoss?: number;
}

const memoryLimitBytes = 6 * 2 ** 30;
const heartbeatMs = 60_000;
const checkMs = 1000;
/** Time that a program has to save its state after SIGTERM. */
const stopMs = 800;

export class Supervisor {
  readonly #directory: string;
  readonly #wrapper: string[];
  readonly #memoryBytes: number;
  readonly #heartbeat: NodeJS.Timeout;
  #child: ChildProcess | null = null;
  /** Why the supervisor is ending the program; null while it runs normally. */
  #interruption: "pause" | "stop" | "memory" | null = null;
  #status: Status;

  /** @param options.memoryBytes memory limit of a program, including its child processes */
  constructor(directory: string, { isIdle = true, memoryBytes = memoryLimitBytes } = {}) {
    this.#wrapper = wrapper(isIdle);
    this.#memoryBytes = memoryBytes;
    this.#directory = directory;
    this.#status = {
      ...{ state: "running", pid: process.pid, updatedAt: "", stage: "start", step: 0, steps: 0 },
      trainedHours: readStatus(directory)?.trainedHours ?? 0,
    };
    this.#heartbeat = setInterval(() => this.#beat(), heartbeatMs).unref();
    this.#report();
    for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.once(signal, () => this.#stop());
  }

  get trainedHours(): number {
    return this.#status.trainedHours;
  }

  /**
   * Runs a program.
   * @param pauseAtHours total training hours at which to end the program. Without it, the program's time does not
   * count as training
   * @returns whether the program ended by itself
   * @throws Error if the program fails
   */
  async run({ stage, command, parameters, env }: Program, pauseAtHours?: number): Promise<boolean> {
    this.#enter(stage);
    const [first = "", ...others] = [...this.#wrapper, command, ...parameters];
    // The program has its own process group, so Ctrl-C in the terminal reaches only this process. This process then
    // ends the program.
    const child = spawn(first, others, { env, stdio: ["ignore", "pipe", "inherit"], detached: true });
    this.#child = child;
    const [startMs, hoursBefore] = [Date.now(), this.trainedHours];
    const check = (): void => {
      if (pauseAtHours !== undefined)
        this.#status.trainedHours = hoursBefore + (Date.now() - startMs) / 3_600_000;
      if (this.#child === null || this.#interruption !== null) return;
      if (groupMemoryBytes(child.pid ?? 0) > this.#memoryBytes) this.#interrupt("memory");
      else if (this.trainedHours >= (pauseAtHours ?? Number.POSITIVE_INFINITY)) this.#interrupt("pause");
    };
    const checks = setInterval(check, checkMs).unref();
    createInterface({ input: child.stdout }).on("line", (line) => this.#read(line));
    const [code, signal] = (await once(child, "close")) as [number | null, string | null];
    clearInterval(checks);
    this.#child = null;
    const interruption = this.#interruption;
    this.#interruption = null;
    check();
    if (interruption === "stop") this.#exit();
    if (interruption === "memory")
      throw new Error(`${stage} used more than ${this.#memoryBytes} bytes of memory and was stopped`);
    if (interruption === null && code !== 0) {
      const how = code === null ? `signal ${signal}` : `exit code ${code}`;
      throw new Error(`${command} ${parameters.slice(0, 3).join(" ")} ended with ${how}`);
    }
    return interruption === null;
  }

  end(state: Status["state"]): void {
    clearInterval(this.#heartbeat);
    this.#status.state = state;
    this.#beat();
  }

  #stop(): void {
    if (this.#child === null) this.#exit();
    this.#interrupt("stop");
  }

  #exit(): never {
    this.end("stopped");
    process.exit(0);
  }

  /**
   * Ends the program. A program that does not save in time is killed. It then loses the progress since the last
   * saved state, but its files stay intact.
   */
  #interrupt(reason: "pause" | "stop" | "memory"): void {
    this.#interruption = reason;
    const pid = this.#child?.pid;
    if (pid === undefined) return;
    // Restores normal priority, because saving could take too long at idle priority.
    spawnSync("chrt", ["--all-tasks", "--other", "--pid", "0", `${pid}`]);
    killGroup(pid, "SIGTERM");
    setTimeout(() => killGroup(pid, "SIGKILL"), stopMs).unref();
  }

  #beat(): void {
    this.#report();
    console.log(statusLine(this.#status));
  }

  /** Starts a new stage: clears the figures of the previous one. */
  #enter(stage: string): void {
    if (stage === this.#status.stage) return;
    const { state, pid, updatedAt, trainedHours } = this.#status;
    this.#status = { state, pid, updatedAt, trainedHours, stage, step: 0, steps: 0 };
    this.#report();
  }

  #read(line: string): void {
    if (!line.startsWith("{")) {
      console.log(line);
      return;
    }
    const { kind, loss, ...progress } = JSON.parse(line) as Progress & { kind?: string; loss?: number };
    this.#enter(progress.stage);
    Object.assign(this.#status, progress, { [kind === "held out" ? "heldOutLoss" : "loss"]: loss });
    this.#report();
  }

  #report(): void {
    this.#status.updatedAt = new Date().toISOString();
    const path = statusPath(this.#directory);
    writeFileSync(`${path}.part`, `${JSON.stringify(this.#status, null, 1)}\n`);
    renameSync(`${path}.part`, path);
  }
}

/** Ignores a process group that has already ended. */
function killGroup(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

/**
 * Returns a command prefix that sets the priority and the memory limit of a program. The program is killed when this
 * process ends.
 */
function wrapper(isIdle: boolean): string[] {
  const limits = ["setpriv", "--pdeathsig", "KILL", "prlimit", `--data=${memoryLimitBytes}`];
  return isIdle ? [...limits, "chrt", "--idle", "0"] : limits;
}

/** @throws Error if another process trains in this directory */
export function lockTraining(directory: string): void {
  mkdirSync(directory, { recursive: true });
  // The lock is held until this process ends.
  if (tryLock(openSync(join(directory, "lock"), "a"))) return;
  throw new Error(
    `training already runs in ${directory} as process ${readStatus(directory)?.pid}: ` +
      "npm run train:nano -- --status shows it, --stop stops it",
  );
}

/**
 * Returns the status of the latest run; null if no run has started. A run that was killed counts as stopped.
 */
export function readStatus(directory: string): Status | null {
  if (!existsSync(statusPath(directory))) return null;
  const status = JSON.parse(readFileSync(statusPath(directory), "utf8")) as Status;
  return status.state === "running" && !isLocked(directory) ? { ...status, state: "stopped" } : status;
}

export function statusLine(status: Status | null): string {
  if (status === null) return "training has not started";
  const { updatedAt, state, stage, step, steps, secondsPerStep = Number.NaN } = status;
  const figures: [number | undefined, (figure: number) => string][] = [
    [status.loss, (loss) => `loss ${loss.toPrecision(4)}`],
    [status.heldOutLoss, (loss) => `held out ${loss.toPrecision(4)}`],
    [3600 / secondsPerStep, (rate) => `${Math.round(rate)} steps an hour`],
    [status.hoursLeft, (hours) => `${hours.toFixed(1)} hours left`],
    [status.memoryMegabytes, (size) => `${size} MB`],
  ];
  const known = figures.map(([figure, text]) => (Number.isFinite(figure) ? [text(figure as number)] : []));
  return [`${updatedAt} ${state}: ${stage} ${step}/${steps}`, ...known.flat()].join(", ");
}

function statusPath(directory: string): string {
  return join(directory, "status.json");
}

/** Checks the lock and not the process id, because the system may reuse the id of a process that has ended. */
function isLocked(directory: string): boolean {
  const file = openSync(join(directory, "lock"), "a");
  const isFree = tryLock(file);
  closeSync(file);
  return !isFree;
}
