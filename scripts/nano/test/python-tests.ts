/** Runs the tests that stand beside the Python programs of a room. */
import { execFileSync } from "node:child_process";
import { type PythonRoom, pythonOf } from "../python.js";

/** @throws where one fails; their output goes to the terminal */
export function testPython(room: PythonRoom): void {
  const { env, directory } = pythonOf(room);
  const discover = ["-W", "ignore", "-m", "unittest", "discover", "--start-directory", "test"];
  execFileSync("python3", discover, { cwd: directory, env, stdio: ["ignore", "inherit", "inherit"] });
}
