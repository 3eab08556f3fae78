#!/usr/bin/env node
/** Command line. Commands import what they need when they run: most need neither city nor server. */
import { access, constants } from "node:fs/promises";
import { createRequire } from "node:module";
import { basename, dirname, extname, join, parse, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { Command, Option } from "commander";
import type { SongAdapter } from "../engine/types.js";
import {
  type Config,
  createEngine,
  createMusicServer,
  createWorker,
  loadConfig,
  type MusicServer,
  makeSongs,
  parseGenerationRequest,
} from "../index.js";
import { PUBLISHED_MODELS } from "../models/published.js";
import { AUDIO_FORMATS } from "../music/audio/formats.js";
import { TAG_POSITIONS } from "../music/dataset/data-set.js";
import type { GenerationRequest } from "../music/request/schema.js";
import { usesLmByDefault } from "../music/song/song-context.js";
import { isDirectory } from "../system/directory-lock.js";
import { createLogger, type Logger } from "../system/log.js";
import { type Service, serveUntilStopped } from "../system/service-process.js";
import type { PreprocessOptions } from "./preprocess.js";
import { ProgressDisplay } from "./progress-display.js";
import { checkCitySettings, checkDevices, checkMusicSettings } from "./start-checks.js";

interface ServeOptions {
  apiKey?: string;
  city?: boolean;
  cityPort?: string;
  home?: string;
  host?: string;
  music?: boolean;
  port?: string;
}

interface CityOptions {
  load?: string;
  port?: string;
  forParent?: boolean;
}

interface GenerateOptions {
  out: string;
  duration?: string;
  lyrics?: string;
  thinking?: boolean;
  seed?: string;
  steps?: string;
  model?: string;
  task?: string;
  source?: string;
  reference?: string;
  track?: string[];
  repaintStart?: string;
  repaintEnd?: string;
  repaintWindow?: string[];
  format?: string;
  mp3Bitrate?: string;
  sampleRate?: string;
  normalizationDb?: string;
  fadeIn?: string;
  fadeOut?: string;
  strength?: string;
  lora?: string[];
  loraScale?: string[];
}

/** Exit code of a program ended by SIGINT. */
const EXIT_INTERRUPTED = 130;

const { version } = createRequire(import.meta.url)("../../package.json") as { version: string };

const program = new Command("carillon")
  .description("Music generation server, and a bridge to a city-building game")
  .version(version);

program
  .command("serve")
  .description("serve music and the city over HTTP until stopped")
  .option("--music", "serve only music")
  .option("--city", "serve only the city")
  .option("--api-key <key>", "same as SVC_API_KEY")
  .option("--host <host>", "same as SVC_API_HOST")
  .option("--port <port>", "same as SVC_API_PORT; 0: any free port")
  .option("--city-port <port>", "same as CITY_BRIDGE_PORT; 0: any free port")
  .option("--home <directory>", "same as SVC_HOME; a second server on the machine needs its own")
  .action((options: ServeOptions) => serve(options));

for (const [role, does] of [
  ["gateway", "accepts tasks for the workers and answers clients; loads no model"],
  ["worker", "makes the songs that gateways accept"],
] as const) {
  program
    .command(role)
    .description(`serve as part of a fleet that shares tasks through SVC_REDIS_URL: ${does}`)
    .option("--host <host>", "same as SVC_API_HOST")
    .option("--port <port>", "same as SVC_API_PORT; 0: any free port")
    .option("--home <directory>", "same as SVC_HOME; a second server on the machine needs its own")
    .action((options: ServeOptions) => serve(options, role));
}

program
  .command("city")
  .description("serve only the city until stopped")
  .option("--load <file>", "load this save instead of the latest")
  .option("--port <port>", "same as CITY_BRIDGE_PORT")
  .addOption(new Option("--for-parent", "serve the process that forked this one").hideHelp())
  .action(serveCity);

program
  .command("mcp")
  .description(
    "give an agent the tools of the running city and music service (MCP on standard input and output)",
  )
  .action(async () => {
    const { serveStdio } = await import("../mcp/stdio.js");
    await serveStdio(loadConfig());
  });

program
  .command("generate")
  .description("make one song")
  .argument("<prompt>", "what it should sound like")
  .requiredOption("--out <file>", `output file; the extension selects the format`)
  .addOption(new Option("--format <name>", "format, overrides the extension").choices(AUDIO_FORMATS))
  .option("--mp3-bitrate <kbps>", "bit rate of an mp3 file, 256 by default")
  .option("--sample-rate <hertz>", "sample rate of the file, 48000 by default")
  .option("--normalization-db <dB>", "peak level of the song in dBFS, -1 by default")
  .option("--fade-in <seconds>", "length of the fade-in")
  .option("--fade-out <seconds>", "length of the fade-out")
  .option("--duration <seconds>", "length, 10 to 600")
  .option("--lyrics <text>", "lyrics; without them the song is instrumental")
  .option("--thinking", "let the language model plan the song first")
  .option("--seed <number>", "the same seed and settings make the same song")
  .option("--steps <count>", "denoising steps")
  .option("--model <name>", "a model listed by `carillon models`")
  .option("--task <type>", "text2music, cover, repaint, lego, extract or complete")
  .option("--source <file>", "input recording of the task; sets the length")
  .option("--reference <file>", "timbre reference")
  .option(
    "--track <names...>",
    "stems to extract, to add as separate files (lego) or to complete with, such as drums or vocals",
  )
  .option("--repaint-start <seconds>", "start of the region to regenerate; negative: before the source")
  .option("--repaint-end <seconds>", "end of the region; may exceed the source")
  .option("--repaint-window <start,end...>", "several regions to regenerate")
  .option("--strength <share>", "0 to 1: how closely a cover follows the source")
  .option("--lora <paths...>", "adapters to use: PEFT folders or .safetensors files")
  .option("--lora-scale <numbers...>", "adapter scales, one per adapter, -2 to 2 (default: 1)")
  .action(generate);

program
  .command("preprocess")
  .description("convert a folder of audio and captions into training samples for adapters")
  .argument("<directory>", "audio files, each with its caption in NAME.caption.txt")
  .requiredOption("--out <directory>", "output folder of the sample files")
  .option("--tag <word>", "trigger word for the trained style in a prompt", "")
  .addOption(
    new Option("--tag-position <position>", "position of the tag in captions")
      .choices(TAG_POSITIONS)
      .default("prepend"),
  )
  .option("--skip-existing", "keep existing sample files")
  .option("--model <name>", "a model listed by `carillon models`")
  .action(async (directory: string, options: PreprocessOptions & { model?: string }) => {
    const { preprocess } = await import("./preprocess.js");
    const config = loadConfig(environmentWith({ SVC_CONFIG_PATH: options.model }));
    await preprocess(directory, options, config, interruptSignal());
  });

program
  .command("doctor")
  .description("check the requirements of a server and show how to fix what is missing")
  .action(async () => {
    const { doctor } = await import("./doctor.js");
    if (!(await doctor())) process.exitCode = 1;
  });

const models = program.command("models").description("list models, or download one");

models
  .command("list", { isDefault: true })
  .description("list installed models, and public ones that are not installed")
  .action(listModels);

models
  .command("pull")
  .description("download a public model into SVC_CHECKPOINTS, resuming an interrupted download")
  .argument("<name>", "a model listed by `carillon models`, or owner/repository on the hub")
  .action(pull);

program
  .command("cuda")
  .description("libtorch for the GPU of this machine")
  .command("install")
  .description("install it into the cache (some gigabytes), with pip or without, if it is missing")
  .action(installCuda);

/** Prints progress on stderr and the new folders on stdout. */
async function pull(name: string): Promise<void> {
  const { Hub } = await import("../models/hub.js");
  const { inMegabytes, pullModel } = await import("../models/pull.js");
  const { checkpointsDirectory, hubUrl, hubToken } = loadConfig();
  const signal = interruptSignal();
  const hub = new Hub({ url: hubUrl, token: hubToken, signal });
  const display = new ProgressDisplay();
  try {
    const folders = await pullModel(name, checkpointsDirectory, hub, (progress) => {
      const { doneBytes, totalBytes, file, fileBytes } = progress;
      display.show({ value: doneBytes / totalBytes, stage: `${file} (${inMegabytes(fileBytes)})` });
    }).finally(() => display.stop());
    if (folders.length === 0) {
      console.error(`${name} is already in ${checkpointsDirectory}; remove its folder to download it again`);
    }
    for (const folder of folders) console.log(join(checkpointsDirectory, folder));
  } catch (error) {
    if (signal.aborted) console.error("the partial download is kept: run the same command again to resume");
    signal.throwIfAborted();
    throw error;
  }
}

async function installCuda(): Promise<void> {
  const { installCudaLibtorch } = await import("../libtorch/cuda-install.js");
  const display = new ProgressDisplay();
  const folder = await installCudaLibtorch(interruptSignal(), ({ doneBytes, totalBytes, wheel }) =>
    display.show({ value: doneBytes / totalBytes, stage: wheel }),
  ).finally(() => display.stop());
  console.log(folder);
}

/** @param role overrides SVC_ROLE */
async function serve(options: ServeOptions, role?: "gateway" | "worker"): Promise<void> {
  const environment = environmentWith({
    SVC_ROLE: role,
    SVC_API_KEY: options.apiKey,
    SVC_API_HOST: options.host,
    SVC_API_PORT: options.port,
    SVC_HOME: options.home,
    CITY_BRIDGE_PORT: options.cityPort,
  });
  const config = loadConfig(environment);
  process.umask(config.umask);
  const isAlone = config.role === "all";
  const servesMusic = !isAlone || options.music === true || options.city !== true;
  const servesCity = isAlone && (options.city === true || options.music !== true);
  if (servesMusic) await checkMusicSettings(config);
  if (servesCity) await checkCitySettings(config);
  const log = createLogger(config.logLevel);
  const start = async (add: (service: Service) => void, fail: (err: Error, what: string) => void) => {
    const onDeviceLost = (error: Error) =>
      fail(error, "the GPU failed, so the server stops; restart it to continue its tasks");
    const music = servesMusic ? addMusic(config, log, add, onDeviceLost) : null;
    if (servesCity) {
      const { startCityProcess } = await import("../city/process.js");
      const command = [fileURLToPath(import.meta.url), "city", "--for-parent"] as const;
      const city = await startCityProcess({ command, environment, log });
      add(city);
      console.log(`city on ${city.url}`);
    }
    if (music !== null) console.log(`${isAlone ? "music" : config.role} on ${await music.start()}`);
  };
  await serveUntilStopped(log, start, undefined, config.graceSeconds);
}

/** process.env, overridden by the given options. */
function environmentWith(given: Readonly<Record<string, string | undefined>>): NodeJS.ProcessEnv {
  return {
    ...process.env,
    ...Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)),
  };
}

/** Creates the engine immediately if the role needs one, so that it closes last; the server starts with `start`. */
function addMusic(
  config: Config,
  log: Logger,
  add: (service: Service) => void,
  onDeviceLost: (error: Error) => void,
) {
  const isGateway = config.role === "gateway";
  const engine = isGateway ? undefined : createEngine(config, (message) => log.info(message), onDeviceLost);
  let server: Pick<MusicServer, "url" | "close"> | undefined;
  add({
    close: async (graceSeconds) => {
      await server?.close(graceSeconds);
      await engine?.close();
    },
  });
  if (engine !== undefined) checkDevices(config, engine.runtimeInfo());
  const create = config.role === "worker" ? createWorker : createMusicServer;
  return {
    start: async (): Promise<string> => {
      server = await create({ config, log, ...(engine && { engine }) });
      return server.url;
    },
  };
}

async function serveCity({ load, port, forParent }: CityOptions): Promise<void> {
  const config = loadConfig(environmentWith({ CITY_BRIDGE_PORT: port }));
  process.umask(config.umask);
  const log = createLogger(config.logLevel);
  const { startCity } = await import("../city/index.js");
  const { serveParent } = await import("../city/process.js");
  if (forParent) return serveParent(() => startCity(config, log), log);
  await serveUntilStopped(log, async (add) => {
    const city = await startCity(config, log, { load });
    add(city);
    console.log(`city on ${city.url}`);
  });
}

async function generate(prompt: string, options: GenerateOptions): Promise<void> {
  const config = loadConfig(environmentWith({ SVC_CONFIG_PATH: options.model }));
  const path = resolve(options.out);
  await assertWritable(path);
  const engine = createEngine(config, (message) => console.error(message));
  const signal = interruptSignal();
  try {
    await engine.loadSlot(1, null, { signal });
    const request = parseGenerationRequest(parametersOf(prompt, options), engine);
    const display = new ProgressDisplay();
    const song = await makeSongs(engine, request, {
      destination: (index) => {
        const name = request.batchSize > 1 ? stemFile(options.out, request.trackClasses[index]) : options.out;
        return { name, path: resolve(name) };
      },
      maxSourceSeconds: config.sourceMaxSeconds,
      adapters: songAdaptersOf(request),
      usesLmByDefault: usesLmByDefault(
        config.initLanguageModel,
        config.languageModelDevice,
        engine.runtimeInfo(),
      ),
      signal,
      onProgress: (progress) => display.show(progress),
    }).finally(() => display.stop());
    for (const warning of song.warnings) console.error(`warning: ${warning}`);
    console.error(`seed ${song.seeds.join(",")}, ${song.metas.duration} s, ${song.ditModel}`);
    for (const { name } of song.audioFiles) console.log(name);
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  } finally {
    await engine.close();
  }
}

/** File of one stem of several: song-drums.wav for song.wav. */
function stemFile(out: string, stem = ""): string {
  const { dir, name, ext } = parse(out);
  return join(dir, `${name}-${stem.replace(/\W+/g, "_")}${ext}`);
}

/** Converts the options to parameters of POST /release_task. */
function parametersOf(prompt: string, options: GenerateOptions): Record<string, unknown> {
  return {
    prompt,
    lyrics: options.lyrics,
    thinking: options.thinking ?? false,
    audio_duration: options.duration,
    inference_steps: options.steps,
    use_random_seed: options.seed === undefined,
    seed: options.seed,
    batch_size: 1,
    audio_format: options.format ?? (extname(options.out).slice(1) || "mp3"),
    mp3_bitrate: options.mp3Bitrate,
    sample_rate: options.sampleRate,
    normalization_db: options.normalizationDb,
    fade_in: options.fadeIn,
    fade_out: options.fadeOut,
    task_type: options.task,
    src_audio_path: options.source,
    reference_audio_path: options.reference,
    track_classes: options.track,
    repainting_start: options.repaintStart,
    repainting_end: options.repaintEnd,
    repainting_windows: options.repaintWindow,
    audio_cover_strength: options.strength,
    loras: options.lora?.map((path, index) => ({ path: resolve(path), scale: options.loraScale?.[index] })),
  };
}

function songAdaptersOf({ loras }: GenerationRequest): SongAdapter[] | undefined {
  return loras?.map(({ path, scale, doraEpsilon }) => {
    const file = path as string;
    return { name: basename(file), path: file, digest: file, scale, doraEpsilon };
  });
}

/** Aborts on SIGINT. */
function interruptSignal(): AbortSignal {
  const interrupted = new AbortController();
  process.once("SIGINT", () => {
    process.exitCode = EXIT_INTERRUPTED;
    interrupted.abort(new Error("interrupted"));
  });
  return interrupted.signal;
}

/** Checks this before minutes are spent on the song. */
async function assertWritable(path: string): Promise<void> {
  if (await isDirectory(path)) throw new Error(`${path} is a directory; --out must be a file`);
  await access(dirname(path), constants.W_OK).catch((error: Error) => {
    throw new Error(`${dirname(path)} is not writable: ${error.message}`, { cause: error });
  });
}

async function listModels(): Promise<void> {
  const engine = createEngine(loadConfig());
  for (const { name, isDefault } of engine.models()) console.log(isDefault ? `${name} (default)` : name);
  for (const { name } of engine.languageModels()) console.log(`${name} (language model)`);
  const installed = [...engine.models(), ...engine.languageModels()].map(({ name }) => name);
  for (const name of PUBLISHED_MODELS.filter((name) => !installed.includes(name))) {
    console.log(`${name} (not installed)`);
  }
  await engine.close();
}

program.parseAsync().catch((error: unknown) => {
  console.error(`carillon: ${error instanceof Error ? error.message : error}`);
  process.exitCode ??= 1;
});
