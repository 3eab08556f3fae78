/**
 * Confines a program that reads untrusted files, as far as this system supports it. `sh` limits CPU time,
 * memory and file size; `unshare` removes the network; `setpriv` prevents new privileges and ends the program
 * with the server.
 */
import { execFile } from "node:child_process";
import { promisify } from "node:util";

const run = promisify(execFile);

export interface ProcessLimits {
  /** CPU time of all threads after which the process is killed. */
  cpuSeconds: number;
  /** Limit of heap and stack memory, without mapped programs and libraries. */
  memoryBytes: number;
  /** Maximum size of an output file; pipes do not count. */
  fileBytes: number;
}

/** `sh` sets the limits $1 to $3 and then runs the command. Unsupported limits are skipped. */
const LIMITED = `{
  ulimit -c 0
  ulimit -t $1
  ulimit -d $2
  ulimit -f $3
} 2>/dev/null
shift 3
exec "$@"`;

interface Wrapper {
  /** What the wrapper does, for log lines. */
  effect: string;
  command: readonly string[];
}

/**
 * Wrappers by kind; the first working one of each kind is used. `unshare` must run before `setpriv`:
 * `unshare` changes credentials, and a change of credentials resets the `--pdeathsig` that `setpriv` sets.
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

export class ProcessSandbox {
  private constructor(private readonly wrappers: readonly Wrapper[]) {}

  /**
   * Makes a sandbox of the wrappers that work with `program` on this system.
   * @param trial arguments for a test run, with which `program` exits successfully at once
   * @param env whole environment of the program
   * @throws Error if the program does not run even without wrappers
   */
  static async probe(
    program: string,
    trial: readonly string[],
    env: NodeJS.ProcessEnv,
  ): Promise<ProcessSandbox> {
    const start = (wrappers: readonly Wrapper[]) =>
      run(...new ProcessSandbox(wrappers).command([program, ...trial], PROBE_LIMITS), {
        timeout: 10_000,
        env,
      });
    // Tries all preferred wrappers at once, because starting a program that loads a hundred libraries is slow.
    const preferred = WRAPPERS.flatMap(([first]) => first ?? []);
    if (await succeeds(start(preferred)).catch(() => false)) return new ProcessSandbox(preferred);
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
    return new ProcessSandbox(working);
  }

  get description(): string {
    return ["limits of CPU time, memory and files", ...this.wrappers.map(({ effect }) => effect)].join(", ");
  }

  /** Program and arguments that run `command` within the limits. */
  command(command: readonly string[], limits: ProcessLimits): [program: string, args: string[]] {
    const { cpuSeconds, memoryBytes, fileBytes } = limits;
    const numbers = [cpuSeconds, Math.floor(memoryBytes / 1024), Math.ceil(fileBytes / 512)];
    const wrappers = this.wrappers.flatMap((wrapper) => wrapper.command);
    return ["/bin/sh", ["-c", LIMITED, "sh", ...numbers.map(String), ...wrappers, ...command]];
  }
}

/** Whether the process exited successfully. @throws Error if it could not be started */
async function succeeds(run: Promise<unknown>): Promise<boolean> {
  try {
    await run;
    return true;
  } catch (error) {
    if (typeof (error as { code?: unknown }).code === "string") throw error;
    return false;
  }
}
