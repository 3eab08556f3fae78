/** Runs test programs and reads their counts, failures and durations from what they print. */
import { spawn } from "node:child_process";
import { stripVTControlCharacters } from "node:util";
import { projectRoot } from "../setup/run.mjs";

/** Maximum lines of a failure report, which is repeated at the end of the run. */
const MAX_FAILURE_LINES = 200;
const MAX_OTHER_LINES = 20;
/** Two programs share the cores: threads of one that wait for each other must not spin while the other works. */
const NO_SPINNING = { OMP_WAIT_POLICY: "passive" };

/**
 * @typedef {{ name: string, command: string, args: string[], env?: Record<string, string>, read: typeof readCheck }} Suite
 *   `read` takes the output and whether the exit code was 0
 * @typedef {{ name: string, passed: number, failed: number, skipped: number, failures: string,
 *   durations: { seconds: number, title: string }[] }} Result
 */

/**
 * Runs suites, at most `concurrency` at a time. Output of one suite is never mixed with another's.
 * @param {Suite[]} suites
 * @returns {Promise<Result[]>} in the order of `suites`
 */
export async function runSuites(suites, concurrency) {
  const results = new Array(suites.length);
  const waiting = suites.map((suite, index) => ({ suite, index }));
  const runNext = async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift())
      results[next.index] = await runSuite(next.suite, suites.length === 1);
  };
  await Promise.all(Array.from({ length: concurrency }, runNext));
  return results;
}

function runSuite({ name, command, args, env = {}, read }, isAlone) {
  return new Promise((resolve) => {
    const start = Date.now();
    if (isAlone) process.stdout.write(`\n== ${name}\n`);
    const child = spawn(command, args, {
      cwd: projectRoot,
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...NO_SPINNING, ...process.env, ...env },
    });
    let output = "";
    const take = (text) => {
      output += text;
      if (isAlone) process.stdout.write(text);
    };
    child.stdout.setEncoding("utf8").on("data", take);
    child.stderr.setEncoding("utf8").on("data", take);
    child.on("error", ({ message }) => take(`${message}\n`));
    child.on("close", (status) => {
      const seconds = (Date.now() - start) / 1000;
      process.stdout.write(
        isAlone
          ? `== ${name}: ${seconds.toFixed(1)} s\n`
          : `\n== ${name}: ${seconds.toFixed(1)} s\n${output}`,
      );
      const text = stripVTControlCharacters(output);
      const result = { ...read(text, status === 0), name: `${name} (exit code ${status})` };
      if (status !== 0 && result.failed === 0) result.failed = 1;
      resolve({ ...result, failures: result.failed > 0 ? failuresOf(text) : "" });
    });
  });
}

/** Text that shows the failures: Mocha's report after `N failing`, FAIL lines of native programs, else the last lines. */
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
