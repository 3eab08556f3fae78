/** Runs Python programs. Each folder has its own packages, installed on first use. */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { provideLibtorch } from "../setup/libtorch.mjs";
import { cacheRoot } from "../setup/run.mjs";

const environments = {
  /** One thread per process: several processes run at once, and their arrays are small. */
  eval: () => ({ PYTHONPATH: packagesOf("eval"), OMP_NUM_THREADS: "1" }),
  /**
   * Uses the engine's torch. With the MALLOC variables, the process keeps freed memory for the next training step.
   * The kernel would need as long to clear new memory as the step itself takes.
   */
  training: () => ({
    PYTHONPATH: [packagesOf("training"), dirname(provideLibtorch().directory)].join(delimiter),
    PYTHONWARNINGS: "ignore:Failed to initialize NumPy",
    MALLOC_MMAP_MAX_: "0",
    MALLOC_TRIM_THRESHOLD_: String(2 ** 31 - 1),
    MALLOC_TOP_PAD_: String(2 ** 28),
  }),
};
type PythonFolder = keyof typeof environments;

/** Returns the path of a folder and the environment variables that its programs need. */
export function pythonEnvironment(folder: PythonFolder): { env: NodeJS.ProcessEnv; directory: string } {
  const env = { ...process.env, ...environments[folder](), PYTHONDONTWRITEBYTECODE: "1" };
  return { env, directory: directoryOf(folder) };
}

/** Runs a program in `folder` and shows its output in the terminal. */
export function runPython(folder: PythonFolder, program: string, parameters: string[]): void {
  const { env, directory } = pythonEnvironment(folder);
  execFileSync("python3", [join(directory, program), ...parameters], { stdio: "inherit", env });
}

/** Runs the tests of a folder. @throws Error if one fails */
export function testPython(folder: PythonFolder): void {
  const { env, directory } = pythonEnvironment(folder);
  const discover = ["-W", "ignore", "-m", "unittest", "discover", "--start-directory", "test"];
  execFileSync("python3", discover, { cwd: directory, env, stdio: "inherit" });
}

function directoryOf(folder: string): string {
  return fileURLToPath(new URL(folder, import.meta.url));
}

/** Returns the cache folder with the packages of requirements.txt. Installs them if they are missing. */
function packagesOf(folder: string): string {
  const requirements = join(directoryOf(folder), "requirements.txt");
  const wanted = readFileSync(requirements, "utf8");
  const packages = join(cacheRoot, "nano", `packages-${folder}`);
  const mark = join(packages, "installed.txt");
  if (existsSync(mark) && readFileSync(mark, "utf8") === wanted) return packages;
  // Few retries: pip queries the index for every package, and an unreachable index would delay each one.
  const install =
    "-m pip install --quiet --disable-pip-version-check --root-user-action ignore --retries 2 --upgrade";
  const places = ["--target", packages, "--requirement", requirements];
  execFileSync("python3", [...install.split(" "), ...places], { stdio: "inherit" });
  writeFileSync(mark, wanted);
  return packages;
}
