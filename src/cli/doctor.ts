/** `carillon doctor`: checks the requirements of a server and shows a one-line fix for each fault. */
import { execFile } from "node:child_process";
import { constants, existsSync, readFileSync } from "node:fs";
import { access, mkdir, statfs } from "node:fs/promises";
import { createServer } from "node:net";
import { cpus, freemem, totalmem } from "node:os";
import { promisify } from "node:util";
import { type Config, ConfigError, createEngine, loadConfig, type MusicEngine } from "../index.js";
import { checkPackages } from "../libtorch/prebuilt.js";
import { requireKeyIfReachable } from "../music/access/access.js";
import { findFfmpeg, STATIC_PACKAGE } from "../music/audio/ffmpeg.js";
import { AUDIO_PROFILES } from "../music/audio/formats.js";
import { AdvisedError } from "../system/config-error.js";
import { withTimeLimit } from "../system/time-limit.js";
import { checkCitySettings, checkDevices, checkMusicSettings } from "./start-checks.js";

/** "bad": the server cannot start or work; "note": it works, but could be better. */
export interface Finding {
  what: string;
  state: "ok" | "note" | "bad";
  found: string;
  /** One line that tells the user what to do; absent if there is nothing to do. */
  fix?: string;
}

const GIB = 2 ** 30;
/** Less free disk space than this is reported as "bad". A song and its task need far less. */
const MIN_DISK_BYTES = GIB;
const MIN_MEMORY_BYTES = 4 * GIB;
/** Instruction sets for which the core has kernels, slowest first. */
const CPU_FEATURES = ["avx2", "avx512f", "avx512_bf16", "amx_bf16"];
/** Files that reveal a container: Docker and Podman each create one of them. */
const CONTAINER_MARKS = ["/.dockerenv", "/run/.containerenv"];
const HEALTH_TIMEOUT_MS = 2_000;
const SIGNS: Readonly<Record<Finding["state"], string>> = { ok: "ok  ", note: "note", bad: "BAD " };

function finding(what: string, state: Finding["state"], found: string, fix?: string): Finding {
  return { what, state, found, ...(fix && { fix }) };
}

/** Prints the findings. @returns whether none is "bad" */
export async function doctor(): Promise<boolean> {
  const findings: Finding[] = [];
  for await (const finding of examine()) {
    findings.push(finding);
    const { what, state, found, fix } = finding;
    console.log(`${SIGNS[state]} ${what}: ${found}`);
    if (fix !== undefined) console.log(`     -> ${fix}`);
  }
  const count = findings.filter(({ state }) => state === "bad").length;
  console.log(count === 0 ? "No problems found." : `${count} of ${findings.length} checks failed.`);
  return count === 0;
}

async function* examine(): AsyncGenerator<Finding> {
  yield processor();
  yield memory();
  yield await ffmpeg();
  let config: Config;
  try {
    config = loadConfig();
    await checkMusicSettings(config);
    await checkCitySettings(config);
    yield finding("settings", "ok", "all are valid");
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    yield finding("settings", "bad", error.message, `set ${error.variable} to a valid value, or unset it`);
    return;
  }
  yield callers(config);
  yield* await engineAndModels(config);
  yield* await Promise.all([
    disk("songs and tasks", config.temporaryDirectory, "SVC_TMPDIR"),
    disk("checkpoints", config.checkpointsDirectory, "SVC_CHECKPOINTS"),
  ]);
  yield* await Promise.all([
    port("music port", config.apiPort, config.apiHost, "SVC_API_PORT"),
    port("city port", config.cityPort, "127.0.0.1", "CITY_BRIDGE_PORT"),
  ]);
}

function processor(): Finding {
  const [first] = cpus();
  const features = CPU_FEATURES.filter((feature) => cpuFlags().has(feature));
  const found = `${first?.model.trim() ?? "unknown"}, ${cpus().length} threads, ${features.join(" ") || "no known vector instructions"}`;
  return finding("processor", "ok", found);
}

function cpuFlags(): ReadonlySet<string> {
  try {
    return new Set(/^flags\s*:(.*)$/m.exec(readFileSync("/proc/cpuinfo", "utf8"))?.[1]?.trim().split(" "));
  } catch {
    // /proc/cpuinfo exists only on Linux.
    return new Set();
  }
}

function memory(): Finding {
  const found = `${gibibytes(totalmem())} in total, ${gibibytes(freemem())} free`;
  if (totalmem() >= MIN_MEMORY_BYTES) return finding("memory", "ok", found);
  const fix = "use only the built-in model: published models need at least 8 GiB";
  return finding("memory", "note", found, fix);
}

async function ffmpeg(): Promise<Finding> {
  const fix = `install it: apt-get install ffmpeg, brew install ffmpeg, or npm install ${STATIC_PACKAGE}`;
  try {
    const { program } = await findFfmpeg();
    const version = await output(program, ["-hide_banner", "-version"]);
    const encoders = await output(program, ["-hide_banner", "-encoders"]);
    const wanted = Object.values(AUDIO_PROFILES).map(({ ffmpeg }) => ffmpeg[ffmpeg.indexOf("-c:a") + 1]);
    const absent = wanted.filter((codec) => !new RegExp(`\\s${codec}\\s`).test(encoders));
    const found = version.split("\n", 1)[0] as string;
    if (absent.length === 0) return finding("ffmpeg", "ok", found);
    const lack = `${found}, without ${absent.join(" and ")}: some audio formats fail`;
    return finding("ffmpeg", "note", lack, fix);
  } catch (error) {
    return finding("ffmpeg", "bad", messageOf(error), fix);
  }
}

/** Access to the music service: address, key and host names. */
function callers(config: Config): Finding {
  const { apiHost, apiKey, isLocal, allowedHosts } = config;
  const what = "callers";
  try {
    requireKeyIfReachable(config);
  } catch (error) {
    return finding(what, "bad", messageOf(error), "set SVC_API_KEY: clients send it as Bearer");
  }
  const hasKey = apiKey.trim() !== "";
  const names = ["localhost", "127.0.0.1", ...allowedHosts].join(", ");
  const place = isLocal ? "programs on this machine" : `every machine that can reach ${apiHost}`;
  const condition = hasKey ? "with the key" : isLocal ? `under the names ${names}` : "without a key";
  const found = `${place}, ${condition}`;
  if (isLocal && CONTAINER_MARKS.some((path) => existsSync(path))) {
    const fix =
      "set SVC_API_HOST=0.0.0.0 and SVC_API_KEY, so that the host and other containers can reach it";
    return finding(what, "note", `${found}; only programs in this container can reach it`, fix);
  }
  if (!isLocal || hasKey || allowedHosts.length > 0) return finding(what, "ok", found);
  const fix =
    "for containers and proxies on this machine set SVC_ALLOWED_HOSTS=host.docker.internal, or the name they use, or SVC_API_KEY";
  return finding(what, "note", found, fix);
}

async function engineAndModels(config: Config): Promise<Finding[]> {
  const remarks: string[] = [];
  let engine: MusicEngine;
  try {
    checkPackages();
    engine = createEngine(config, (message) => remarks.push(message));
  } catch (error) {
    const { fault, advice } = error instanceof AdvisedError ? error : { fault: error };
    return [finding("native core", "bad", messageOf(fault), advice)];
  }
  try {
    const { libtorchVersion, cpuDtype } = engine.catalog.runtimeInfo();
    return [
      finding("native core", "ok", `libtorch ${libtorchVersion}, ${cpuDtype} on the CPU`),
      await devices(config, engine),
      ...remarks.map((found) => finding("native core", "note", found)),
      models(engine),
    ];
  } finally {
    await engine.close();
  }
}

async function devices(config: Config, engine: MusicEngine): Promise<Finding> {
  const { devices: known } = engine.catalog.runtimeInfo();
  const query = ["--query-gpu=name,driver_version,memory.used,memory.total", "--format=csv,noheader"];
  const installed = await output("nvidia-smi", query).catch(() => "");
  const usable = known.filter(({ name }) => name !== "cpu");
  try {
    checkDevices(config, engine.catalog.runtimeInfo());
  } catch (error) {
    return finding("GPU", "bad", messageOf(error), "set SVC_DEVICE=auto");
  }
  if (installed === "") {
    return finding("GPU", "ok", "none listed by nvidia-smi: songs are rendered on the CPU");
  }
  const found = installed.trim().split("\n").join("; ");
  if (usable.length > 0) return finding("GPU", "ok", found);
  const fix =
    "run npm run setup, or in an application npx carillon cuda install: it installs a libtorch for this driver, or says why it cannot";
  return finding("GPU", "note", `${found}, not usable by libtorch`, fix);
}

function models(engine: MusicEngine): Finding {
  const names = [...engine.catalog.models(), ...engine.catalog.languageModels()]
    .map(({ name }) => name)
    .join(", ");
  if (!engine.catalog.usesEmbeddedModel) return finding("models", "ok", names);
  const found = `${names}; the default model is missing or broken, so the built-in one is used`;
  return finding("models", "note", found, "npx carillon models pull acestep-v15-turbo");
}

async function disk(what: string, directory: string, variable: string): Promise<Finding> {
  try {
    await mkdir(directory, { recursive: true });
    await access(directory, constants.W_OK);
    const { bavail, bsize } = await statfs(directory);
    const found = `${gibibytes(bavail * bsize)} free in ${directory}`;
    if (bavail * bsize >= MIN_DISK_BYTES) return finding(what, "ok", found);
    return finding(what, "bad", found, `free some space, or set ${variable} to another disk`);
  } catch (error) {
    return finding(what, "bad", messageOf(error), `set ${variable} to a directory that you own`);
  }
}

async function port(what: string, number: number, host: string, variable: string): Promise<Finding> {
  if (number === 0) return finding(what, "ok", "any free port");
  const failure = await new Promise<NodeJS.ErrnoException | null>((resolve) => {
    const server = createServer();
    server.on("error", resolve);
    server.listen({ port: number, host }, () => server.close(() => resolve(null)));
  });
  if (failure === null) return finding(what, "ok", `${number} on ${host} is free`);
  if (failure.code === "EADDRINUSE") {
    if (await isOwnServer(number, host))
      return finding(what, "ok", `a running Carillon answers on ${number}`);
    const found = `${number} on ${host} is in use by another program`;
    return finding(what, "note", found, `stop the program that listens there, or set ${variable}`);
  }
  return finding(what, "bad", failure.message, `set ${variable} and its host to valid values`);
}

/** Whether a music service or a city of this package answers there. */
async function isOwnServer(port: number, host: string): Promise<boolean> {
  const address = host === "0.0.0.0" || host === "::" ? "127.0.0.1" : host;
  const url = `http://${address.includes(":") ? `[${address}]` : address}:${port}/health`;
  try {
    const limit = { ms: HEALTH_TIMEOUT_MS, error: () => new Error(`${url} does not answer`) };
    const text = await withTimeLimit(limit, async (signal) => (await fetch(url, { signal })).text());
    return /"service":"Carillon"|"mode":"(embedded|proxy)"/.test(text);
  } catch {
    // Another program may close the connection or never answer.
    return false;
  }
}

async function output(program: string, args: readonly string[]): Promise<string> {
  return (await promisify(execFile)(program, args, { timeout: 20_000 })).stdout;
}

function messageOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).split("\n", 1)[0] as string;
}

function gibibytes(bytes: number): string {
  return `${(bytes / GIB).toFixed(1)} GiB`;
}
