/** Runs the tests of a folder of Python programs. */
import { execFileSync } from "node:child_process";
import { type PythonFolder, pythonOf } from "../python.js";

/** @throws where one fails; their output goes to the terminal */
export function testPython(folder: PythonFolder): void {
  const { env, directory } = pythonOf(folder);
  const discover = ["-W", "ignore", "-m", "unittest", "discover", "--start-directory", "test"];
  execFileSync("python3", discover, { cwd: directory, env, stdio: ["ignore", "inherit", "inherit"] });
}
