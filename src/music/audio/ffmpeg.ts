/**
 * Runs `ffmpeg`, from the system or an optional package. Any version works. It runs in its own process, so a bad file
 * cannot crash the server.
 */

import type { FileHandle } from "node:fs/promises";
import { createRequire } from "node:module";
import type { Writable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { withTimeLimit } from "../../system/time-limit.js";
import { ProcessSandbox } from "./process-sandbox.js";
import {
  ensureProcessStarter,
  INPUT_DESCRIPTOR,
  type ProgramInput,
  type RunningProgram,
  startProgram,
} from "./starter.js";

/** npm package with static builds of ffmpeg. Installing it downloads and runs nothing else. */
export const STATIC_PACKAGE = "@ffmpeg-installer/ffmpeg";
/** Limit of CPU time, far above the time for any valid recording. */
const CPU_SECONDS = 120;
/** Memory limit of ffmpeg: ten times the need of real recordings. */
const MEMORY_BYTES = 512 * 2 ** 20;
/** Path that ffmpeg arguments use for the open file `FfmpegOptions.input`. */
export const INPUT_PATH = `/dev/fd/${INPUT_DESCRIPTOR}`;
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 2000;

/** Variables that ffmpeg needs. The rest of the environment contains keys and is not passed on. */
const INHERITED_VARIABLES = ["PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SystemRoot", "TMPDIR", "LANG"];

/** Temporary resource shortages, by error code. */
const SHORTAGES: Readonly<Record<string, string>> = {
  EMFILE: "too many files are open",
  ENFILE: "too many files are open",
  EAGAIN: "too many processes run",
  ENOMEM: "memory is used up",
};

export class FfmpegError extends Error {
  constructor(
    /** SYSTEM_BUSY: the system lacks resources for another process or file. */
    readonly code: "FFMPEG_MISSING" | "FFMPEG_FAILED" | "TIMEOUT" | "SYSTEM_BUSY",
    message: string,
    /** stderr of ffmpeg. Not for clients, because it may contain paths. */
    readonly stderr = "",
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.name = "FfmpegError";
  }

  /** Whether ffmpeg could not be started, whatever its input. */
  get isServerFault(): boolean {
    return this.code === "FFMPEG_MISSING" || this.code === "SYSTEM_BUSY";
  }
}

export interface FfmpegOptions {
  stdin: "pipe" | "ignore";
  stdout: "pipe" | "ignore";
  /** Open input file, named INPUT_PATH in the arguments. Replacing the file at its path has no effect. */
  input?: { path: string; file: FileHandle };
  /** Maximum size of the output file; 0 if ffmpeg must not write files. */
  fileBytes: number;
  /** ffmpeg is killed after this time. */
  timeoutSeconds: number;
  /** Maximum time to wait for the resources of a new process. */
  maxWaitSeconds: number;
  /** Kills the process, or prevents its start. */
  signal: AbortSignal | undefined;
}

export interface FfmpegRun {
  stdin: Writable;
  /** Output of ffmpeg. The output also ends if ffmpeg fails, and then `exited` rejects. */
  stdout: AsyncIterable<Buffer>;
  /**
   * Resolves on success, after the pipes of the process are closed. Rejects with FfmpegError, or the signal's reason.
   */
  exited: Promise<void>;
}

function environment(): NodeJS.ProcessEnv {
  return Object.fromEntries(INHERITED_VARIABLES.map((name) => [name, process.env[name]]));
}

export interface Ffmpeg {
  program: string;
  sandbox: ProcessSandbox;
}

let ffmpeg: Promise<Ffmpeg> | undefined;

/**
 * Finds ffmpeg on the PATH or in the optional package.
 * @throws FfmpegError FFMPEG_MISSING; the error of the system if resources are short
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
  await ensureProcessStarter(environment());
  return { program, sandbox: await ProcessSandbox.probe(program, ["-version"], environment()) };
}

function packagedProgram(): string | null {
  try {
    return (createRequire(import.meta.url)(STATIC_PACKAGE) as { path: string }).path;
  } catch {
    return null; // The package is not installed or has no program for this platform. The caller's error says what to do.
  }
}

/** @throws FfmpegError if ffmpeg cannot be started; the reason of the signal if it aborts */
export function startFfmpeg(args: readonly string[], options: FfmpegOptions): Promise<FfmpegRun> {
  return retryWhileBusy(async () => {
    const found = await findFfmpeg();
    options.signal?.throwIfAborted();
    return launch(found, args, options);
  }, options);
}

/** Retries `work` while the system lacks descriptors, processes or memory. @throws FfmpegError SYSTEM_BUSY */
export async function retryWhileBusy<T>(
  work: () => Promise<T>,
  { maxWaitSeconds, signal }: Pick<FfmpegOptions, "maxWaitSeconds" | "signal">,
): Promise<T> {
  const endMs = performance.now() + maxWaitSeconds * 1000;
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
  { program, sandbox }: Ffmpeg,
  args: readonly string[],
  { stdin, stdout, input, fileBytes, timeoutSeconds, signal }: FfmpegOptions,
): Promise<FfmpegRun> {
  const limits = { cpuSeconds: CPU_SECONDS, memoryBytes: MEMORY_BYTES, fileBytes };
  const [wrapper, rest] = sandbox.command(
    [program, "-hide_banner", "-loglevel", "error", "-nostdin", ...args],
    limits,
  );
  const identity = input && { input: await identityOf(input) };
  return new Promise((resolve, reject) => {
    const error = () => new FfmpegError("TIMEOUT", "ffmpeg took too long");
    const limit = { ms: timeoutSeconds * 1000, signal, error };
    const exited = withTimeLimit(limit, async (signal) => {
      const command = [wrapper, ...rest];
      const start = { command, env: environment(), stdin, stdout, ...identity, signal };
      const running = await startProgram(start).catch((error: unknown) => {
        throw startFailure(error);
      });
      resolve({ stdin: running.stdin, stdout: outputOf(running), exited });
      await successOf(running);
    });
    // After the start, only `exited` reports a failure.
    exited.catch(reject);
  });
}

function startFailure(error: unknown): unknown {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === "INPUT") return new FfmpegError("FFMPEG_FAILED", message);
  return isShortage(error) ? error : missing(error);
}

async function identityOf({ path, file }: NonNullable<FfmpegOptions["input"]>): Promise<ProgramInput> {
  const { dev, ino } = await file.stat({ bigint: true });
  return { path, device: String(dev), inode: String(ino) };
}

async function* outputOf({ stdout }: RunningProgram): AsyncGenerator<Buffer> {
  try {
    yield* stdout;
  } catch {
    // Ignored here: the same error rejects `ended`, where it is handled.
  }
}

async function successOf({ ended }: RunningProgram): Promise<void> {
  const { code, signal, stderr } = await ended.catch(() => {
    // The abort signal killed ffmpeg, or the starter process ended.
    throw failure(null, "SIGKILL", "");
  });
  if (code !== 0) throw failure(code, signal, stderr.trim());
}

function failure(code: number | null, killedBy: NodeJS.Signals | null, stderr: string): FfmpegError {
  // Exit codes of the shell for a program that is missing or not executable.
  if (code === 127 || code === 126) return missing(new Error(stderr));
  const how = code === null ? `signal ${killedBy}` : `exit status ${code}`;
  return new FfmpegError("FFMPEG_FAILED", `ffmpeg failed (${how})`, stderr);
}

function missing(cause: unknown): FfmpegError {
  const message = `the ffmpeg program is not on the PATH or does not run; install it or run "npm install ${STATIC_PACKAGE}"; without it no recording can be read, and songs can only be wav or wav32 at 48 kHz`;
  return new FfmpegError("FFMPEG_MISSING", message, "", { cause });
}

function busy(cause: unknown): FfmpegError {
  const { code } = cause as { code: string };
  const message = `the server is too busy to start ffmpeg, ${SHORTAGES[code]} (${code}); try again later or raise the limits of the server process`;
  return new FfmpegError("SYSTEM_BUSY", message, "", { cause });
}

function isShortage(error: unknown): boolean {
  const { code } = error as { code?: unknown };
  return typeof code === "string" && Object.hasOwn(SHORTAGES, code);
}
