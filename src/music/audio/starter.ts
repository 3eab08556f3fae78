/**
 * Starts programs without holding up the event loop. A process that starts another copies the tables of its memory first:
 * with models in it that takes hundreds of milliseconds. So a small process is started early, and starts all others.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { rm } from "node:fs/promises";
import { type ClientRequest, type IncomingMessage, request } from "node:http";
import type { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";

export interface Program {
  command: readonly string[];
  /** All of its environment. */
  env: NodeJS.ProcessEnv;
  stdin: "pipe" | "ignore";
  stdout: "pipe" | "ignore";
  /** Once it fires, the program is killed. */
  signal: AbortSignal;
}

export interface End {
  code: number | null;
  signal: NodeJS.Signals | null;
  /** The beginning of what it wrote on stderr. */
  complaint: string;
}

export interface Running {
  stdin: Writable;
  stdout: Readable;
  /** Resolves once it has ended and its pipes are closed; rejects where it was killed by the signal. */
  ended: Promise<End>;
}

const MAX_HEADER_BYTES = 2 ** 20;

let starter: Promise<string> | undefined;

/** Starts the small process, if it does not run. @returns its socket's path */
export function provideStarter(env: NodeJS.ProcessEnv): Promise<string> {
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
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
  const ended = once(child, "exit").then(([code, signal]) => {
    throw new Error(`the process that starts programs ended with ${code ?? signal}`);
  });
  ended.catch(() => {});
  const [{ folder, socketPath }] = await Promise.race([once(child, "message"), ended]);
  child.once("exit", () => {
    starter = undefined;
    void rm(folder, { recursive: true, force: true }).catch(() => {});
  });
  child.unref();
  child.channel?.unref();
  return socketPath;
}

/** @throws the error of a program that cannot be started, with the system's code */
export async function startProgram(program: Program): Promise<Running> {
  try {
    return await ask(await provideStarter(program.env), program);
  } catch (error) {
    const { syscall, code } = error as NodeJS.ErrnoException;
    if (syscall !== "connect" || (code !== "ENOENT" && code !== "ECONNREFUSED")) throw error;
    starter = undefined; // It has just ended, or something that clears the folder of temporary files took its socket.
    return ask(await provideStarter(program.env), program);
  }
}

async function ask(socketPath: string, { signal, ...program }: Program): Promise<Running> {
  const asked = request({
    socketPath,
    method: "POST",
    agent: false,
    maxHeaderSize: MAX_HEADER_BYTES,
    headers: { start: encodeURIComponent(JSON.stringify(program)) },
    signal,
  });
  if (program.stdin === "ignore") asked.end();
  else asked.flushHeaders();
  const response = await answered(asked);
  const { failure } = response.headers;
  if (failure !== undefined) {
    const { code, message } = JSON.parse(decodeURIComponent(String(failure)));
    throw Object.assign(new Error(message), { code });
  }
  if (program.stdout === "ignore") response.resume();
  return { stdin: asked, stdout: response, ended: endOf(response) };
}

async function answered(asked: ClientRequest): Promise<IncomingMessage> {
  const [response] = (await once(asked, "response")) as [IncomingMessage];
  // What comes later is told by the response.
  asked.on("error", () => {});
  return response;
}

function endOf(response: IncomingMessage): Promise<End> {
  return new Promise((resolve, reject) => {
    response.on("error", reject);
    response.on("end", () => resolve(JSON.parse(decodeURIComponent(String(response.trailers.end)))));
  });
}
