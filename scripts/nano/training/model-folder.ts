/** The folder that training reads: config.json files in the original layout, and tokenizers. */
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Tokenizer } from "../../../src/engine/tokenizer.js";
import { writeTokenizer } from "../tokenizer/files.js";
import { audioCodeCount, type ModelSize } from "./model-size.js";

const tokenizerFiles = ["tokenizer.json", "tokenizer_config.json"];

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
}

function mergesOf(tokenizerDirectory: string): [string, string][] {
  const document = JSON.parse(readFileSync(join(tokenizerDirectory, "tokenizer.json"), "utf8")) as {
    model: { merges: [string, string][] };
  };
  return document.model.merges;
}

function writeConfig(directory: string, config: object): void {
  writeFileSync(join(directory, "config.json"), `${JSON.stringify(config, null, 2)}\n`);
}

function vaeConfig({ vae }: ModelSize): object {
  return {
    _class_name: "AutoencoderOobleck",
    // Its last convolution has this width too: mean and scale of every latent channel.
    encoder_hidden_size: 2 * vae.latentChannels,
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
