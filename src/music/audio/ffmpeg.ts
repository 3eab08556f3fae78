/**
 * Runs the `ffmpeg` program, the system's or that of an optional package: any version works, and whatever it is given,
 * it cannot crash us.
 */
import { createRequire } from "node:module";
import type { Writable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { Confinement } from "./confinement.js";
import { provideStarter, type Running, startProgram } from "./starter.js";

/** Programs for every platform, static, in the packages themselves: nothing is downloaded or run when they are installed. */
export const STATIC_PACKAGE = "@ffmpeg-installer/ffmpeg";
/** Far beyond any song, any recording within its limits: what takes longer was built to. */
const CPU_SECONDS = 120;
/** Real recordings take a tenth of it. */
const MEMORY_BYTES = 512 * 2 ** 20;
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 2000;

/** What a program needs to be found and to run. The rest of our environment, keys among it, is none of its business. */
const INHERITED_VARIABLES = ["PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SystemRoot", "TMPDIR", "LANG"];

/** What the system lacks where an attempt fails that may succeed a little later. */
const SHORTAGES: Readonly<Record<string, string>> = {
  EMFILE: "too many files are open",
  ENFILE: "too many files are open",
  EAGAIN: "too many processes run",
  ENOMEM: "memory is used up",
};

export class FfmpegError extends Error {
  constructor(
    /** TIMEOUT: it took more time than it was given. SYSTEM_BUSY: the system has no room for another process or file. */
    readonly code: "FFMPEG_MISSING" | "FFMPEG_FAILED" | "TIMEOUT" | "SYSTEM_BUSY",
    message: string,
    /** What it wrote on stderr. It may name files: not for clients. */
    readonly complaint = "",
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.name = "FfmpegError";
  }
}

export interface FfmpegOptions {
  stdin: "pipe" | "ignore";
  stdout: "pipe" | "ignore";
  /** The most that it may write to a file; 0: it writes none. */
  fileBytes: number;
  /** Real time, after which it is killed; absent: as long as it takes. */
  timeoutSeconds?: number;
  /** How long to wait for a system that has no room for another process. */
  patienceSeconds: number;
  /** Once it fires, the process is killed, or not started. */
  signal: AbortSignal | undefined;
}

export interface FfmpegRun {
  stdin: Writable;
  /** Ends where it breaks off too: `exited` tells why. */
  stdout: AsyncIterable<Buffer>;
  /** Resolves with success; rejects with FfmpegError. Settled once its pipes are closed. */
  exited: Promise<void>;
}

function environment(): NodeJS.ProcessEnv {
  return Object.fromEntries(INHERITED_VARIABLES.map((name) => [name, process.env[name]]));
}

/** The program that runs here, and what it is held to. */
export interface Ffmpeg {
  program: string;
  confinement: Confinement;
}

let ffmpeg: Promise<Ffmpeg> | undefined;

/**
 * The ffmpeg of the PATH, else that of the optional package. Found out once; a failure is not remembered.
 * @throws FfmpegError FFMPEG_MISSING where there is none that runs, or the error of a system without room
 */
export function findFfmpeg(): Promise<Ffmpeg> {
  ffmpeg ??= probe("ffmpeg")
    .catch((error: unknown) => {
      const program = packagedProgram();
      if (isShortage(error) || program === null) throw error;
      return probe(program);
    })
    .catch((error: unknown) => {
      ffmpeg = undefined;
      throw isShortage(error) ? error : missing(error);
    });
  return ffmpeg;
}

async function probe(program: string): Promise<Ffmpeg> {
  await provideStarter(environment());
  return { program, confinement: await Confinement.probe(program, ["-version"], environment()) };
}

function packagedProgram(): string | null {
  try {
    return (createRequire(import.meta.url)(STATIC_PACKAGE) as { path: string }).path;
  } catch {
    return null; // Not installed, or there is none for this platform: the caller says what to do.
  }
}

/**
 * Starts ffmpeg within its limits.
 * @throws FfmpegError where it cannot be started, or the signal's reason
 */
export function startFfmpeg(args: readonly string[], options: FfmpegOptions): Promise<FfmpegRun> {
  return withPatience(async () => {
    const found = await findFfmpeg();
    options.signal?.throwIfAborted();
    return launch(found, args, options);
  }, options);
}

/**
 * What `work` resolves with, tried again for `patienceSeconds` while the system has too few descriptors, processes or
 * memory for it.
 * @throws FfmpegError SYSTEM_BUSY, the signal's reason, or what else `work` throws
 */
export async function withPatience<T>(
  work: () => Promise<T>,
  { patienceSeconds, signal }: Pick<FfmpegOptions, "patienceSeconds" | "signal">,
): Promise<T> {
  const endMs = performance.now() + patienceSeconds * 1000;
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
    signal?.throwIfAborted();
    try {
      return await work();
    } catch (error) {
      if (!isShortage(error)) throw error;
      if (performance.now() + pauseMs > endMs) throw busy(error);
    }
    await sleep(pauseMs, undefined, { signal }).catch(() => {});
  }
}

async function launch(
  { program, confinement }: Ffmpeg,
  args: readonly string[],
  { stdin, stdout, fileBytes, timeoutSeconds, signal }: FfmpegOptions,
): Promise<FfmpegRun> {
  const timeout = timeoutSeconds === undefined ? undefined : AbortSignal.timeout(timeoutSeconds * 1000);
  const limits = { cpuSeconds: CPU_SECONDS, memoryBytes: MEMORY_BYTES, fileBytes };
  const [wrapper, rest] = confinement.command(
    [program, "-hide_banner", "-loglevel", "error", "-nostdin", ...args],
    limits,
  );
  const running = await startProgram({
    command: [wrapper, ...rest],
    env: environment(),
    stdin,
    stdout,
    signal: AbortSignal.any([signal, timeout].filter((one) => one !== undefined)),
  }).catch((error: unknown) => {
    signal?.throwIfAborted();
    throw timeout?.aborted ? outOfTime() : isShortage(error) ? error : missing(error);
  });
  const exited = successOf(running, timeout);
  // Whoever started it awaits this, though perhaps not before it happens.
  exited.catch(() => {});
  return { stdin: running.stdin, stdout: outputOf(running), exited };
}

async function* outputOf({ stdout }: Running): AsyncGenerator<Buffer> {
  try {
    yield* stdout;
  } catch {
    // Its end is rejected as well.
  }
}

async function successOf({ ended }: Running, timeout: AbortSignal | undefined): Promise<void> {
  const { code, signal, complaint } = await ended.catch(() => {
    // Whatever hung up killed it: the signal, or the end of the process that started it.
    throw timeout?.aborted ? outOfTime() : failure(null, "SIGKILL", "");
  });
  if (code !== 0) throw failure(code, signal, complaint.trim());
}

function failure(code: number | null, killedBy: NodeJS.Signals | null, complaint: string): FfmpegError {
  // What the shell answers for a program that is not there, or cannot be run.
  if (code === 127 || code === 126) return missing(new Error(complaint));
  const how = code === null ? `signal ${killedBy}` : `exit status ${code}`;
  return new FfmpegError("FFMPEG_FAILED", `ffmpeg failed (${how})`, complaint);
}

function outOfTime(): FfmpegError {
  return new FfmpegError("TIMEOUT", "ffmpeg took too long");
}

function missing(cause: unknown): FfmpegError {
  const message = `the ffmpeg program is not on the PATH, or does not run; install it, or "npm install ${STATIC_PACKAGE}"`;
  return new FfmpegError("FFMPEG_MISSING", message, "", { cause });
}

function busy(cause: unknown): FfmpegError {
  const { code } = cause as { code: string };
  const message = `the server is too busy to start ffmpeg, ${SHORTAGES[code]} (${code}); try again later, or raise the limits of its process`;
  return new FfmpegError("SYSTEM_BUSY", message, "", { cause });
}

function isShortage(error: unknown): boolean {
  const { code } = error as { code?: unknown };
  return typeof code === "string" && Object.hasOwn(SHORTAGES, code);
}
