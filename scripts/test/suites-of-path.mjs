/** Selects the tests that belong to a path of the repository. */
import { existsSync, statSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { projectRoot, SetupError } from "../setup/run.mjs";
import { mocha, nanoRecipe, nativeTests, parity } from "./suites.mjs";

/**
 * @param {string} path relative to the directory where npm was called
 * @param {boolean} slow whether tests tagged @slow run too
 */
export function suitesOfPath(path, slow) {
  const absolute = resolve(process.env.INIT_CWD ?? ".", path);
  const place = relative(projectRoot, absolute);
  if (!existsSync(absolute))
    throw new SetupError(`${path} does not exist; npm test -- PATH takes a file or a folder`);
  const [top, part, folder] = place.split("/");
  if (top === "native" && part === "addon") return [mochaOf("test/engine/native.test.ts", slow)];
  if (/^(native\/test\/parity|test\/(goldens|acestep-cpp))/.test(place)) return parity("goldens");
  // For example, native/core/lm and native/test/lm both select the tests in native/test/lm.
  if (top === "native")
    return [nativeTests(part === "kernels" ? "test/kernels/" : folder ? `test/${folder}/` : "")];
  if (top === "scripts" && part === "nano") return [nanoRecipe()];
  const tests = mochaTestsOf(place);
  if (tests === undefined) throw new SetupError(`no tests belong to ${path}: see test/README.md`);
  return [mochaOf(tests, slow)];
}

function mochaOf(files, slow) {
  return mocha(files, { files: [files], slow, parallel: files.includes("*") });
}

/**
 * Returns the tests of a source path. The tests of src/music/queue/retention.ts are in
 * test/music/queue/retention.test.ts. If that file does not exist, returns the tests of the nearest folder.
 */
function mochaTestsOf(place) {
  if (place.endsWith(".test.ts")) return place;
  let mirrored = place.replace(/^(src|test)\b/, "test").replace(/\.tsx?$/, ".test.ts");
  if (!mirrored.startsWith("test")) return undefined;
  while (!existsSync(join(projectRoot, mirrored))) mirrored = dirname(mirrored);
  return statSync(join(projectRoot, mirrored)).isDirectory() ? `${mirrored}/**/*.test.ts` : mirrored;
}
