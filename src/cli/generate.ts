/** `carillon generate`: makes one song. */
import { access, constants } from "node:fs/promises";
import { basename, dirname, extname, join, parse, resolve } from "node:path";
import { Command, Option } from "commander";
import { loadConfig } from "../config.js";
import type { SongAdapter } from "../engine/types.js";
import { AUDIO_FORMATS } from "../music/audio/formats.js";
import type { GenerationRequest } from "../music/request/schema.js";
import { isDirectory } from "../system/directory-lock.js";
import { environmentWith, interruptSignal } from "./command.js";
import { ProgressDisplay } from "./progress-display.js";

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

export const generateCommand = new Command("generate")
  .description("make one song")
  .argument("<prompt>", "description of the music")
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
    "tracks such as drums or vocals: extracted from the source (extract), made as separate files (lego) or added to the source (complete)",
  )
  .option("--repaint-start <seconds>", "start of the region to regenerate; negative: before the source")
  .option("--repaint-end <seconds>", "end of the region; may exceed the source")
  .option("--repaint-window <start,end...>", "several regions to regenerate")
  .option("--strength <share>", "0 to 1: how closely a cover follows the source")
  .option("--lora <paths...>", "adapters to use: PEFT folders or .safetensors files")
  .option("--lora-scale <numbers...>", "adapter scales, one per adapter, -2 to 2 (default: 1)")
  .action(generate);

async function generate(prompt: string, options: GenerateOptions): Promise<void> {
  const { createEngine, makeSongs, parseGenerationRequest } = await import("../index.js");
  const { usesLmByDefault } = await import("../music/song/song-context.js");
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

/** Output file of one of several stems, such as song-drums.wav for `--out song.wav`. */
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

/** Fails early if the output path is not writable. */
async function assertWritable(path: string): Promise<void> {
  if (await isDirectory(path)) throw new Error(`${path} is a directory; --out must be a file`);
  await access(dirname(path), constants.W_OK).catch((error: Error) => {
    throw new Error(`${dirname(path)} is not writable: ${error.message}`, { cause: error });
  });
}
