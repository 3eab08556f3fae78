/** `carillon doctor`: what is here of all that a server needs, and the one line that mends what is not. */
import { execFile } from "node:child_process";
import { constants, readFileSync } from "node:fs";
import { access, mkdir, statfs } from "node:fs/promises";
import { createServer } from "node:net";
import { cpus, freemem, totalmem } from "node:os";
import { promisify } from "node:util";
import { checkPackages } from "./engine/prebuilt.js";
import {
  type Config,
  ConfigError,
  createEngine,
  EngineError,
  loadConfig,
  type MusicEngine,
} from "./index.js";
import { AUDIO_PROFILES, type AudioProfile } from "./music/audio/encode.js";
import { findFfmpeg, STATIC_PACKAGE } from "./music/audio/ffmpeg.js";
import { checkCitySettings, checkDevices, checkMusicSettings } from "./start-checks.js";

/** "bad": the server does not start, or fails at its work; "note": it works, and could do better. */
export interface Finding {
  what: string;
  state: "ok" | "note" | "bad";
  found: string;
  /** One line; absent where all is well. */
  fix?: string;
}

const GIB = 2 ** 30;
/** What a song and its task take, many times over. */
const MIN_DISK_BYTES = GIB;
const MIN_MEMORY_BYTES = 4 * GIB;
/** Instructions that the kernels have versions for, the slowest first. */
const CPU_FEATURES = ["avx2", "avx512f", "avx512_bf16", "amx_bf16"];
const SIGNS: Readonly<Record<Finding["state"], string>> = { ok: "ok  ", note: "note", bad: "BAD " };

/** Prints what was found. @returns whether nothing is bad */
export async function doctor(environment: NodeJS.ProcessEnv = process.env): Promise<boolean> {
  const findings: Finding[] = [];
  for await (const finding of examine(environment)) {
    findings.push(finding);
    const { what, state, found, fix } = finding;
    console.log(`${SIGNS[state]} ${what}: ${found}`);
    if (fix !== undefined) console.log(`     -> ${fix}`);
  }
  const count = findings.filter(({ state }) => state === "bad").length;
  console.log(count === 0 ? "Nothing is in the way." : `${count} of ${findings.length} are in the way.`);
  return count === 0;
}

/** One thing after the other: what takes long is told when it is known. */
async function* examine(environment: NodeJS.ProcessEnv): AsyncGenerator<Finding> {
  yield processor();
  yield memory();
  yield* await ffmpeg();
  let config: Config;
  try {
    config = loadConfig(environment);
    await checkMusicSettings(config);
    await checkCitySettings(config);
    yield { what: "settings", state: "ok", found: "every one can be read" };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    yield {
      what: "settings",
      state: "bad",
      found: error.message,
      fix: `set ${error.variable} anew, or unset it`,
    };
    return;
  }
  yield* await engineAndModels(config);
  yield* await Promise.all([
    disk("songs and tasks", config.temporaryDirectory, "SVC_TMPDIR"),
    disk("checkpoints", config.checkpointsDirectory, "SVC_CHECKPOINTS"),
  ]);
  yield* await Promise.all([
    port("port of the music", config.apiPort, config.apiHost, "SVC_API_PORT"),
    port("port of the city", config.cityPort, "127.0.0.1", "CITY_BRIDGE_PORT"),
  ]);
}

function processor(): Finding {
  const [first] = cpus();
  const features = CPU_FEATURES.filter((feature) => cpuFlags().has(feature));
  const found = `${first?.model.trim() ?? "unknown"}, ${cpus().length} threads, ${features.join(" ") || "no vector instructions known"}`;
  return { what: "processor", state: "ok", found };
}

function cpuFlags(): ReadonlySet<string> {
  try {
    return new Set(/^flags\s*:(.*)$/m.exec(readFileSync("/proc/cpuinfo", "utf8"))?.[1]?.trim().split(" "));
  } catch {
    // Only Linux tells there.
    return new Set();
  }
}

function memory(): Finding {
  const found = `${gibibytes(totalmem())} in all, ${gibibytes(freemem())} free`;
  if (totalmem() >= MIN_MEMORY_BYTES) return { what: "memory", state: "ok", found };
  const fix = "use the embedded model alone: published ones need 8 GiB and more";
  return { what: "memory", state: "note", found, fix };
}

async function ffmpeg(): Promise<Finding[]> {
  const fix = `install it: apt-get install ffmpeg, brew install ffmpeg, or npm install ${STATIC_PACKAGE}`;
  try {
    const { program } = await findFfmpeg();
    const version = await output(program, ["-hide_banner", "-version"]);
    const encoders = await output(program, ["-hide_banner", "-encoders"]);
    const wanted = Object.values(AUDIO_PROFILES).flatMap(codecOf);
    const absent = wanted.filter((codec) => !new RegExp(`\\s${codec}\\s`).test(encoders));
    const found = version.split("\n", 1)[0] as string;
    if (absent.length === 0) return [{ what: "ffmpeg", state: "ok", found }];
    const lack = `${found}, without ${absent.join(" and ")}: some audio formats fail`;
    return [{ what: "ffmpeg", state: "note", found: lack, fix }];
  } catch (error) {
    return [
      { what: "ffmpeg", state: "bad", found: `${messageOf(error)}: wav alone is written, none is read`, fix },
    ];
  }
}

/** None for a format that needs no ffmpeg. */
function codecOf({ writer }: AudioProfile): string[] {
  return typeof writer === "string" ? [] : [writer[writer.indexOf("-c:a") + 1] as string];
}

async function engineAndModels(config: Config): Promise<Finding[]> {
  const remarks: string[] = [];
  let engine: MusicEngine;
  try {
    checkPackages();
    engine = createEngine(config, (message) => remarks.push(message));
  } catch (error) {
    const { fault, advice } = error instanceof EngineError ? error : { fault: error };
    return [{ what: "native core", state: "bad", found: messageOf(fault), ...(advice && { fix: advice }) }];
  }
  try {
    const { libtorchVersion, cpuDtype } = engine.runtimeInfo();
    return [
      {
        what: "native core",
        state: "ok",
        found: `libtorch ${libtorchVersion}, ${cpuDtype} on the processor`,
      },
      ...(await devices(config, engine)),
      ...remarks.map((found): Finding => ({ what: "native core", state: "note", found })),
      models(engine),
    ];
  } finally {
    await engine.close();
  }
}

async function devices(config: Config, engine: MusicEngine): Promise<Finding[]> {
  const { devices: known } = engine.runtimeInfo();
  const query = ["--query-gpu=name,driver_version,memory.used,memory.total", "--format=csv,noheader"];
  const installed = await output("nvidia-smi", query).catch(() => "");
  const usable = known.filter(({ name }) => name !== "cpu");
  try {
    checkDevices(config, engine.runtimeInfo());
  } catch (error) {
    return [{ what: "GPU", state: "bad", found: messageOf(error), fix: "set SVC_DEVICE=auto" }];
  }
  if (installed === "") {
    const found = "none that nvidia-smi tells of: songs are rendered on the processor";
    return [{ what: "GPU", state: "ok", found }];
  }
  const found = installed.trim().split("\n").join("; ");
  if (usable.length > 0) return [{ what: "GPU", state: "ok", found }];
  const fix =
    "npm run setup, in an application npx carillon cuda install: it takes a libtorch for this driver, or says why there is none";
  return [{ what: "GPU", state: "note", found: `${found}, which libtorch cannot use`, fix }];
}

function models(engine: MusicEngine): Finding {
  const names = [...engine.models(), ...engine.languageModels()].map(({ name }) => name).join(", ");
  if (!engine.usesEmbeddedModel) return { what: "models", state: "ok", found: names };
  const found = `${names}; the small embedded model stands in for a published one`;
  return { what: "models", state: "note", found, fix: "npx carillon models pull acestep-v15-turbo" };
}

async function disk(what: string, directory: string, variable: string): Promise<Finding> {
  try {
    await mkdir(directory, { recursive: true });
    await access(directory, constants.W_OK);
    const { bavail, bsize } = await statfs(directory);
    const found = `${gibibytes(bavail * bsize)} free in ${directory}`;
    if (bavail * bsize >= MIN_DISK_BYTES) return { what, state: "ok", found };
    return { what, state: "bad", found, fix: `free some of it, or set ${variable} to another disk` };
  } catch (error) {
    return { what, state: "bad", found: messageOf(error), fix: `set ${variable} to a directory of yours` };
  }
}

async function port(what: string, number: number, host: string, variable: string): Promise<Finding> {
  if (number === 0) return { what, state: "ok", found: "any that is free" };
  const failure = await new Promise<NodeJS.ErrnoException | null>((resolve) => {
    const server = createServer();
    server.on("error", resolve);
    server.listen({ port: number, host }, () => server.close(() => resolve(null)));
  });
  if (failure === null) return { what, state: "ok", found: `${number} of ${host} is free` };
  if (failure.code === "EADDRINUSE") {
    const found = `${number} of ${host} is taken, perhaps by a server of yours`;
    return { what, state: "note", found, fix: `stop what listens there, or set ${variable}` };
  }
  return { what, state: "bad", found: failure.message, fix: `set ${variable} and its host anew` };
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
