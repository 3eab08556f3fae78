/**
 * npm test                every feature once: lint, types, native tests, goldens, mocha without the tests tagged @slow
 * npm test -- --all       everything: slow tests, sanitizers, instruction sets, the fake CUDA device, training of carillon-nano
 * npm test -- PATH ...    the tests of a source file, a test file or a folder; with --all, its slow tests too
 * npm test -- --node 24   the tests on another version of Node, which is installed into the cache; alone or with the above
 *
 * Failures are repeated at the end. The last line is `N passed, N failed, N skipped`.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { PROGRAMS, SANITIZED_TESTS } from "./setup/native.mjs";
import { projectRoot } from "./setup/run.mjs";
import { installTestPrograms } from "./setup/system.mjs";
import { runScript, setUp } from "./setup.mjs";
import { pathWithNode } from "./test/other-node.mjs";
import { runSuites } from "./test/run-suites.mjs";
import {
  allNativeSuites,
  longSuite,
  otherNodeSuites,
  quickNativeSuites,
  staticChecks,
} from "./test/suites.mjs";
import { suitesOfPath } from "./test/suites-of-path.mjs";

/** Number of suites that run at once. One of them is mocha, which itself runs several files at once. */
const CONCURRENCY = 2;
const SLOWEST_SHOWN = 20;

await runScript(async () => {
  const { values, positionals } = parseArgs({
    options: { all: { type: "boolean" }, node: { type: "string" } },
    allowPositionals: true,
  });
  const slow = values.all ?? false;
  const isWhole = positionals.length === 0;
  setUp(PROGRAMS, ...(slow && isWhole ? [SANITIZED_TESTS] : []));
  installTestPrograms();
  if (values.node !== undefined) process.env.PATH = pathWithNode(values.node);
  const defaultParityRoot = join(projectRoot, "../shared/parity");
  if (existsSync(defaultParityRoot)) process.env.CARILLON_PARITY_ROOT ??= defaultParityRoot;

  const suites = isWhole
    ? [
        longSuite(slow),
        ...(slow ? allNativeSuites() : quickNativeSuites()),
        ...(slow && values.node === undefined ? otherNodeSuites() : []),
        ...staticChecks(),
      ]
    : positionals.flatMap((path) => suitesOfPath(path, slow));
  const results = await runSuites(suites, CONCURRENCY);

  for (const { name, failures } of results.filter(({ failed }) => failed > 0))
    process.stdout.write(`\n== failed: ${name}\n${failures}\n`);
  if (slow) showSlowest(results.flatMap(({ durations }) => durations));
  const sum = (key) => results.reduce((total, result) => total + result[key], 0);
  process.exitCode = sum("failed") === 0 ? 0 : 1;
  process.stdout.write(`\n${sum("passed")} passed, ${sum("failed")} failed, ${sum("skipped")} skipped\n`);
});

function showSlowest(durations) {
  process.stdout.write("\n== slowest tests (seconds)\n");
  const slowest = durations.sort((a, b) => b.seconds - a.seconds).slice(0, SLOWEST_SHOWN);
  for (const { seconds, title } of slowest)
    process.stdout.write(`${seconds.toFixed(1).padStart(7)}  ${title}\n`);
}
