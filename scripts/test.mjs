/**
 * npm test: lint, type check, native tests, mocha; with `-- --sanitize` the native tests once more under the sanitizers.
 * What failed is told once more at the end, where the end is all that is kept. The last line is `N passed, N failed`.
 */
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { PROGRAMS, SANITIZED } from "./setup/native.mjs";
import { projectRoot } from "./setup/run.mjs";
import { installTestPrograms } from "./setup/system.mjs";
import { main, setUp } from "./setup.mjs";

const sanitize = process.argv.includes("--sanitize");
const parityRoot = process.env.CARILLON_PARITY_ROOT ?? join(projectRoot, "../shared/parity");

const failures = [];

/** What a suite's output says of its failures: mocha's part after `N failing`, the native programs' lines, or its end. */
function failuresOf(output) {
  const details = /^\s*\d+ failing\n([\s\S]*)/m.exec(output)?.[1];
  const lines = (details ?? output).split("\n");
  const native = lines.flatMap((line, index) => (/^FAIL/.test(line) ? lines.slice(index, index + 2) : []));
  return (details ? lines.slice(0, 200) : native.length > 0 ? native : lines.slice(-20)).join("\n");
}

/** Runs one suite, shows its output, and returns its counts: a suite that says none counts as one test. */
function suite(name, command, args, countsOf = () => null, more = {}) {
  return new Promise((resolve) => {
    process.stdout.write(`\n== ${name}\n`);
    const child = spawn(command, args, {
      cwd: projectRoot,
      stdio: ["ignore", "pipe", "inherit"],
      env: { ...env, ...more },
    });
    let output = "";
    child.stdout.setEncoding("utf8").on("data", (text) => {
      output += text;
      process.stdout.write(text);
    });
    child.on("error", (error) => {
      process.stdout.write(`${error.message}\n`);
      resolve({ passed: 0, failed: 1 });
    });
    child.on("close", (status) => {
      const told = stripVTControlCharacters(output);
      const counts = countsOf(told) ?? { passed: status === 0 ? 1 : 0, failed: 0 };
      if (status !== 0 && counts.failed === 0) counts.failed = 1;
      if (counts.failed > 0) failures.push(`${name} (exit code ${status})\n${failuresOf(told)}`);
      resolve(counts);
    });
  });
}

const env = {
  ...process.env,
  // libtorch is not instrumented: what it allocates for ever is no leak of ours, and its vectors are not annotated. Tests
  // ask for more memory than there is, which is refused and no fault.
  ASAN_OPTIONS: "detect_leaks=0:detect_container_overflow=0:allocator_may_return_null=1",
  ...(existsSync(parityRoot) ? { CARILLON_PARITY_ROOT: parityRoot } : {}),
};

/** Two CUDA devices that are not there (native/test/fake_cuda). */
const FAKE_CUDA = {
  LD_PRELOAD: join(projectRoot, "build/native/test/fake_cuda/libtorch_cuda.so"),
  FAKE_CUDA_DEVICES: "2",
  // What libtorch's CPU kernels warn of where they run in a GPU's place.
  TORCH_CPP_LOG_LEVEL: "ERROR",
};

function nativeCounts(output) {
  const match = [...output.matchAll(/^(\d+) passed, (\d+) failed$/gm)].at(-1);
  return match ? { passed: Number(match[1]), failed: Number(match[2]) } : null;
}

function mochaCounts(output) {
  const passing = /^\s*(\d+) passing/m.exec(output);
  const failing = /^\s*(\d+) failing/m.exec(output);
  return passing ? { passed: Number(passing[1]), failed: Number(failing?.[1] ?? 0) } : null;
}

await main(async () => {
  setUp(PROGRAMS, ...(sanitize ? [SANITIZED] : []));
  installTestPrograms();
  const bin = (name) => join(projectRoot, "node_modules/.bin", name);
  const counts = [
    await suite("lint", bin("biome"), ["check", "."]),
    await suite("types", bin("tsc"), ["--noEmit"]),
    await suite("page types", bin("tsc"), ["--noEmit", "-p", "src/web"]),
    await suite("studio types", bin("tsc"), ["-p", "src/web/studio"]),
    await suite("readme", process.execPath, ["--import", "tsx", "scripts/readme.ts", "--check"]),
    await suite("native", join(projectRoot, "build/native/test/carillon-test"), [], nativeCounts),
  ];
  const deviceTest = join(projectRoot, "build/native/test/carillon-device-test");
  counts.push(await suite("native, fake CUDA", deviceTest, [], nativeCounts));
  if (sanitize) {
    const program = join(projectRoot, "build/sanitized/native/test/carillon-test");
    counts.push(await suite("native, sanitized", program, [], nativeCounts));
  }
  if (existsSync(parityRoot)) {
    const program = join(projectRoot, "build/native/test/carillon-parity");
    counts.push(await suite("parity", program, ["--root", parityRoot], nativeCounts));
    const plain = {
      CARILLON_CPU_KERNELS: "none",
      ATEN_CPU_CAPABILITY: "default",
      ONEDNN_MAX_CPU_ISA: "SSE41",
    };
    counts.push(
      await suite("parity without vector instructions", program, ["--root", parityRoot], nativeCounts, plain),
    );
    for (const [device, dtype] of [
      ["cuda:0", "float32"],
      ["cuda:1", "float32"],
      ["cuda:1", "bfloat16"],
    ]) {
      const args = ["--root", parityRoot, "--device", device, "--dtype", dtype];
      counts.push(await suite(`parity on fake ${device}, ${dtype}`, program, args, nativeCounts, FAKE_CUDA));
    }
  }
  counts.push(await suite("mocha", bin("mocha"), [], mochaCounts));
  const onDevice = ["engine", "tasks", "adapters", "render-parameters", "training"];
  const files = onDevice.map((name) => `test/engine/${name}.test.ts`);
  counts.push(
    await suite(
      "engine on fake cuda:1",
      bin("mocha"),
      ["--no-config", "--node-option=import=tsx/esm", "--timeout=300000", ...files],
      mochaCounts,
      { ...FAKE_CUDA, CARILLON_TEST_DEVICE: "cuda:1" },
    ),
  );
  counts.push(
    await suite("nano", bin("mocha"), ["--config", "scripts/nano/test/.mocharc.json"], mochaCounts),
  );
  for (const failure of failures) process.stdout.write(`\n== failed: ${failure}\n`);
  const sum = (key) => counts.reduce((total, count) => total + count[key], 0);
  process.exitCode = sum("failed") === 0 ? 0 : 1;
  process.stdout.write(`\n${sum("passed")} passed, ${sum("failed")} failed\n`);
});
