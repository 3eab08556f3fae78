/** Runs the `ffmpeg` program: any version works, and whatever it is given, it cannot crash us. */
import { type ChildProcessByStdio, type SpawnOptions, spawn } from "node:child_process";
import type { Readable, Writable } from "node:stream";

const COMPLAINT_LIMIT = 4096;

export class FfmpegError extends Error {
  constructor(
    readonly code: "FFMPEG_MISSING" | "FFMPEG_FAILED",
    message: string,
    /** What it wrote on stderr. It may name files: not for clients. */
    readonly complaint = "",
  ) {
    super(message);
    this.name = "FfmpegError";
  }
}

export interface FfmpegRun<Input extends Writable | null, Output extends Readable | null> {
  child: ChildProcessByStdio<Input, Output, Readable>;
  /** Resolves with success; rejects with FfmpegError. Settled once its pipes are closed. */
  exited: Promise<void>;
}

/** Starts ffmpeg; once the signal fires it is killed. */
export function startFfmpeg<Input extends Writable | null, Output extends Readable | null>(
  args: readonly string[],
  pipes: { stdin: "pipe" | "ignore"; stdout: "pipe" | "ignore" },
  signal: AbortSignal | undefined,
): FfmpegRun<Input, Output> {
  const options: SpawnOptions = {
    stdio: [pipes.stdin, pipes.stdout, "pipe"],
    killSignal: "SIGKILL",
    signal,
  };
  const quiet = ["-hide_banner", "-loglevel", "error", "-nostdin"];
  const child = spawn("ffmpeg", [...quiet, ...args], options) as ChildProcessByStdio<Input, Output, Readable>;
  let complaint = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    if (complaint.length < COMPLAINT_LIMIT) complaint += text;
  });
  const exited = new Promise<void>((resolve, reject) => {
    child.on("error", (error: NodeJS.ErrnoException) => reject(startFailure(error)));
    child.on("close", (code, killedBy) => {
      const how = code === null ? `signal ${killedBy}` : `exit status ${code}`;
      if (code === 0) resolve();
      else reject(new FfmpegError("FFMPEG_FAILED", `ffmpeg failed (${how})`, complaint.trim()));
    });
  });
  return { child, exited };
}

function startFailure(error: NodeJS.ErrnoException): Error {
  if (error.code !== "ENOENT") return error;
  return new FfmpegError("FFMPEG_MISSING", "the ffmpeg program is not on the PATH; install it");
}
