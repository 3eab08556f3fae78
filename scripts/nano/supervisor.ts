/** Runs the programs of training at idle priority within a memory limit, and reports their progress. */
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

const noFigures = {
  loss: null,
  heldOutLoss: null,
  stepsPerHour: null,
  hoursLeft: null,
  memoryMegabytes: null,
};

export class Supervisor {
  readonly #directory: string;
  readonly #wrapper: string[];
  readonly #memoryBytes: number;
  readonly #heartbeat: NodeJS.Timeout;
  #child: ChildProcess | null = null;
  /** Why the program was asked to end. */
  #interruption: "pause" | "stop" | "memory" | null = null;
  /** If its time counts as training: start, hours before, and hours to pause at. */
  #training: { sinceMs: number; hoursBefore: number; pauseAtHours: number } | null = null;
  readonly #status: Status;
  /** Times and steps of this stage, for its rate. */
  #history: { atMs: number; step: number }[] = [];

  /** @param options.memoryBytes limit of all processes of a program together */
  constructor(directory: string, { isIdle = true, memoryBytes = memoryLimitBytes } = {}) {
    this.#wrapper = wrapper(isIdle);
    this.#memoryBytes = memoryBytes;
    this.#directory = directory;
    const now = new Date().toISOString();
    this.#status = {
      ...{ state: "running", pid: process.pid, startedAt: now, updatedAt: now, stage: "start" },
      ...{ step: 0, steps: 0, ...noFigures, trainedHours: readStatus(directory)?.trainedHours ?? 0 },
    };
    this.#heartbeat = setInterval(() => this.#beat(), heartbeatMs).unref();
    this.#report();
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
    const [command = "", ...parameters] = [...this.#wrapper, program.command, ...program.parameters];
    // A group of its own: signals of the terminal reach only this process, and its programs end with it.
    const child = spawn(command, parameters, {
      ...{ env: program.env, stdio: ["ignore", "pipe", "inherit"], detached: true },
    });
    this.#child = child;
    const memoryCheck = setInterval(() => this.#checkMemory(), memoryCheckMs).unref();
    createInterface({ input: child.stdout }).on("line", (line) => this.#read(line, program));
    const [code, signal] = (await once(child, "close")) as [number | null, string | null];
    clearInterval(memoryCheck);
    this.#child = null;
    const interruption = this.#interruption;
    this.#interruption = null;
    if (interruption === "stop") this.#exit();
    if (interruption === "memory")
      throw new Error(`${program.stage} used more than ${this.#memoryBytes} bytes of memory and was stopped`);
    if (interruption === null && code !== 0) {
      const how = code === null ? `signal ${signal}` : `exit code ${code}`;
      throw new Error(`${program.command} ${program.parameters.slice(0, 3).join(" ")} ended with ${how}`);
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

  /** Files are replaced atomically, so a program that does not save in time loses the minutes since its last state. */
  #interrupt(reason: "pause" | "stop" | "memory"): void {
    this.#interruption = reason;
    const pid = this.#child?.pid;
    if (pid === undefined) return;
    // At idle priority saving could take too long. A program that has ended needs none.
    if (process.platform === "linux") spawnSync("chrt", ["--all-tasks", "--other", "--pid", "0", `${pid}`]);
    killGroup(pid, "SIGTERM");
    setTimeout(() => killGroup(pid, "SIGKILL"), stopMs).unref();
  }

  #checkMemory(): void {
    const pid = this.#child?.pid;
    if (pid === undefined || this.#interruption !== null) return;
    if (groupMemoryBytes(pid) > this.#memoryBytes) this.#interrupt("memory");
  }

  #beat(): void {
    this.#countHours();
    this.#report();
    console.log(statusLine(this.#status));
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
    Object.assign(this.#status, { stage, step: 0, steps, ...noFigures });
    this.#report();
  }

  #read(line: string, program: Program): void {
    if (!line.startsWith("{")) {
      console.log(line);
      return;
    }
    const { stage, step, steps, kind, loss, hoursLeft, memoryMegabytes } = JSON.parse(line) as Progress;
    const status = this.#status;
    this.#enter(stage);
    Object.assign(status, { step, steps: steps ?? program.steps ?? 0 });
    status[kind === "held out" ? "heldOutLoss" : "loss"] = loss ?? null;
    status.memoryMegabytes = memoryMegabytes ?? status.memoryMegabytes;
    this.#updateRate(hoursLeft);
    this.#countHours();
    this.#report();
  }

  #updateRate(hoursLeft: number | undefined): void {
    const [now, { step, steps }] = [Date.now(), this.#status];
    this.#history.push({ atMs: now, step });
    this.#history = this.#history.filter(({ atMs }) => now - atMs <= rateWindowMs);
    const [first] = this.#history;
    if (first === undefined || step === first.step) return;
    const perHour = (3_600_000 * (step - first.step)) / (now - first.atMs);
    this.#status.stepsPerHour = Math.round(perHour);
    this.#status.hoursLeft = hoursLeft ?? (steps - step) / perHour;
  }

  #report(): void {
    this.#status.updatedAt = new Date().toISOString();
    const path = statusPath(this.#directory);
    writeFileSync(`${path}.part`, `${JSON.stringify(this.#status, null, 1)}\n`);
    renameSync(`${path}.part`, path);
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
  if (tryLock(openSync(join(directory, "lock"), "a"))) return;
  throw new Error(
    `training runs already in ${directory}, process ${readStatus(directory)?.pid}: ` +
      "npm run train:nano -- --status shows it, --stop stops it",
  );
}

/** Null if no run has started. A run that was killed is reported as stopped. */
export function readStatus(directory: string): Status | null {
  if (!existsSync(statusPath(directory))) return null;
  const status = JSON.parse(readFileSync(statusPath(directory), "utf8")) as Status;
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
  const file = openSync(join(directory, "lock"), "a");
  const isFree = tryLock(file);
  closeSync(file);
  return !isFree;
}
