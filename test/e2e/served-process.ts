/** `carillon serve` as a process of its own, to be stopped and killed. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { Client } from "../music/live-server.js";

const cli = fileURLToPath(new URL("../../src/cli.ts", import.meta.url));

export interface ProcessLimits {
  /** No file grows beyond this, as on a disk that is full. */
  maxFileKiB?: number;
}

/** Runs the command line from its source. */
export function spawnCli(
  args: readonly string[],
  settings: Record<string, string> = {},
  { maxFileKiB }: ProcessLimits = {},
): ChildProcess {
  const env = { ...process.env, SVC_DEVICE: "cpu", CITY_BRIDGE_PORT: "0", ...settings };
  const command = [process.execPath, "--import", "tsx", cli, ...args];
  // A write beyond the limit then fails instead of ending the process.
  const limited = ["bash", "-c", `trap "" XFSZ; ulimit -f ${maxFileKiB}; exec "$@"`, "bash", ...command];
  const [program, ...rest] = maxFileKiB === undefined ? command : limited;
  return spawn(program as string, rest, { env, stdio: ["ignore", "pipe", "pipe"] });
}

export class ServedProcess {
  private constructor(
    private readonly child: ChildProcess,
    readonly client: Client,
  ) {}

  /** Resolves once it serves. */
  static async start(
    directory: string,
    settings: Record<string, string> = {},
    limits: ProcessLimits = {},
  ): Promise<ServedProcess> {
    const directories = { SVC_TMPDIR: directory, CITY_SAVES_DIR: join(directory, "saves") };
    const child = spawnCli(["serve", "--port", "0"], { ...directories, ...settings }, limits);
    after(() => child.kill("SIGKILL"));
    let complaint = "";
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      complaint += text;
    });
    for await (const line of createInterface({ input: child.stdout as NodeJS.ReadableStream })) {
      const url = /^music on (http:\S+)$/.exec(line)?.[1];
      if (url !== undefined) return new ServedProcess(child, new Client(url));
    }
    throw new Error(`the server ended before it served:\n${complaint}`);
  }

  /** Sends the signal; resolves with the exit code, or null where the signal ended it. */
  async end(signal: NodeJS.Signals): Promise<number | null> {
    const ended = once(this.child, "exit");
    this.child.kill(signal);
    const [code] = (await ended) as [number | null];
    return code;
  }
}
