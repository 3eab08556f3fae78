/** `carillon generate`: makes one song. */
import { access, constants } from "node:fs/promises";
import { basename, dirname, extname, join, parse, resolve } from "node:path";
import { Command, Option } from "commander";
import { loadConfig } from "../config.js";
import { AUDIO_FORMATS } from "../music/audio/formats.js";
import { isDirectory } from "../system/directory-lock.js";
import { environmentWith, interruptSignal } from "./command.js";
import { ProgressDisplay } from "./progress-display.js";

interface GenerateOptions extends Readonly<Record<string, unknown>> {
  out: string;
  format?: string;
  model?: string;
  lora?: string[];
  loraScale?: string[];
}

/** Options that are parameters of POST /release_task. */
const PARAMETERS: Readonly<Record<string, Option>> = {
  mp3_bitrate: new Option("--mp3-bitrate <kbps>", "bit rate of an mp3 file, 256 by default"),
  sample_rate: new Option("--sample-rate <hertz>", "sample rate of the file, 48000 by default"),
  normalization_db: new Option("--normalization-db <dB>", "peak level of the song in dBFS, -1 by default"),
  loudness: new Option("--loudness <LUFS>", "integrated loudness of the song, such as -14"),
  fade_in: new Option("--fade-in <seconds>", "length of the fade-in"),
  fade_out: new Option(
    "--fade-out <seconds>",
    "length of the fade-out; without it, a song that still sounds at its end fades over half a second",
  ),
  audio_duration: new Option("--duration <seconds>", "length, 10 to 600"),
  lyrics: new Option("--lyrics <text>", "lyrics; without them the song is instrumental"),
  thinking: new Option("--thinking", "let the language model plan the song first"),
  seed: new Option("--seed <number>", "the same seed and settings make the same song"),
  inference_steps: new Option("--steps <count>", "denoising steps"),
  task_type: new Option("--task <type>", "text2music, cover, repaint, lego, extract or complete"),
  src_audio_path: new Option("--source <file>", "input recording of the task; sets the length"),
  reference_audio_path: new Option("--reference <file>", "timbre reference"),
  track_classes: new Option(
    "--track <names...>",
    "tracks such as drums or vocals: extracted from the source (extract), made as separate files (lego) or added to the source (complete)",
  ),
  repainting_start: new Option(
    "--repaint-start <seconds>",
    "start of the region to regenerate; negative: before the source",
  ),
  repainting_end: new Option("--repaint-end <seconds>", "end of the region; may exceed the source"),
  repainting_windows: new Option("--repaint-window <start,end...>", "several regions to regenerate"),
  audio_cover_strength: new Option("--strength <share>", "0 to 1: how closely a cover follows the source"),
};

export const generateCommand = new Command("generate")
  .description("make one song")
  .argument("<prompt>", "description of the music")
  .requiredOption("--out <file>", `output file; the extension selects the format`)
  .addOption(new Option("--format <name>", "format, overrides the extension").choices(AUDIO_FORMATS))
  .option("--model <name>", "a model listed by `carillon models`")
  .option("--lora <paths...>", "adapters to use: PEFT folders or .safetensors files")
  .option("--lora-scale <numbers...>", "adapter scales, one per adapter, -2 to 2 (default: 1)")
  .action(generate);

for (const option of Object.values(PARAMETERS)) generateCommand.addOption(option);

async function generate(prompt: string, options: GenerateOptions): Promise<void> {
  const { lora = [], loraScale = [] } = options;
  if (loraScale.length > lora.length) {
    throw new Error(`--lora-scale: ${loraScale.length} scales for ${lora.length} adapters of --lora`);
  }
  const { createEngine, makeSongs, parseGenerationRequest } = await import("../index.js");
  const { usesLmByDefault } = await import("../music/song/language-model.js");
  const config = loadConfig(environmentWith({ SVC_CONFIG_PATH: options.model }));
  const path = resolve(options.out);
  await assertWritable(path);
  const engine = createEngine(config, (message) => console.error(message));
  const signal = interruptSignal();
  try {
    await engine.loader.loadSlot(1, null, { signal });
    const request = parseGenerationRequest(parametersOf(prompt, options), engine);
    const { songs } = request;
    const display = new ProgressDisplay();
    const song = await makeSongs(engine, request, {
      destination: (index) => {
        const name = songs.length > 1 ? stemFile(options.out, songs[index]?.tracks[0]) : options.out;
        return { name, path: resolve(name) };
      },
      maxSourceSeconds: config.sourceMaxSeconds,
      adapters: request.loras?.map(({ path, scale, doraEpsilon }) => {
        const file = path as string;
        return { name: basename(file), path: file, digest: file, scale, doraEpsilon };
      }),
      usesLmByDefault: usesLmByDefault(
        config.initLanguageModel,
        config.languageModelDevice,
        engine.catalog.runtimeInfo(),
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

function parametersOf(prompt: string, options: GenerateOptions): Record<string, unknown> {
  const given = Object.entries(PARAMETERS).map(([name, option]) => [name, options[option.attributeName()]]);
  return {
    ...Object.fromEntries(given),
    prompt,
    use_random_seed: options.seed === undefined,
    batch_size: 1,
    audio_format: options.format ?? (extname(options.out).slice(1) || "mp3"),
    loras: options.lora?.map((path, index) => ({ path: resolve(path), scale: options.loraScale?.[index] })),
  };
}

/** Fails early if the output path is not writable. */
async function assertWritable(path: string): Promise<void> {
  if (await isDirectory(path)) throw new Error(`${path} is a directory; --out must be a file`);
  await access(dirname(path), constants.W_OK).catch((error: Error) => {
    throw new Error(`${dirname(path)} is not writable: ${error.message}`, { cause: error });
  });
}
