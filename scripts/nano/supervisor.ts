/** Runs the programs of training at idle priority within a memory limit, and reports their progress. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { closeSync, mkdirSync, openSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { tryLock } from "fs-native-extensions";
import { groupMemoryBytes } from "./group-memory.js";

export interface Program {
  command: string;
  parameters: string[];
  env: NodeJS.ProcessEnv;
  /** Shown until a line of the program names another. */
  stage: string;
  /** Steps in all, of a program whose lines give none. */
  steps?: number;
}

export interface Status {
  state: "running" | "stopped" | "finished" | "failed";
  pid: number;
  startedAt: string;
  updatedAt: string;
  stage: string;
  step: number;
  steps: number;
  loss: number | null;
  heldOutLoss: number | null;
  stepsPerHour: number | null;
  /** To the end of all stages; while the data set is made, to its end. */
  hoursLeft: number | null;
  memoryMegabytes: number | null;
  /** Training time of all runs together. */
  trainedHours: number;
}

/** A line of a program. */
interface Progress {
  stage: string;
  step: number;
  steps?: number;
  kind?: "training" | "held out";
  loss?: number;
  hoursLeft?: number;
  memoryMegabytes?: number;
}

const memoryLimitBytes = 6 * 2 ** 30;
const heartbeatMs = 60_000;
const memoryCheckMs = 1000;
/** Steps an hour are those since this long ago. */
const rateWindowMs = 1_800_000;
/** A program has this long to save its state. */
const stopMs = 800;

export class Supervisor {
  readonly #directory: string;
  readonly #reports: boolean;
  readonly #wrapper: string[];
  readonly #memoryBytes: number;
  readonly #heartbeat: NodeJS.Timeout | null;
  #child: ChildProcess | null = null;
  /** Why the program was asked to end. */
  #interruption: "pause" | "stop" | "memory" | null = null;
  /** If its time counts as training: start, hours before, and hours to pause at. */
  #training: { sinceMs: number; hoursBefore: number; pauseAtHours: number } | null = null;
  #status: Status;
  /** Times and steps of this stage, for its rate. */
  #history: { atMs: number; step: number }[] = [];

  /**
   * @param options.reports writes the status file and a heartbeat line a minute
   * @param options.memoryBytes limit of all processes of a program together
   */
  constructor(directory: string, { reports = false, isIdle = true, memoryBytes = memoryLimitBytes } = {}) {
    this.#wrapper = wrapper(isIdle);
    this.#memoryBytes = memoryBytes;
    const now = new Date().toISOString();
    this.#directory = directory;
    this.#reports = reports;
    this.#status = {
      ...{
        state: "running",
        pid: process.pid,
        startedAt: now,
        updatedAt: now,
        stage: "start",
        step: 0,
        steps: 0,
      },
      ...{ loss: null, heldOutLoss: null, stepsPerHour: null, hoursLeft: null, memoryMegabytes: null },
      trainedHours: readStatus(directory)?.trainedHours ?? 0,
    };
    this.#heartbeat = reports ? setInterval(() => this.#beat(), heartbeatMs).unref() : null;
    this.#report(false);
    for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.once(signal, () => this.#stop());
  }

  get trainedHours(): number {
    return this.#status.trainedHours;
  }

  /** Trains until the program ends or `pauseAtHours` of training are full. @returns whether it ended. @throws as `run` */
  async train(program: Program, pauseAtHours: number): Promise<boolean> {
    this.#training = { sinceMs: Date.now(), hoursBefore: this.trainedHours, pauseAtHours };
    try {
      return await this.run(program);
    } finally {
      this.#countHours();
      this.#training = null;
    }
  }

  /** Runs a program. @returns whether it ended by itself. @throws Error if it fails */
  async run(program: Program): Promise<boolean> {
    this.#enter(program.stage, program.steps);
    const [command, ...parameters] = [...this.#wrapper, program.command, ...program.parameters] as [
      string,
      ...string[],
    ];
    // A group of its own: signals of the terminal reach only this process, and its programs end with it.
    const child = spawn(command, parameters, {
      env: program.env,
      stdio: ["ignore", "pipe", "inherit"],
      detached: true,
    });
    this.#child = child;
    const memoryCheck = setInterval(() => this.#checkMemory(), memoryCheckMs).unref();
    createInterface({ input: child.stdout }).on("line", (line) => this.#read(line, program));
    const [code, signal] = await new Promise<[number | null, string | null]>((done, fail) => {
      child.once("error", fail);
      child.once("close", (...ended) => done(ended));
    });
    clearInterval(memoryCheck);
    this.#child = null;
    if (this.#interruption === "stop") this.#exit();
    if (this.#interruption === "memory") {
      this.#interruption = null;
      throw new Error(`${program.stage} used more than ${this.#memoryBytes} bytes of memory and was stopped`);
    }
    if (this.#interruption === "pause") {
      this.#interruption = null;
      return false;
    }
    if (code !== 0) {
      const how = code === null ? `signal ${signal}` : `exit code ${code}`;
      throw new Error(`${program.command} ${program.parameters.slice(0, 3).join(" ")} ended with ${how}`);
    }
    return true;
  }

  end(state: Status["state"]): void {
    if (this.#heartbeat !== null) clearInterval(this.#heartbeat);
    this.#status.state = state;
    this.#report(true);
  }

  #stop(): void {
    if (this.#child === null) this.#exit();
    this.#interrupt("stop");
  }

  #exit(): never {
    this.#countHours();
    this.end("stopped");
    process.exit(0);
  }

  /** Files are replaced atomically, so a program that does not save in time loses the minutes since its last state. */
  #interrupt(reason: "pause" | "stop" | "memory"): void {
    this.#interruption = reason;
    const { pid } = this.#child ?? {};
    if (pid === undefined) return;
    // At idle priority saving could take too long. A program that has ended needs none.
    if (process.platform === "linux") spawnSync("chrt", ["--all-tasks", "--other", "--pid", "0", `${pid}`]);
    killGroup(pid, "SIGTERM");
    setTimeout(() => killGroup(pid, "SIGKILL"), stopMs).unref();
  }

  #checkMemory(): void {
    const { pid } = this.#child ?? {};
    if (pid === undefined || this.#interruption !== null) return;
    if (groupMemoryBytes(pid) > this.#memoryBytes) this.#interrupt("memory");
  }

  #beat(): void {
    this.#countHours();
    this.#report(true);
  }

  /** Pauses the program when its hours are full. */
  #countHours(): void {
    if (this.#training === null) return;
    const { sinceMs, hoursBefore, pauseAtHours } = this.#training;
    this.#status.trainedHours = hoursBefore + (Date.now() - sinceMs) / 3_600_000;
    const isRunning = this.#child !== null && this.#interruption === null;
    if (isRunning && this.trainedHours >= pauseAtHours) this.#interrupt("pause");
  }

  /** Resets the figures for a new stage. */
  #enter(stage: string, steps = 0): void {
    if (stage === this.#status.stage) return;
    this.#history = [];
    const none = {
      loss: null,
      heldOutLoss: null,
      stepsPerHour: null,
      hoursLeft: null,
      memoryMegabytes: null,
    };
    Object.assign(this.#status, { stage, step: 0, steps, ...none });
    this.#report(false);
  }

  #read(line: string, { steps = 0 }: Program): void {
    if (!line.startsWith("{")) {
      console.log(line);
      return;
    }
    const progress = JSON.parse(line) as Progress;
    const status = this.#status;
    this.#enter(progress.stage);
    Object.assign(status, { step: progress.step, steps: progress.steps ?? steps });
    if (progress.kind === "held out") status.heldOutLoss = progress.loss ?? null;
    else status.loss = progress.loss ?? null;
    status.memoryMegabytes = progress.memoryMegabytes ?? status.memoryMegabytes;
    this.#updateRate(progress);
    this.#countHours();
    this.#report(false);
  }

  #updateRate({ step, hoursLeft }: Progress): void {
    const now = Date.now();
    this.#history.push({ atMs: now, step });
    this.#history = this.#history.filter(({ atMs }) => now - atMs <= rateWindowMs);
    const [first] = this.#history;
    if (first === undefined || step === first.step) return;
    const perHour = (3_600_000 * (step - first.step)) / (now - first.atMs);
    this.#status.stepsPerHour = Math.round(perHour);
    this.#status.hoursLeft = hoursLeft ?? (this.#status.steps - step) / perHour;
  }

  #report(isHeartbeat: boolean): void {
    if (!this.#reports) return;
    this.#status.updatedAt = new Date().toISOString();
    mkdirSync(this.#directory, { recursive: true });
    const path = statusPath(this.#directory);
    writeFileSync(`${path}.part`, `${JSON.stringify(this.#status, null, 1)}\n`);
    renameSync(`${path}.part`, path);
    if (isHeartbeat) console.log(statusLine(this.#status));
  }
}

/** A group that has ended is left alone. */
function killGroup(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

/** Ends programs with this process, and sets the memory limit and the priority. Only Linux has all three. */
function wrapper(isIdle: boolean): string[] {
  if (process.platform !== "linux") return isIdle ? ["nice", "-n", "19"] : [];
  const limits = ["setpriv", "--pdeathsig", "KILL", "prlimit", `--data=${memoryLimitBytes}`];
  return isIdle ? [...limits, "chrt", "--idle", "0"] : limits;
}

/** @throws Error if another process trains in this directory */
export function lockTraining(directory: string): void {
  mkdirSync(directory, { recursive: true });
  // Held until the process ends.
  if (tryLock(openSync(lockPath(directory), "a"))) return;
  throw new Error(
    `training runs already in ${directory}, process ${readStatus(directory)?.pid}: ` +
      "npm run train:nano -- --status shows it, --stop stops it",
  );
}

/** Null if no run has started. A run that was killed is reported as stopped. */
export function readStatus(directory: string): Status | null {
  let status: Status;
  try {
    status = JSON.parse(readFileSync(statusPath(directory), "utf8")) as Status;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
  return status.state === "running" && !isLocked(directory) ? { ...status, state: "stopped" } : status;
}

export function statusLine(status: Status | null): string {
  if (status === null) return "training has not started";
  const { state, stage, step, steps, loss, heldOutLoss, stepsPerHour, hoursLeft, memoryMegabytes } = status;
  const figures = [
    loss === null ? "" : `loss ${loss.toPrecision(4)}`,
    heldOutLoss === null ? "" : `held out ${heldOutLoss.toPrecision(4)}`,
    stepsPerHour === null ? "" : `${stepsPerHour} steps an hour`,
    hoursLeft === null ? "" : `${hoursLeft.toFixed(1)} hours left`,
    memoryMegabytes === null ? "" : `${memoryMegabytes} MB`,
  ];
  return [`${status.updatedAt} ${state}: ${stage} ${step}/${steps}`, ...figures.filter(Boolean)].join(", ");
}

function statusPath(directory: string): string {
  return join(directory, "status.json");
}

/** The system releases a lock when its process ends, so a process id that was reused is not taken for a run. */
function isLocked(directory: string): boolean {
  const file = openSync(lockPath(directory), "a");
  const isFree = tryLock(file);
  closeSync(file);
  return !isFree;
}

function lockPath(directory: string): string {
  return join(directory, "lock");
}
