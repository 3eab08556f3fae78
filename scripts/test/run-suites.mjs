/** Runs test programs. Reads counts, failures and durations from their output. */
import { spawn } from "node:child_process";
import { stripVTControlCharacters } from "node:util";
import { projectRoot } from "../setup/run.mjs";

/** Maximum lines of a suite's failure report. The end of the run repeats all failure reports. */
const MAX_FAILURE_LINES = 200;
const MAX_OTHER_LINES = 20;
/**
 * Makes waiting threads sleep. Spinning threads of one suite would slow down the suite that runs beside it.
 */
const NO_SPINNING = { OMP_WAIT_POLICY: "passive" };

/**
 * @typedef {{ name: string, command: string, args: string[], env?: Record<string, string>, read: typeof readCheck }} Suite
 *   `read` takes the output and whether the exit code was 0
 * @typedef {{ name: string, passed: number, failed: number, skipped: number, failures: string,
 *   durations: { seconds: number, title: string }[] }} Result
 */

/**
 * Runs suites, at most `concurrency` at a time. Prints the output of a suite when it ends, or while it runs
 * if all other suites have ended.
 * @param {Suite[]} suites in the order in which they start
 * @returns {Promise<Result[]>} in the order of `suites`
 */
export async function runSuites(suites, concurrency) {
  const runs = suites.map((suite) => ({ suite, output: "", isShown: false }));
  const unfinished = new Set(runs);
  const showLast = () => {
    if (unfinished.size === 1) for (const run of unfinished) show(run);
  };
  const waiting = [...runs];
  const runNext = async () => {
    for (let run = waiting.shift(); run !== undefined; run = waiting.shift()) {
      await runSuite(run);
      unfinished.delete(run);
      showLast();
    }
  };
  showLast();
  await Promise.all(Array.from({ length: concurrency }, runNext));
  return runs.map(({ result }) => result);
}

/** Prints the output of a suite so far. From then on, new output is printed immediately. */
function show(run) {
  if (!run.isShown) process.stdout.write(`\n== ${run.suite.name}\n${run.output}`);
  run.isShown = true;
}

function runSuite(run) {
  const { name, command, args, env = {}, read } = run.suite;
  return new Promise((resolve) => {
    const start = Date.now();
    const child = spawn(command, args, {
      cwd: projectRoot,
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...NO_SPINNING, ...process.env, ...env },
    });
    const take = (text) => {
      run.output += text;
      if (run.isShown) process.stdout.write(text);
    };
    child.stdout.setEncoding("utf8").on("data", take);
    child.stderr.setEncoding("utf8").on("data", take);
    child.on("error", ({ message }) => take(`${message}\n`));
    child.on("close", (status) => {
      show(run);
      process.stdout.write(`== ${name}: ${((Date.now() - start) / 1000).toFixed(1)} s\n`);
      const text = stripVTControlCharacters(run.output);
      const result = { ...read(text, status === 0), name: `${name} (exit code ${status})` };
      if (status !== 0 && result.failed === 0) result.failed = 1;
      run.result = { ...result, failures: result.failed > 0 ? failuresOf(text) : "" };
      resolve();
    });
  });
}

/**
 * Extracts the failures: Mocha's report after `N failing`, FAIL lines of native programs, else the last
 * lines.
 */
function failuresOf(output) {
  const report = /^\s*\d+ failing\n([\s\S]*)/m.exec(output)?.[1];
  const lines = (report ?? output).split("\n");
  if (report) return lines.slice(0, MAX_FAILURE_LINES).join("\n");
  const native = lines.flatMap((line, index) => (/^FAIL/.test(line) ? lines.slice(index, index + 2) : []));
  return (native.length > 0 ? native : lines.slice(-MAX_OTHER_LINES)).join("\n");
}

/** A check such as lint counts as one test. */
export function readCheck(_output, succeeded) {
  return { passed: succeeded ? 1 : 0, failed: succeeded ? 0 : 1, skipped: 0, durations: [] };
}

/** Native programs end with `N passed, N failed, N skipped` and print `SLOW 2.3 s name` for slow tests. */
export function readNative(output) {
  const [, passed, failed, skipped] =
    [...output.matchAll(/^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$/gm)].at(-1) ?? [];
  const durations = [...output.matchAll(/^SLOW (\S+) s (.*)$/gm)].map(([, seconds, title]) => ({
    seconds: Number(seconds),
    title,
  }));
  return {
    passed: Number(passed ?? 0),
    failed: Number(failed ?? 0),
    skipped: Number(skipped ?? 0),
    durations,
  };
}

/** Mocha prints suites indented by two spaces, and durations as `(1234ms)` after the titles. */
export function readMocha(output) {
  const count = (word) => Number(new RegExp(`^\\s*(\\d+) ${word}`, "m").exec(output)?.[1] ?? 0);
  const durations = [];
  let suite = "";
  for (const line of output.split("\n")) {
    suite = /^ {2}(\S.*)/.exec(line)?.[1] ?? suite;
    const [, title, milliseconds] = /^\s+✔ (.*) \((\d+)ms\)$/.exec(line) ?? [];
    if (title) durations.push({ seconds: Number(milliseconds) / 1000, title: `${suite}: ${title}` });
  }
  return { passed: count("passing"), failed: count("failing"), skipped: count("pending"), durations };
}
