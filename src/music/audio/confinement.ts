/** What a program that reads strangers' files may use, as far as this system's own programs can hold it to that. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";

const run = promisify(execFile);

export interface ProcessLimits {
  /** Processor time, all threads together. Beyond it the process is killed. */
  cpuSeconds: number;
  /** Memory of its own: heap and stacks, not the programs and libraries it maps. */
  memoryBytes: number;
  /** The size of any file it writes; pipes are none. */
  fileBytes: number;
}

/** `sh` holds the process to $1 to $3 and becomes the rest. What a system does not know is left out. */
const LIMITED = `{
  ulimit -c 0
  ulimit -t $1
  ulimit -d $2
  ulimit -f $3
} 2>/dev/null
shift 3
exec "$@"`;

interface Wrapper {
  /** What it is good for, as a log line says it. */
  effect: string;
  command: readonly string[];
}

/**
 * The first of each kind that works is used. What changes credentials comes before pdeathsig, which is lost with them.
 */
const WRAPPERS: readonly (readonly Wrapper[])[] = [
  [
    { effect: "no network", command: ["unshare", "--net"] },
    { effect: "no network", command: ["unshare", "--user", "--map-root-user", "--net"] },
  ],
  [
    {
      effect: "no new privileges, ended with the server",
      command: ["setpriv", "--no-new-privs", "--pdeathsig", "KILL"],
    },
  ],
];

const PROBE_LIMITS: ProcessLimits = { cpuSeconds: 10, memoryBytes: 2 ** 29, fileBytes: 0 };

export class Confinement {
  private constructor(private readonly wrappers: readonly Wrapper[]) {}

  /**
   * Finds out under which of the wrappers `program` runs here.
   * @param trial arguments that have it end at once, with success
   * @param env all of its environment
   * @throws where it does not run without any of them either
   */
  static async probe(
    program: string,
    trial: readonly string[],
    env: NodeJS.ProcessEnv,
  ): Promise<Confinement> {
    const start = (wrappers: readonly Wrapper[]) =>
      run(...new Confinement(wrappers).command([program, ...trial], PROBE_LIMITS), { timeout: 10_000, env });
    await start([]);
    const working: Wrapper[] = [];
    for (const alternatives of WRAPPERS) {
      for (const wrapper of alternatives) {
        if (await succeeds(start([...working, wrapper]))) {
          working.push(wrapper);
          break;
        }
      }
    }
    return new Confinement(working);
  }

  /** For the log. */
  get description(): string {
    if (process.platform === "win32") return "no limits";
    return ["limits of CPU time, memory and files", ...this.wrappers.map(({ effect }) => effect)].join(", ");
  }

  /** The program and the arguments that run `command` within the limits. */
  command(command: readonly string[], limits: ProcessLimits): [program: string, args: string[]] {
    if (process.platform === "win32") return [command[0] as string, command.slice(1)];
    const { cpuSeconds, memoryBytes, fileBytes } = limits;
    const numbers = [cpuSeconds, Math.floor(memoryBytes / 1024), Math.ceil(fileBytes / 512)];
    const wrappers = this.wrappers.flatMap((wrapper) => wrapper.command);
    return ["/bin/sh", ["-c", LIMITED, "sh", ...numbers.map(String), ...wrappers, ...command]];
  }
}

/** Whether the process ended with success; throws where it could not even be started. */
async function succeeds(run: Promise<unknown>): Promise<boolean> {
  try {
    await run;
    return true;
  } catch (error) {
    if (typeof (error as { code?: unknown }).code === "string") throw error;
    return false;
  }
}
