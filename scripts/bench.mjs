/**
 * npm run bench [-- NAME ...] [--size N] [--repetitions N] [--device D] [--dtype T] [--threads N]
 *
 * Times the native engine at real model size, and its Python peer beside it where that is installed: the two take
 * turns (A B A B), so that whatever else the machine does hits both. Prints a table on stderr and JSON on stdout.
 *
 * CARILLON_PEER_PYTHON: the interpreter that has torch, transformers and diffusers (default python3; PYTHONPATH is
 * passed on). CARILLON_BUILD: a build directory other than build/.
 */
import { spawn, spawnSync } from "node:child_process";
import { existsSync, renameSync, rmSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import { PROGRAMS } from "./setup/native.mjs";
import { cacheRoot, projectRoot, run, SetupError, say } from "./setup/run.mjs";
import { main, setUp } from "./setup.mjs";

/** Peer programs in scripts/bench, and the ratio (time over the peer's time in the same type) that each benchmark aims at. */
const BENCHMARKS = {
  "dit-step": { peer: ["peer_dit_step.py"], needs: "diffusers", goal: { bfloat16: 0.75, float32: 0.85 } },
  "vae-decode": { peer: ["peer_vae_decode.py"], needs: "diffusers", goal: { bfloat16: 0.4, float32: 0.5 } },
  "lm-decode": { peer: ["peer_lm_decode.py"], needs: "transformers", goal: { bfloat16: 0.25, float32: 0.3 } },
  "lm-decode-cfg": {
    peer: ["peer_lm_decode.py", "--rows", "2"],
    needs: "transformers",
    goal: { bfloat16: 0.25, float32: 0.3 },
  },
  song: {},
};

/** A program that warms up, prints `ready`, then the seconds of one repetition for every line it is sent. */
class Contestant {
  constructor(command, args, env) {
    this.process = spawn(command, args, { env, stdio: ["pipe", "pipe", "pipe"] });
    this.errors = "";
    this.process.stderr.on("data", (chunk) => {
      this.errors = (this.errors + chunk).slice(-4000);
    });
    this.process.on("error", (error) => {
      this.errors += error.message;
    });
    this.process.stdin.on("error", () => {}); // a program that ended is reported by line()
    this.lines = createInterface({ input: this.process.stdout })[Symbol.asyncIterator]();
    this.name = args[0].endsWith(".py") ? args[0] : command;
  }

  async line() {
    const { value, done } = await this.lines.next();
    if (done) throw new SetupError(`${this.name} ended before its time:\n${this.errors.trim()}`);
    return value;
  }

  async ready() {
    while ((await this.line()) !== "ready");
  }

  async seconds() {
    this.process.stdin.write("\n");
    return Number(await this.line());
  }

  end() {
    this.process.stdin.end();
  }
}

function checkpoints() {
  const directory = join(cacheRoot, "bench");
  if (existsSync(join(directory, "acestep-v15-turbo", "model.safetensors"))) return directory;
  say("making random checkpoints of published size, 8 GB, once per machine");
  const partial = `${directory}.part-${process.pid}`;
  run("python3", ["scripts/bench/make_checkpoints.py", "--out", partial]);
  rmSync(directory, { recursive: true, force: true });
  renameSync(partial, directory);
  return directory;
}

async function nativeProgram() {
  if (process.env.CARILLON_BUILD) return join(process.env.CARILLON_BUILD, "native/bench/carillon-bench");
  setUp(PROGRAMS);
  return join(projectRoot, "build/native/bench/carillon-bench");
}

const peerPython = process.env.CARILLON_PEER_PYTHON ?? "python3";

/** Why the peer cannot run here, or nothing. */
function missingPeer(benchmark) {
  if (!benchmark.peer) return "has no peer";
  const probe = spawnSync(peerPython, ["-c", `import torch, ${benchmark.needs}`], { stdio: "ignore" });
  return probe.status === 0 ? undefined : `${peerPython} cannot import torch and ${benchmark.needs}`;
}

const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];
const summary = (values) => ({
  medianSeconds: median(values),
  minSeconds: Math.min(...values),
  seconds: values,
});

async function measure(name, native, settings) {
  const benchmark = BENCHMARKS[name];
  const env = { ...process.env, OMP_NUM_THREADS: String(settings.threads) };
  const size = settings.size ? ["--size", String(settings.size)] : [];
  const placement = ["--device", settings.device, "--dtype", settings.dtype];
  const nativeArgs = [name, "--checkpoints", settings.checkpoints, "--on-demand", ...size, ...placement];
  const contestants = { native: new Contestant(native, nativeArgs, env) };
  await contestants.native.ready();
  const skipped = missingPeer(benchmark);
  if (!skipped) {
    const [script, ...args] = benchmark.peer;
    const device = settings.device === "auto" ? [] : ["--device", settings.device];
    const dtype = ["--dtype", settings.dtype];
    const path = join(projectRoot, "scripts/bench", script);
    const threads = ["--threads", String(settings.threads)];
    contestants.peer = new Contestant(
      peerPython,
      [path, ...args, ...size, ...device, ...dtype, ...threads],
      env,
    );
    await contestants.peer.ready();
  }
  const seconds = { native: [], peer: [] };
  for (let repetition = 0; repetition < settings.repetitions; repetition++) {
    for (const [side, contestant] of Object.entries(contestants))
      seconds[side].push(await contestant.seconds());
  }
  for (const contestant of Object.values(contestants)) contestant.end();
  const result = { name, native: summary(seconds.native) };
  if (skipped) return { ...result, peerSkipped: skipped };
  const peer = summary(seconds.peer);
  return {
    ...result,
    peer,
    ratioOfMedians: result.native.medianSeconds / peer.medianSeconds,
    ratioOfMinima: result.native.minSeconds / peer.minSeconds,
    goal: benchmark.goal[settings.dtype === "float32" ? "float32" : "bfloat16"],
  };
}

function printRow(cells) {
  process.stderr.write(
    `${cells.map((cell, i) => (i === 0 ? cell.padEnd(15) : cell.padStart(13))).join("")}\n`,
  );
}

function printResult({ name, native, peer, peerSkipped, ratioOfMedians, ratioOfMinima, goal }) {
  const seconds = (value) => value.toFixed(4);
  const nativeCells = [seconds(native.medianSeconds), seconds(native.minSeconds)];
  if (!peer) {
    printRow([name, ...nativeCells, ...(peerSkipped === "has no peer" ? ["no peer"] : ["peer skipped"])]);
    if (peerSkipped !== "has no peer")
      process.stderr.write(`  ${name}: ${peerSkipped}; set CARILLON_PEER_PYTHON\n`);
    return;
  }
  const ratios = [ratioOfMedians, ratioOfMinima].map((ratio) => ratio.toFixed(3));
  printRow([
    name,
    ...nativeCells,
    seconds(peer.medianSeconds),
    seconds(peer.minSeconds),
    ...ratios,
    `<= ${goal}`,
  ]);
}

await main(async () => {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      size: { type: "string" },
      repetitions: { type: "string", default: "5" },
      device: { type: "string", default: "auto" },
      dtype: { type: "string", default: "auto" },
      threads: { type: "string", default: String(availableParallelism()) },
    },
  });
  const names = positionals.length > 0 ? positionals : Object.keys(BENCHMARKS);
  for (const name of names) {
    if (!BENCHMARKS[name]) {
      throw new SetupError(`unknown benchmark '${name}': use ${Object.keys(BENCHMARKS).join(", ")}`);
    }
  }
  for (const option of ["size", "repetitions", "threads"]) {
    if (values[option] !== undefined && !/^[1-9]\d{0,5}$/.test(values[option])) {
      throw new SetupError(`--${option} takes a positive whole number, not '${values[option]}'`);
    }
  }
  const native = await nativeProgram();
  const settings = { ...values, repetitions: Number(values.repetitions), checkpoints: checkpoints() };
  const results = [];
  printRow([
    "seconds",
    "native median",
    "native min",
    "peer median",
    "peer min",
    "median ratio",
    "min ratio",
    "goal",
  ]);
  for (const name of names) {
    results.push(await measure(name, native, settings));
    printResult(results.at(-1));
  }
  process.stdout.write(`${JSON.stringify({ threads: Number(values.threads), results }, null, 1)}\n`);
});
