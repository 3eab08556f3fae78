/**
 * npm run bench [-- NAME ...] [--size N] [--repetitions N] [--device D] [--dtype T] [--peer-dtype T]
 * [--quantization Q] [--threads N]
 *
 * Times the native engine at real model size, alternating with its Python peer if that is installed (bench/turns.py).
 * Builds the programs and makes the checkpoints first. CARILLON_BUILD: a build directory other than build/.
 */
import { spawnSync } from "node:child_process";
import { existsSync, renameSync, rmSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { provideLibtorch } from "./setup/libtorch.mjs";
import { PROGRAMS } from "./setup/native.mjs";
import { cacheRoot, projectRoot, run, say } from "./setup/run.mjs";
import { runScript, setUp } from "./setup.mjs";

function checkpoints() {
  const directory = join(cacheRoot, "bench");
  if (existsSync(join(directory, "acestep-v15-turbo", "model.safetensors"))) return directory;
  say("creating random checkpoints of the published size (8 GB, once per machine)");
  const partial = `${directory}.part-${process.pid}`;
  const env = { ...process.env, PYTHONPATH: dirname(provideLibtorch().directory) };
  run("python3", ["scripts/bench/make_checkpoints.py", "--out", partial], { env });
  rmSync(directory, { recursive: true, force: true });
  renameSync(partial, directory);
  return directory;
}

await runScript(async () => {
  const build = process.env.CARILLON_BUILD;
  if (!build) setUp(PROGRAMS);
  const program = join(resolve(build || join(projectRoot, "build")), "native/bench/carillon-bench");
  const turns = join(projectRoot, "scripts/bench/turns.py");
  const args = [turns, "--program", program, "--checkpoints", checkpoints(), ...process.argv.slice(2)];
  const { error, status } = spawnSync("python3", args, { stdio: "inherit" });
  if (error) throw error;
  process.exitCode = status ?? 1;
});
