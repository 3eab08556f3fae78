/** The test programs of the project: what each runs, and with which environment. */
import { join } from "node:path";
import { projectRoot, SetupError, say } from "../setup/run.mjs";
import { otherVersion, pathWithNode } from "./other-node.mjs";
import { readCheck, readMocha, readNative } from "./run-suites.mjs";

const bin = (name) => join(projectRoot, "node_modules/.bin", name);
const program = (name) => join(projectRoot, "build/native/test", name);

/** Goldens that acestep.cpp computed, with their checkpoints. */
const ACESTEP_CPP = join(projectRoot, "test/acestep-cpp");

export const SLOW_TAG = "@slow";
const MOCHA_TIMEOUT_MS = 300_000;
/**
 * Number of test files that run at a time. Three keep two cores busy, because tests spend a third of their time
 * waiting for pages, servers and timers.
 */
const FILES_AT_ONCE = 3;
const WITHOUT_SLOW = ["--fgrep", SLOW_TAG, "--invert"];
/**
 * Each song causes a full garbage collection, because songs are stored outside V8's heap. V8 collects less often if
 * its heap may grow fivefold.
 */
const FEWER_COLLECTIONS = "--node-option=heap-growing-percent=400";

/** Environment variables that limit the instruction sets of our kernels, libtorch and oneDNN. */
const INSTRUCTION_SETS = {
  AVX2: { CARILLON_CPU_KERNELS: "avx2", ATEN_CPU_CAPABILITY: "avx2", ONEDNN_MAX_CPU_ISA: "AVX2" },
  "no vector instructions": {
    CARILLON_CPU_KERNELS: "none",
    ATEN_CPU_CAPABILITY: "default",
    ONEDNN_MAX_CPU_ISA: "SSE41",
  },
};

/** Values of CARILLON_CPU_KERNELS for which the goldens of acestep.cpp are compared, because they take only a second. */
const KERNEL_CAPS = ["none", "avx2", "avx512"];

/** Two simulated CUDA devices (native/test/fake_cuda). */
const FAKE_CUDA = {
  LD_PRELOAD: program("fake_cuda/libtorch_cuda.so"),
  FAKE_CUDA_DEVICES: "2",
  // Hides libtorch's warning that CPU kernels run in place of GPU kernels.
  TORCH_CPP_LOG_LEVEL: "ERROR",
};

/** Limits libtorch to one thread: several test files run at a time and would compete for the cores. */
const ONE_THREAD = { OMP_NUM_THREADS: "1" };

/**
 * Leaks are not detected, because libtorch never frees some allocations. Container overflows are not detected, because
 * libtorch is not instrumented. Allocations may fail, because tests request more memory than exists.
 */
const SANITIZER_OPTIONS = {
  ASAN_OPTIONS: "detect_leaks=0:detect_container_overflow=0:allocator_may_return_null=1",
};

const check = (name, command, args) => ({ name, command, args, read: readCheck });
const native = (name, command, args = [], env = {}) => ({ name, command, args, env, read: readNative });

/** @param files globs; all tests of .mocharc.json if empty */
export function mocha(name, { files, config, slow = false, env = {}, parallel = false }) {
  const args = [
    ...(config ? ["--config", config] : []),
    ...(files ? ["--no-config", "--node-option=import=tsx/esm", ...files] : []),
    FEWER_COLLECTIONS,
    `--timeout=${MOCHA_TIMEOUT_MS}`,
    ...(parallel ? ["--parallel", "--jobs", String(FILES_AT_ONCE)] : []),
    ...(slow ? [] : WITHOUT_SLOW),
  ];
  const threads = parallel ? ONE_THREAD : {};
  const inputs = slow ? { CARILLON_TEST_ALL: "1" } : {};
  return { name, command: bin("mocha"), args, env: { ...threads, ...inputs, ...env }, read: readMocha };
}

export const nativeTests = (filter = "") =>
  native("native tests", program("carillon-test"), filter ? [filter] : []);

export const nanoRecipe = () =>
  mocha("training recipe of carillon-nano", { config: "scripts/nano/test/.mocharc.json", slow: true });

export function staticChecks() {
  return [
    // Each further checker of tsc checks shared declarations again, and the cores are busy.
    check("types", bin("tsc"), ["--noEmit", "--checkers", "1"]),
    check("lint", bin("biome"), ["check", "."]),
    check("page types", bin("tsc"), ["--noEmit", "-p", "src/web"]),
    check("studio types", bin("tsc"), ["-p", "src/web/studio"]),
    check("generated documents", "node", ["--import", "tsx", "scripts/readme.ts", "--check"]),
  ];
}

/** The native suites of `npm test`. */
export function quickNativeSuites() {
  return [nativeTests(), deviceTests(), ...parity("goldens"), ...cappedParity()];
}

/** The native suites of `npm test -- --all`. The longest begin first, so that both cores are busy to the end. */
export function allNativeSuites() {
  const sanitized = join(projectRoot, "build/sanitized/native/test/carillon-test");
  return [
    native("native tests, sanitized", sanitized, [], SANITIZER_OPTIONS),
    nanoRecipe(),
    nativeTests(),
    deviceTests(),
    ...parity("goldens"),
    ...cappedParity(),
    ...parity("no vector instructions: goldens", [], INSTRUCTION_SETS["no vector instructions"]),
    ...parity("fake cuda:0, float32: goldens", ["--device", "cuda:0", "--dtype", "float32"], FAKE_CUDA),
    ...parity("fake cuda:1, float32: goldens", ["--device", "cuda:1", "--dtype", "float32"], FAKE_CUDA),
    ...parity("fake cuda:1, bfloat16: goldens", ["--device", "cuda:1", "--dtype", "bfloat16"], FAKE_CUDA),
    engineTests("engine on fake cuda:1", ["engine", "tasks", "adapters", "render-parameters", "training"], {
      ...FAKE_CUDA,
      CARILLON_TEST_DEVICE: "cuda:1",
    }),
    ...Object.entries(INSTRUCTION_SETS).map(([set, env]) =>
      engineTests(`engine, ${set}`, ["engine", "adapters"], env),
    ),
  ];
}

/** @param slow whether tests tagged @slow run too */
export function longSuite(slow) {
  return mocha("mocha", { slow, parallel: true });
}

/** Tests that use most of Node's interfaces: files, processes, threads, sockets, streams and native modules. */
const NODE_TESTS = [
  ...[
    "system",
    "http",
    "client",
    "mcp",
    "models",
    "libtorch",
    "music/queue",
    "music/callbacks",
    "music/storage",
  ].map((folder) => `test/${folder}/*.test.ts`),
  ...[
    "config",
    "examples",
    "engine/native",
    "engine/tokenizer",
    "music/audio/decode",
    "city/command-line",
  ].map((file) => `test/${file}.test.ts`),
  ...["restart", "end", "fleet", "command-line"].map((file) => `test/e2e/${file}.test.ts`),
];

/** Tests on the newest version of Node, or on the oldest if this process runs the newest. None if it cannot be installed. */
export function otherNodeSuites() {
  try {
    const env = { PATH: pathWithNode(otherVersion) };
    return [mocha(`mocha on Node ${otherVersion}`, { files: NODE_TESTS, env, parallel: true })];
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    say(error.message);
    return [];
  }
}

const deviceTests = () => native("native tests on the fake CUDA device", program("carillon-device-test"));

function engineTests(name, files, env) {
  return mocha(name, { files: files.map((file) => `test/engine/${file}.test.ts`), slow: true, env });
}

/** Compares goldens of carillon-nano, of acestep.cpp, and of the parity set in CARILLON_PARITY_ROOT if that is set. */
export function parity(name, args = [], env = {}) {
  const compare = (set, ...folders) =>
    native(`${name} of ${set}`, program("carillon-parity"), [...folders, ...args], env);
  const root = process.env.CARILLON_PARITY_ROOT;
  const models = join(projectRoot, "models");
  return [
    compare("carillon-nano", "--root", join(projectRoot, "test"), "--checkpoints", models),
    compare("acestep.cpp", "--root", ACESTEP_CPP),
    ...(root ? [compare("the parity set", "--root", root)] : []),
  ];
}

function cappedParity() {
  return KERNEL_CAPS.map((cap) => {
    const env = { CARILLON_CPU_KERNELS: cap };
    return native(
      `goldens of acestep.cpp, kernels: ${cap}`,
      program("carillon-parity"),
      ["--root", ACESTEP_CPP],
      env,
    );
  });
}
