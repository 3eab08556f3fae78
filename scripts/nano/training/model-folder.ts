/** The model to train: its sizes, and the folder that training reads, with config.json files in the original layout. */
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { unconditionalCodesPrompt } from "../../../src/engine/prompts.js";
import { Tokenizer } from "../../../src/engine/tokenizer.js";
import { writeTokenizer } from "../tokenizer/files.js";

export const tokenizerFiles = ["tokenizer.json", "tokenizer_config.json"];

/** How large the model is: everything else in its config.json files follows from this. */
interface ModelSize {
  vae: {
    latentChannels: number;
    decoderChannels: number;
    downsamplingRatios: number[];
    channelMultiples: number[];
  };
  dit: TransformerSize & { slidingWindow: number; patchFrames: number };
  encoders: { lyricLayers: number; timbreLayers: number; timbreFrames: number; tokenizerLayers: number };
  /** Levels of the audio tokenizer's quantiser; their product is the number of audio codes. */
  quantiserLevels: number[];
  textEncoder: TransformerSize;
  languageModel: TransformerSize;
  /** What every stage of training takes at a step, where it is not the defaults of train.py. */
  stages: Partial<Record<StageName, StageSettings>>;
}

type StageName = "decoder" | "tokenizer" | "words" | "dit" | "guidance" | "lm";

interface StageSettings {
  /** Of a whole run on two cores: --hours are shared in these proportions. */
  hours?: number;
  /** Items of a step. */
  batch: number;
  /** Length of an item, of audio or of latents. */
  cropSeconds?: number;
  learningRate?: number;
  warmupSteps?: number;
}

interface TransformerSize {
  width: number;
  innerWidth: number;
  layers: number;
  heads: number;
  keyValueHeads: number;
  headWidth: number;
  ropeTheta: number;
}

/** Of the text encoder and the language model, which differ in depth. */
const nanoQwen3 = {
  ...{ width: 192, innerWidth: 512, heads: 4, keyValueHeads: 2, headWidth: 48 },
  ropeTheta: 10000,
};
const smokeQwen3: TransformerSize = {
  ...{ width: 16, innerWidth: 24, layers: 1, heads: 2, keyValueHeads: 1, headWidth: 8 },
  ropeTheta: 10000,
};

/** The decoder has 1.5 million weights, 3 MB in bfloat16; the silent units at 48 kHz are among them. */
const nano: ModelSize = {
  vae: {
    latentChannels: 100,
    // Fewer at 4800 Hz and at 48 kHz, where nearly all of the work is.
    decoderChannels: 32,
    downsamplingRatios: [10, 8, 6, 4],
    channelMultiples: [2, 3, 3, 3],
  },
  dit: {
    ...{ width: 256, innerWidth: 768, layers: 6, heads: 8, keyValueHeads: 4, headWidth: 32 },
    // Periods of 6 to 300 patches: beats and bars of any tempo fall between rotations that are close to each other.
    ropeTheta: 50,
    slidingWindow: 128,
    patchFrames: 2,
  },
  encoders: { lyricLayers: 1, timbreLayers: 1, timbreFrames: 250, tokenizerLayers: 1 },
  quantiserLevels: [8, 8, 8, 8],
  textEncoder: { ...nanoQwen3, layers: 2 },
  languageModel: { ...nanoQwen3, layers: 5 },
  stages: {
    decoder: { hours: 20, batch: 3, cropSeconds: 1.28, learningRate: 3e-4 },
    tokenizer: { hours: 2, batch: 16, cropSeconds: 4, learningRate: 1.5e-3 },
    words: { hours: 2, batch: 48, learningRate: 3e-3 },
    dit: { hours: 16, batch: 10, cropSeconds: 20, learningRate: 2e-3 },
    guidance: { hours: 4, batch: 10, cropSeconds: 20, learningRate: 2e-3 },
    lm: { hours: 8, batch: 12, learningRate: 8e-4 },
  },
};

/** As small as the architecture allows: shows that the recipe works, and nothing else. */
const smoke: ModelSize = {
  vae: {
    latentChannels: 4,
    decoderChannels: 4,
    downsamplingRatios: [8, 4, 6, 10],
    channelMultiples: [1, 2, 2, 2],
  },
  dit: {
    ...{ width: 32, innerWidth: 48, layers: 2, heads: 2, keyValueHeads: 1, headWidth: 16, ropeTheta: 50 },
    slidingWindow: 16,
    patchFrames: 2,
  },
  encoders: { lyricLayers: 1, timbreLayers: 1, timbreFrames: 25, tokenizerLayers: 1 },
  quantiserLevels: [4, 4, 4],
  textEncoder: smokeQwen3,
  languageModel: smokeQwen3,
  stages: {
    decoder: { batch: 2, cropSeconds: 0.16 },
    tokenizer: { batch: 2, cropSeconds: 1 },
    words: { batch: 2 },
    dit: { batch: 2, cropSeconds: 6 },
    guidance: { batch: 2, cropSeconds: 6 },
    lm: { batch: 2 },
  },
};

export const modelSizes = { nano, smoke };
export type ModelSizeName = keyof typeof modelSizes;

function audioCodeCount({ quantiserLevels }: ModelSize): number {
  return quantiserLevels.reduce((product, levels) => product * levels, 1);
}

/**
 * Writes it anew.
 * @param tokenizerDirectory the tokenizer that the data set's ids are of
 */
export async function writeModelFolder(
  directory: string,
  size: ModelSize,
  tokenizerDirectory: string,
): Promise<void> {
  const place = (part: string): string => {
    mkdirSync(join(directory, part), { recursive: true });
    return join(directory, part);
  };
  const textEncoder = place("text_encoder");
  for (const file of tokenizerFiles) copyFileSync(join(tokenizerDirectory, file), join(textEncoder, file));
  const languageModel = place("lm");
  writeTokenizer(languageModel, mergesOf(tokenizerDirectory), audioCodeCount(size));
  const vocabularyOf = async (part: string): Promise<number> => (await Tokenizer.load(part)).size;
  writeConfig(textEncoder, qwen3Config(size.textEncoder, await vocabularyOf(textEncoder), "Qwen3Model"));
  writeConfig(languageModel, {
    ...qwen3Config(size.languageModel, await vocabularyOf(languageModel), "Qwen3ForCausalLM"),
    // It plans metadata and codes; what it writes out is no language.
    writes_text: false,
  });
  writeConfig(place("vae"), vaeConfig(size));
  writeConfig(place("."), ditConfig(size));
  // The other side of guidance, which some items of the language model have.
  const unconditional = await (await Tokenizer.load(languageModel)).encode(unconditionalCodesPrompt(""));
  writeJson(join(directory, "training.json"), {
    stages: size.stages,
    unconditionalPrompt: [...unconditional],
  });
}

function mergesOf(tokenizerDirectory: string): [string, string][] {
  const document = JSON.parse(readFileSync(join(tokenizerDirectory, "tokenizer.json"), "utf8")) as {
    model: { merges: [string, string][] };
  };
  return document.model.merges;
}

function writeConfig(directory: string, config: object): void {
  writeJson(join(directory, "config.json"), config);
}

function writeJson(path: string, value: object): void {
  writeFileSync(path, `${JSON.stringify(value, null, 2)}\n`);
}

function vaeConfig({ vae }: ModelSize): object {
  return {
    _class_name: "AutoencoderOobleck",
    decoder_channels: vae.decoderChannels,
    decoder_input_channels: vae.latentChannels,
    downsampling_ratios: vae.downsamplingRatios,
    channel_multiples: vae.channelMultiples,
    audio_channels: 2,
    sampling_rate: 48000,
  };
}

function qwen3Config(size: ModelSize["textEncoder"], vocabulary: number, architecture: string): object {
  return {
    model_type: "qwen3",
    architectures: [architecture],
    vocab_size: vocabulary,
    ...transformerConfig(size),
    max_position_embeddings: 8192,
    tie_word_embeddings: true,
    hidden_act: "silu",
    torch_dtype: "bfloat16",
  };
}

function transformerConfig(size: ModelSize["textEncoder"]): object {
  return {
    hidden_size: size.width,
    intermediate_size: size.innerWidth,
    num_hidden_layers: size.layers,
    num_attention_heads: size.heads,
    num_key_value_heads: size.keyValueHeads,
    head_dim: size.headWidth,
    rms_norm_eps: 1e-6,
    rope_theta: size.ropeTheta,
    attention_bias: false,
  };
}

function ditConfig(size: ModelSize): object {
  const { dit, encoders, vae } = size;
  return {
    model_type: "acestep",
    architectures: ["AceStepConditionGenerationModel"],
    model_version: "turbo",
    is_turbo: true,
    supported_tasks: ["text2music", "cover", "repaint", "lego", "extract", "complete"],
    ...transformerConfig(dit),
    in_channels: 3 * vae.latentChannels,
    audio_acoustic_hidden_dim: vae.latentChannels,
    patch_size: dit.patchFrames,
    use_sliding_window: true,
    sliding_window: dit.slidingWindow,
    layer_types: Array.from({ length: dit.layers }, (_, index) =>
      index % 2 === 0 ? "sliding_attention" : "full_attention",
    ),
    text_hidden_dim: size.textEncoder.width,
    timbre_hidden_dim: vae.latentChannels,
    timbre_fix_frame: encoders.timbreFrames,
    num_lyric_encoder_hidden_layers: encoders.lyricLayers,
    num_timbre_encoder_hidden_layers: encoders.timbreLayers,
    num_attention_pooler_hidden_layers: encoders.tokenizerLayers,
    pool_window_size: 5,
    fsq_dim: dit.width,
    fsq_input_levels: size.quantiserLevels,
    fsq_input_num_quantizers: 1,
    dtype: "bfloat16",
  };
}
