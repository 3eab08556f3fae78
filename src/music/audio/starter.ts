/**
 * Starts programs from a small helper process. A fork of the server itself would block the event loop for hundreds
 * of milliseconds, because a fork copies the page tables of all loaded models.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { rm } from "node:fs/promises";
import { type IncomingMessage, request } from "node:http";
import type { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import { responseTo } from "../../http/response-to.js";
import { forwardStderr } from "../../system/log.js";
import { withTimeLimit } from "../../system/time-limit.js";

export interface Program {
  command: readonly string[];
  /** Whole environment of the program. */
  env: NodeJS.ProcessEnv;
  stdin: "pipe" | "ignore";
  stdout: "pipe" | "ignore";
  input?: ProgramInput;
  signal: AbortSignal;
}

export interface ProgramInput {
  path: string;
  /** Device and inode of the file when it was checked. The program does not start if they have changed. */
  device: string;
  inode: string;
}

/** File descriptor at which the program gets the file of `ProgramInput`. */
export const INPUT_DESCRIPTOR = 3;

interface End {
  code: number | null;
  signal: NodeJS.Signals | null;
  stderr: string;
}

export interface RunningProgram {
  stdin: Writable;
  stdout: Readable;
  /** Resolves when the program has ended and its pipes are closed; rejects if the signal killed it. */
  ended: Promise<End>;
}

const MAX_HEADER_BYTES = 2 ** 20;
/** Time limit of the starter process's start, which takes a fraction of a second on an idle machine. */
const START_SECONDS = 30;

let starter: Promise<string> | undefined;

/** Launches the starter process unless it already runs. @returns the path of its socket */
export function ensureProcessStarter(env: NodeJS.ProcessEnv): Promise<string> {
  starter ??= launch(env).catch((error: unknown) => {
    starter = undefined;
    throw error;
  });
  return starter;
}

async function launch(env: NodeJS.ProcessEnv): Promise<string> {
  const child = fork(fileURLToPath(new URL("./starter-process.js", import.meta.url)), {
    execArgv: [],
    env,
    stdio: ["ignore", "ignore", "pipe", "ipc"],
  });
  forwardStderr(child);
  const ended = once(child, "exit").then(([code, signal]) => {
    throw new Error(`the starter process ended with ${code ?? signal}`);
  });
  ended.catch(() => {});
  const limit = { ms: START_SECONDS * 1000, error: () => new Error("the starter process does not start") };
  const [{ folder, socketPath }] = await withTimeLimit(limit, () =>
    Promise.race([once(child, "message"), ended]),
  ).catch((error: unknown) => {
    child.kill("SIGKILL");
    throw error;
  });
  child.once("exit", () => {
    starter = undefined;
    void rm(folder, { recursive: true, force: true }).catch(() => {});
  });
  child.unref();
  child.channel?.unref();
  return socketPath;
}

/** @throws Error with the system's error code if the program cannot be started */
export async function startProgram(program: Program): Promise<RunningProgram> {
  try {
    return await ask(await ensureProcessStarter(program.env), program);
  } catch (error) {
    const { syscall, code } = error as NodeJS.ErrnoException;
    if (syscall !== "connect" || (code !== "ENOENT" && code !== "ECONNREFUSED")) throw error;
    starter = undefined; // The starter process has just exited, or its socket in the temporary folder was deleted.
    return ask(await ensureProcessStarter(program.env), program);
  }
}

async function ask(socketPath: string, { signal, ...program }: Program): Promise<RunningProgram> {
  const programRequest = request({
    socketPath,
    method: "POST",
    agent: false,
    maxHeaderSize: MAX_HEADER_BYTES,
    headers: { start: encodeURIComponent(JSON.stringify(program)) },
    signal,
  });
  if (program.stdin === "ignore") programRequest.end();
  else programRequest.flushHeaders();
  // `responseTo` reports errors until the response arrives, and the response stream reports later ones.
  programRequest.on("error", () => {});
  const response = await responseTo(programRequest);
  const { failure } = response.headers;
  if (failure !== undefined) {
    const { code, message } = JSON.parse(decodeURIComponent(String(failure)));
    throw Object.assign(new Error(message), { code });
  }
  if (program.stdout === "ignore") response.resume();
  return { stdin: programRequest, stdout: response, ended: endOf(response) };
}

/** Reads the end of the program after its output. @throws Error if the connection ends without it */
export async function endOf(response: IncomingMessage): Promise<End> {
  await new Promise<void>((resolve, reject) => {
    response.on("error", reject);
    response.on("end", resolve);
    response.on("close", () => reject(new Error("the output of the program was closed")));
  });
  const { end } = response.trailers;
  if (end === undefined) throw new Error("the starter process did not say how the program ended");
  return JSON.parse(decodeURIComponent(end));
}
