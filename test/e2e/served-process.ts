/** Runs `carillon serve` as a separate process that tests can stop and kill. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { freePort } from "../local-server.js";
import { Client } from "../music/live-server.js";

export const cli = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));
/** Compiled stub-server.ts. */
export const stub = await compileStub();

/**
 * Compiles the stub server against `dist`. With tsx, each start would take two more seconds of processor
 * time.
 */
async function compileStub(): Promise<string> {
  const outfile = fileURLToPath(new URL(`../../build/test/stub-server-${process.pid}.mjs`, import.meta.url));
  const dist = fileURLToPath(new URL("../../dist/", import.meta.url));
  await build({
    entryPoints: [fileURLToPath(new URL("./stub-server.ts", import.meta.url))],
    outfile,
    bundle: true,
    platform: "node",
    format: "esm",
    plugins: [
      {
        name: "dist",
        setup: ({ onResolve }) =>
          onResolve({ filter: /\/src\// }, ({ path }) => ({
            path: join(dist, path.split("/src/")[1] as string),
            external: true,
          })),
      },
    ],
  });
  process.once("exit", () => rmSync(outfile, { force: true }));
  return outfile;
}

export interface ProcessLimits {
  /** Maximum file size, to simulate a full disk. */
  maxFileKiB?: number;
  /** Mounts a private disk of this size at an existing directory. */
  disk?: Disk;
  /** Maximum size of the JavaScript heap. */
  maxHeapMiB?: number;
}

interface Disk {
  directory: string;
  sizeKiB: number;
}

/** Whether tests may mount a private disk for a process. */
export function canMountDisks(): boolean {
  return spawnSync(...onPrivateDisk({ directory: tmpdir(), sizeKiB: 4 }, ["true"])).status === 0;
}

/** Program and arguments that run a command with a private disk mounted at a directory. */
export function onPrivateDisk({ directory, sizeKiB }: Disk, command: readonly string[]): [string, string[]] {
  const script = `mount -t tmpfs -o size=${sizeKiB}k tmpfs "$0" && exec "$@"`;
  return ["unshare", ["--user", "--map-root-user", "--mount", "bash", "-c", script, directory, ...command]];
}

/** Runs the command line from `dist`. */
export function spawnCli(
  args: readonly string[],
  settings: Record<string, string> = {},
  limits: ProcessLimits = {},
): ChildProcess {
  return spawnScript([cli, ...args], settings, limits);
}

function spawnScript(
  args: readonly string[],
  settings: Record<string, string>,
  { maxFileKiB, disk, maxHeapMiB }: ProcessLimits,
): ChildProcess {
  const env = { ...process.env, SVC_DEVICE: "cpu", CITY_BRIDGE_PORT: "0", ...settings };
  const heap = maxHeapMiB === undefined ? [] : [`--max-old-space-size=${maxHeapMiB}`];
  let command = [process.execPath, ...heap, ...args];
  if (maxFileKiB !== undefined) {
    // With SIGXFSZ ignored, a write beyond the limit fails instead of ending the process.
    command = ["bash", "-c", `trap "" XFSZ; ulimit -f ${maxFileKiB}; exec "$@"`, "bash", ...command];
  }
  if (disk !== undefined) command = onPrivateDisk(disk, command).flat();
  const [program, ...rest] = command;
  return spawn(program as string, rest, { env, stdio: ["ignore", "pipe", "pipe"] });
}

const served = new Set<ChildProcess>();

/**
 * Kills all running servers. Every suite that starts servers calls this function in its `after` hook. A hook
 * that is registered during a test would belong to the root suite and run too late.
 */
export async function endServed(): Promise<void> {
  await Promise.all(
    [...served].map(async (child) => {
      const ended = once(child, "exit");
      child.kill("SIGKILL");
      await ended;
    }),
  );
}

export class ServedProcess {
  private constructor(
    private readonly child: ChildProcess,
    readonly client: Client,
    private readonly lines: readonly string[],
    readonly cityUrl: string,
  ) {}

  /** Starts only the music service. Resolves when it is serving. */
  static start(
    directory: string,
    settings: Record<string, string> = {},
    limits: ProcessLimits = {},
    command: readonly string[] = ["serve", "--music"],
  ): Promise<ServedProcess> {
    const directories = { SVC_TMPDIR: directory, CITY_SAVES_DIR: join(directory, "saves") };
    return ServedProcess.#untilServed(
      spawnCli([...command, "--port", "0"], { ...directories, ...settings }, limits),
    );
  }

  /** Starts the music service, and the city in its own process. */
  static startWithCity(directory: string, settings: Record<string, string> = {}): Promise<ServedProcess> {
    return ServedProcess.start(directory, settings, {}, ["serve"]);
  }

  /**
   * Starts a server with a stub engine, which starts faster than a real one. The stub engine needs `renderMs`
   * milliseconds for a song, which is silent.
   */
  static async startStub(
    directory: string,
    renderMs: number,
    settings: Record<string, string> = {},
    limits: ProcessLimits = {},
    model = "stub",
  ): Promise<ServedProcess> {
    const own = { SVC_TMPDIR: directory, SVC_API_PORT: String(await freePort()), ...settings };
    return ServedProcess.#untilServed(spawnScript([stub, String(renderMs), model], own, limits));
  }

  static async #untilServed(child: ChildProcess): Promise<ServedProcess> {
    served.add(child);
    child.once("exit", () => served.delete(child));
    const log: string[] = [];
    child.stderr?.setEncoding("utf8").on("data", (text: string) => log.push(text));
    let cityUrl = "";
    for await (const line of createInterface({ input: child.stdout as NodeJS.ReadableStream })) {
      const [, service, url] = /^(city|music|gateway|worker) on (http:\S+)$/.exec(line) ?? [];
      if (service === "city") cityUrl = url as string;
      else if (service !== undefined)
        return new ServedProcess(child, new Client(url as string), log, cityUrl);
    }
    throw new Error(`the server exited before it was serving:\n${log.join("")}`);
  }

  get pid(): number | undefined {
    return this.child.pid;
  }

  /** The process's standard error output so far. */
  get log(): string {
    return this.lines.join("");
  }

  /**
   * Path at which tests can open a file of the process, even if the file is on the process's private disk.
   */
  hostPath(path: string): string {
    return `/proc/${this.child.pid}/root${path}`;
  }

  /** Process id of the city, which is a child process of the server. */
  cityProcessId(): number {
    const { pid } = this.child;
    const ids = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ");
    return Number(ids.find((id) => readFileSync(`/proc/${id}/cmdline`, "utf8").includes("--for-parent")));
  }

  signal(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }

  /** Sends the signal. Resolves with the exit code, or null if the signal killed the process. */
  async end(signal: NodeJS.Signals): Promise<number | null> {
    const ended = this.ended();
    this.child.kill(signal);
    return ended;
  }

  /** Resolves with the exit code when the process exits. */
  async ended(): Promise<number | null> {
    const { exitCode } = this.child;
    if (exitCode !== null) return exitCode;
    const [code] = (await once(this.child, "exit")) as [number | null];
    return code;
  }
}
