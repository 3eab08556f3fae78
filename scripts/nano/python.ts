/** Runs Python programs. Each folder has its own packages, installed on first use. */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { provideLibtorch } from "../setup/libtorch.mjs";
import { cacheRoot } from "../setup/run.mjs";

const environments = {
  /** Several processes work at once, each on small arrays. */
  eval: () => ({ PYTHONPATH: packagesOf("eval"), OMP_NUM_THREADS: "1" }),
  /**
   * torch is the engine's own. Memory of one step serves the next: given back to the system in between, it would be
   * cleared page by page again, which takes as long as the step.
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

/** Environment and directory of a folder's programs. */
export function pythonOf(folder: PythonFolder): { env: NodeJS.ProcessEnv; directory: string } {
  const env = { ...process.env, ...environments[folder](), PYTHONDONTWRITEBYTECODE: "1" };
  return { env, directory: directoryOf(folder) };
}

/** Runs `program` of `folder`; its output goes to the terminal. */
export function runPython(folder: PythonFolder, program: string, parameters: string[]): void {
  const { env, directory } = pythonOf(folder);
  execFileSync("python3", [join(directory, program), ...parameters], { stdio: "inherit", env });
}

/** Runs the tests of a folder. @throws Error if one fails */
export function testPython(folder: PythonFolder): void {
  const { env, directory } = pythonOf(folder);
  const discover = ["-W", "ignore", "-m", "unittest", "discover", "--start-directory", "test"];
  execFileSync("python3", discover, { cwd: directory, env, stdio: "inherit" });
}

function directoryOf(folder: string): string {
  return fileURLToPath(new URL(folder, import.meta.url));
}

/** Cache folder with the packages of the folder's requirements.txt. */
function packagesOf(folder: string): string {
  const requirements = join(directoryOf(folder), "requirements.txt");
  const wanted = readFileSync(requirements, "utf8");
  const packages = join(cacheRoot, "nano", `packages-${folder}`);
  const mark = join(packages, "installed.txt");
  if (existsSync(mark) && readFileSync(mark, "utf8") === wanted) return packages;
  // pip queries the index for every package, so it gives up early if the index is unreachable.
  const install =
    "-m pip install --quiet --disable-pip-version-check --root-user-action ignore --retries 2 --upgrade";
  const places = ["--target", packages, "--requirement", requirements];
  execFileSync("python3", [...install.split(" "), ...places], { stdio: "inherit" });
  writeFileSync(mark, wanted);
  return packages;
}
