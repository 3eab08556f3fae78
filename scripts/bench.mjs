/**
 * npm run bench [-- NAME ...] [--size N] [--repetitions N] [--device D] [--dtype T] [--peer-dtype T]
 * [--quantization Q] [--threads N]
 * npm run bench -- --peer DIR [NAME ...] [--repetitions N]
 *
 * Times the native engine at real model size, alternating with its Python peer if that is installed (bench/turns.py), or
 * with acestep.cpp, built in DIR/build (bench/acestep_cpp_bench.py).
 * Builds the programs and makes the checkpoints first. CARILLON_BUILD: a build directory other than build/.
 */
import { spawnSync } from "node:child_process";
import { existsSync, renameSync, rmSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { provideLibtorch } from "./setup/libtorch.mjs";
import { PROGRAMS } from "./setup/native.mjs";
import { cacheRoot, projectRoot, run, SetupError, say } from "./setup/run.mjs";
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

/** The interpreter and the script of the peer that the arguments choose. */
function chooseScript(args, cwd) {
  const { peer } = parseArgs({ args, options: { peer: { type: "string" } }, strict: false }).values;
  if (peer === undefined) return ["python3", "turns.py"];
  if (peer === true) throw new SetupError("--peer needs the folder of a clone of acestep.cpp");
  const python = process.env.CARILLON_PEER_PYTHON ?? "python3";
  run(python, [join(projectRoot, "scripts/bench/acestep_cpp.py"), resolve(cwd, peer)]);
  return [python, "acestep_cpp_bench.py"];
}

await runScript(async () => {
  const cwd = process.env.INIT_CWD ?? ".";
  const given = process.argv.slice(2);
  const [python, script] = chooseScript(given, cwd);
  const build = process.env.CARILLON_BUILD;
  if (!build) setUp(PROGRAMS);
  const program = join(resolve(build || join(projectRoot, "build")), "native/bench/carillon-bench");
  const path = join(projectRoot, "scripts/bench", script);
  const args = [path, "--program", program, "--checkpoints", checkpoints(), ...given];
  const { error, status } = spawnSync(python, args, { cwd, stdio: "inherit" });
  if (error) throw error;
  process.exitCode = status ?? 1;
});
