/** The Python of the evaluation: a virtual environment of its own, made when it is first needed. */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { cacheRoot } from "../../setup/run.mjs";

const requirements = fileURLToPath(new URL("requirements.txt", import.meta.url));

/** Runs a program of this folder; its output goes to the terminal. */
export function runPython(program: string, programArguments: string[]): void {
  const script = fileURLToPath(new URL(program, import.meta.url));
  // Several processes work at once, each on small arrays.
  const env = { ...process.env, OMP_NUM_THREADS: "1", PYTHONDONTWRITEBYTECODE: "1" };
  execFileSync(interpreter(), [script, ...programArguments], { stdio: "inherit", env });
}

function interpreter(): string {
  const directory = join(cacheRoot, "nano", "python");
  const python = join(directory, "bin", "python");
  const mark = join(directory, "installed.txt");
  const wanted = readFileSync(requirements, "utf8");
  if (existsSync(mark) && readFileSync(mark, "utf8") === wanted) return python;
  mkdirSync(directory, { recursive: true });
  execFileSync("python3", ["-m", "venv", directory], { stdio: "inherit" });
  execFileSync(python, ["-m", "pip", "install", "--quiet", "--requirement", requirements], {
    stdio: "inherit",
  });
  writeFileSync(mark, wanted);
  return python;
}
