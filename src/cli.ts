#!/usr/bin/env node
/** The command line. What a command alone needs is loaded when it runs: most need neither city nor server. */
import { access, constants } from "node:fs/promises";
import { createRequire } from "node:module";
import { basename, dirname, extname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { Command, Option } from "commander";
import { isDirectory } from "./directory-lock.js";
import {
  type Config,
  createEngine,
  createMusicServer,
  createWorker,
  loadConfig,
  type MusicServer,
  makeSongs,
  parseGenerationRequest,
} from "./index.js";
import { createLogger, type Logger } from "./log.js";
import { PUBLISHED_MODELS } from "./models/published.js";
import { TAG_POSITIONS } from "./music/dataset/data-set.js";
import { plansUnasked } from "./music/song/job-context.js";
import type { PreprocessOptions } from "./preprocess.js";
import { ProgressDisplay } from "./progress-display.js";
import { type Service, serveUntilStopped } from "./service-process.js";
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
  strength?: string;
  lora?: string;
  loraScale?: string;
}

/** What shells expect of a program that SIGINT ended. */
const EXIT_INTERRUPTED = 130;

const { version } = createRequire(import.meta.url)("../package.json") as { version: string };

const program = new Command("carillon")
  .description("Music generation server, and a bridge to a city-building game")
  .version(version);

program
  .command("serve")
  .description("serve music and the city over HTTP until stopped")
  .option("--music", "serve music alone")
  .option("--city", "serve the city alone")
  .option("--api-key <key>", "same as SVC_API_KEY")
  .option("--host <host>", "same as SVC_API_HOST")
  .option("--port <port>", "same as SVC_API_PORT; 0 takes any free one")
  .option("--city-port <port>", "same as CITY_BRIDGE_PORT; 0 takes any free one")
  .option("--home <directory>", "same as SVC_HOME: a second server on the same machine needs one of its own")
  .action((options: ServeOptions) => serve(options));

for (const [role, does] of [
  ["gateway", "accepts tasks for the workers and answers clients; loads no model"],
  ["worker", "makes the songs that gateways accept"],
] as const) {
  program
    .command(role)
    .description(`serve a fleet that shares its tasks by SVC_REDIS_URL: ${does}`)
    .option("--host <host>", "same as SVC_API_HOST")
    .option("--port <port>", "same as SVC_API_PORT; 0 takes any free one")
    .option(
      "--home <directory>",
      "same as SVC_HOME: a second server on the same machine needs one of its own",
    )
    .action((options: ServeOptions) => serve(options, role));
}

program
  .command("city")
  .description("serve the city alone until stopped")
  .option("--load <file>", "go on with this saved city instead of the latest")
  .option("--port <port>", "same as CITY_BRIDGE_PORT")
  .addOption(new Option("--for-parent", "serve the process that forked this one").hideHelp())
  .action(serveCity);

program
  .command("generate")
  .description("make one song")
  .argument("<prompt>", "what it should sound like")
  .requiredOption("--out <file>", `where to write it; the extension chooses the format`)
  .option("--duration <seconds>", "length, 10 to 600")
  .option("--lyrics <text>", "words to sing; none makes it instrumental")
  .option("--thinking", "let the language model plan the song first")
  .option("--seed <number>", "the same seed and settings make the same song")
  .option("--steps <count>", "denoising steps")
  .option("--model <name>", "a model of `carillon models`")
  .option("--task <type>", "text2music, cover, repaint, lego, extract or complete")
  .option("--source <file>", "recording that the task works on; it sets the length")
  .option("--reference <file>", "recording whose timbre to take")
  .option(
    "--track <names...>",
    "stem to extract or to lay (lego), stems to complete with, as drums or vocals",
  )
  .option("--repaint-start <seconds>", "begin of what is generated anew, below 0 ahead of the source")
  .option("--repaint-end <seconds>", "its end, perhaps beyond the source's")
  .option("--strength <share>", "0 to 1: how far a cover follows the source")
  .option("--lora <path>", "adapter to render under: a PEFT folder or a .safetensors file")
  .option("--lora-scale <share>", "0 to 1: how strongly it acts", "1")
  .action(generate);

program
  .command("preprocess")
  .description("turn a folder of audio and captions into what adapters are trained on")
  .argument("<directory>", "audio, each file with its caption beside it in NAME.caption.txt")
  .requiredOption("--out <directory>", "where to write the sample files")
  .option("--tag <word>", "what is to call the trained style in a prompt", "")
  .addOption(
    new Option("--tag-position <position>", "where it stands in the captions")
      .choices(TAG_POSITIONS)
      .default("prepend"),
  )
  .option("--skip-existing", "leave sample files that are there already as they are")
  .option("--model <name>", "a model of `carillon models`")
  .action(async (directory: string, options: PreprocessOptions & { model?: string }) => {
    const { preprocess } = await import("./preprocess.js");
    const config = loadConfig(environmentWith({ SVC_CONFIG_PATH: options.model }));
    await preprocess(directory, options, config, interruptSignal());
  });

program
  .command("doctor")
  .description("look for all that a server needs, and say how to mend what is not there")
  .action(async () => {
    const { doctor } = await import("./doctor.js");
    if (!(await doctor())) process.exitCode = 1;
  });

const models = program.command("models").description("list models, or download one");

models
  .command("list", { isDefault: true })
  .description("list the models that are installed, and the public ones that are not")
  .action(listModels);

models
  .command("pull")
  .description("download a public model into SVC_CHECKPOINTS, or go on with it where it was interrupted")
  .argument("<name>", "a model of `carillon models`, or owner/repository on the hub")
  .action(pull);

program
  .command("cuda")
  .description("libtorch for the GPU of this machine")
  .command("install")
  .description("install it into the cache, by pip or without, some gigabytes, unless it is there")
  .action(installCuda);

/** Prints progress on stderr, the folders that are new on stdout. */
async function pull(name: string): Promise<void> {
  const { Hub } = await import("./models/hub.js");
  const { inMegabytes, pullModel } = await import("./models/pull.js");
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
      console.error(`${name} is in ${checkpointsDirectory} already; remove its folder to download it anew`);
    }
    for (const folder of folders) console.log(join(checkpointsDirectory, folder));
  } catch (error) {
    if (signal.aborted) console.error("what is downloaded stays: the same command goes on from there");
    signal.throwIfAborted();
    throw error;
  }
}

async function installCuda(): Promise<void> {
  const { installCudaLibtorch } = await import("./cuda-install.js");
  const display = new ProgressDisplay();
  const folder = await installCudaLibtorch(interruptSignal(), ({ doneBytes, totalBytes, wheel }) =>
    display.show({ value: doneBytes / totalBytes, stage: wheel }),
  ).finally(() => display.stop());
  console.log(folder);
}

/** @param role what the command says that the server does; absent: SVC_ROLE says it */
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
  const isAlone = config.role === "all";
  const servesMusic = !isAlone || options.music === true || options.city !== true;
  const servesCity = isAlone && (options.city === true || options.music !== true);
  if (servesMusic) await checkMusicSettings(config);
  if (servesCity) await checkCitySettings(config);
  const log = createLogger(config.logLevel);
  const start = async (add: (service: Service) => void, fail: (err: Error, what: string) => void) => {
    const onDeviceLost = (error: Error) =>
      fail(error, "the GPU failed, and so ends the server: started again, it goes on with its tasks");
    const music = servesMusic ? addMusic(config, log, add, onDeviceLost) : null;
    if (servesCity) {
      const { startCityProcess } = await import("./city/process.js");
      const command = [fileURLToPath(import.meta.url), "city", "--for-parent"] as const;
      const city = await startCityProcess({ command, environment, log });
      add(city);
      console.log(`city on ${city.url}`);
    }
    if (music !== null) console.log(`${isAlone ? "music" : config.role} on ${await music.start()}`);
  };
  await serveUntilStopped(log, start, undefined, config.graceSeconds);
}

/** The environment, with what options say in its place. */
function environmentWith(given: Readonly<Record<string, string | undefined>>): NodeJS.ProcessEnv {
  return {
    ...process.env,
    ...Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)),
  };
}

/** The engine, where the role needs one, exists at once, to be closed last; the server starts when told to. */
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
  const log = createLogger(config.logLevel);
  const { startCity } = await import("./city/index.js");
  const { serveParent } = await import("./city/process.js");
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
    if (options.lora !== undefined) {
      const path = resolve(options.lora);
      const source = { path, name: basename(path), doraEpsilon: "float32" } as const;
      const { active } = await engine.loadAdapter(source, { signal });
      await engine.scaleAdapter(active, Number(options.loraScale), { signal });
    }
    const request = parseGenerationRequest(parametersOf(prompt, options), engine);
    const display = new ProgressDisplay();
    const song = await makeSongs(engine, request, {
      destination: () => ({ name: options.out, path }),
      maxSourceSeconds: config.sourceMaxSeconds,
      plansUnasked: plansUnasked(config.initLanguageModel, config.languageModelDevice, engine.runtimeInfo()),
      signal,
      report: (progress) => display.show(progress),
    }).finally(() => display.stop());
    for (const warning of song.warnings) console.error(`warning: ${warning}`);
    console.error(`seed ${song.seeds.join(",")}, ${song.metas.duration} s, ${song.ditModel}`);
    console.log(options.out);
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  } finally {
    await engine.close();
  }
}

/** The options in the words of POST /release_task. */
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
    audio_format: extname(options.out).slice(1) || "mp3",
    task_type: options.task,
    src_audio_path: options.source,
    reference_audio_path: options.reference,
    track_name: options.track?.[0],
    track_classes: options.track,
    repainting_start: options.repaintStart,
    repainting_end: options.repaintEnd,
    audio_cover_strength: options.strength,
  };
}

/** Fires on SIGINT. */
function interruptSignal(): AbortSignal {
  const interrupted = new AbortController();
  process.once("SIGINT", () => {
    process.exitCode = EXIT_INTERRUPTED;
    interrupted.abort(new Error("interrupted"));
  });
  return interrupted.signal;
}

/** Before minutes are spent on a song that could not be kept. */
async function assertWritable(path: string): Promise<void> {
  if (await isDirectory(path)) throw new Error(`${path} is a directory; --out names a file`);
  await access(dirname(path), constants.W_OK).catch((error: Error) => {
    throw new Error(`${dirname(path)} cannot be written to: ${error.message}`, { cause: error });
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
