/**
 * npm run parity [-- --root DIR] [--device D] [--dtype T]
 * npm run parity -- --peer DIR
 *
 * Compares the engine with goldens: by default with those of carillon-nano, with --root with those in DIR/goldens. With
 * --peer makes the goldens of acestep.cpp first, in test/acestep-cpp, with the build in DIR/build.
 */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { provideLibtorch } from "./setup/libtorch.mjs";
import { PROGRAMS } from "./setup/native.mjs";
import { projectRoot, run, SetupError } from "./setup/run.mjs";
import { runScript, setUp } from "./setup.mjs";

const fromHere = (path) => resolve(process.env.INIT_CWD ?? ".", path);

/** Makes the goldens of acestep.cpp. Returns their root. */
function makePeerGoldens(peer) {
  const root = join(projectRoot, "test/acestep-cpp");
  const python = process.env.CARILLON_PEER_PYTHON ?? "python3";
  const env = { ...process.env, PYTHONPATH: dirname(provideLibtorch().directory) };
  run(python, ["scripts/parity/acestep_cpp_goldens.py", "--peer", fromHere(peer), "--out", root], { env });
  return root;
}

await runScript(async () => {
  const { values: options } = parseArgs({
    options: {
      root: { type: "string" },
      peer: { type: "string" },
      device: { type: "string" },
      dtype: { type: "string" },
    },
  });
  const { peer, ...values } = options;
  const given = peer ? makePeerGoldens(peer) : values.root && fromHere(values.root);
  const root = given ?? join(projectRoot, "test");
  const checkpoints = given ? join(root, "checkpoints") : join(projectRoot, "models");
  if (!existsSync(join(root, "goldens"))) throw new SetupError(`${root} has no folder named goldens`);
  setUp(PROGRAMS);
  const args = Object.entries({ ...values, root, checkpoints }).flatMap(([name, value]) => [
    `--${name}`,
    value,
  ]);
  const native = spawnSync(join(projectRoot, "build/native/test/carillon-parity"), args, {
    stdio: "inherit",
  });
  const tokenizer = spawnSync(process.execPath, ["--import", "tsx", "scripts/parity/tokenizer.ts", root], {
    cwd: projectRoot,
    stdio: "inherit",
  });
  process.exitCode = native.status === 0 && tokenizer.status === 0 ? 0 : 1;
});
