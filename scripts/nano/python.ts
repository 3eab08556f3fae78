/** Runs this room's Python programs, each kind in a virtual environment of its own, made when it is first needed. */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { provideLibtorch } from "../setup/libtorch.mjs";
import { cacheRoot } from "../setup/run.mjs";

const environments = {
  /** Several processes work at once, each on small arrays. */
  eval: () => ({ OMP_NUM_THREADS: "1" }),
  /**
   * torch is the engine's own. Memory of one step serves the next: given back to the system in between, it would be
   * cleared page by page again, which takes as long as the step.
   */
  training: () => ({
    PYTHONPATH: dirname(provideLibtorch().directory),
    PYTHONWARNINGS: "ignore:Failed to initialize NumPy",
    MALLOC_MMAP_MAX_: "0",
    MALLOC_TRIM_THRESHOLD_: String(2 ** 31 - 1),
    MALLOC_TOP_PAD_: String(2 ** 28),
  }),
};
type PythonRoom = keyof typeof environments;

/** The interpreter of a room, what its programs need in their environment, and where they lie. */
export function pythonOf(room: PythonRoom): { python: string; env: NodeJS.ProcessEnv; directory: string } {
  const env = { ...process.env, ...environments[room](), PYTHONDONTWRITEBYTECODE: "1" };
  return { python: interpreter(room), env, directory: fileURLToPath(new URL(room, import.meta.url)) };
}

/** Runs `program` of `room`; its output goes to the terminal. */
export function runPython(room: PythonRoom, program: string, programArguments: string[]): void {
  const { python, env, directory } = pythonOf(room);
  const words = [join(directory, program), ...programArguments];
  const { status, error } = spawnSync(python, words, { stdio: "inherit", env });
  if (error !== undefined) throw error;
  if (status !== 0) throw new Error(`${program} ended with exit code ${status}`);
}

function interpreter(room: PythonRoom): string {
  const directory = join(cacheRoot, "nano", room === "eval" ? "python" : `python-${room}`);
  const python = join(directory, "bin", "python");
  const mark = join(directory, "installed.txt");
  const requirements = fileURLToPath(new URL(`${room}/requirements.txt`, import.meta.url));
  const wanted = readFileSync(requirements, "utf8");
  if (existsSync(mark) && readFileSync(mark, "utf8") === wanted) return python;
  mkdirSync(directory, { recursive: true });
  for (const [command, ...words] of [
    ["python3", "-m", "venv", directory],
    [python, "-m", "pip", "install", "--quiet", "--requirement", requirements],
  ] as [string, ...string[]][]) {
    const { status } = spawnSync(command, words, { stdio: "inherit" });
    if (status !== 0) throw new Error(`${command} ${words.join(" ")} ended with exit code ${status}`);
  }
  writeFileSync(mark, wanted);
  return python;
}
