/**
 * npm run parity [-- --root DIR] [--device D] [--dtype T]
 *
 * Compares the engine with goldens: by default with those of carillon-nano, with --root with those in DIR/goldens.
 */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { PROGRAMS } from "./setup/native.mjs";
import { projectRoot, SetupError } from "./setup/run.mjs";
import { runScript, setUp } from "./setup.mjs";

await runScript(async () => {
  const { values } = parseArgs({
    options: { root: { type: "string" }, device: { type: "string" }, dtype: { type: "string" } },
  });
  const root = values.root ? resolve(process.env.INIT_CWD ?? ".", values.root) : join(projectRoot, "test");
  const checkpoints = values.root ? join(root, "checkpoints") : join(projectRoot, "models");
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
