/** Derives config.json from tensor shapes, for weight files that come without one. */

/** Shape of a tensor by its name in the model. @throws Error if there is no such tensor */
type ShapeOf = (name: string) => readonly number[];

export interface TensorShapes {
  names: readonly string[];
  shape: ShapeOf;
}

export type ModelConfig = Record<string, unknown>;

/** Config values that tensor shapes do not determine. All published models have the same. */
const SAMPLING_RATE = 48_000;
const FSQ_LEVELS: Readonly<Record<number, number[]>> = { 6: [8, 8, 8, 5, 5, 5] };
const LAST_LAYER = /^layers\.(\d+)\./;

/** @throws Error naming the tensor that is missing or has an invalid shape */
export function ditConfig(model: TensorShapes, name: string): ModelConfig {
  const { shape } = model;
  const at = (tensor: string, index: number) => dimension(shape, tensor, index);
  const attention = attentionOf(model, "decoder.layers.0.self_attn.");
  const encoder = attentionOf(model, "encoder.lyric_encoder.layers.0.self_attn.");
  const hiddenSize = at("decoder.scale_shift_table", 2);
  const encoderSize = at("encoder.text_projector.weight", 0);
  const codeDimensions = at("tokenizer.quantizer.project_in.weight", 0);
  const levels = FSQ_LEVELS[codeDimensions];
  return {
    model_type: "acestep",
    // Turbo and base models have the same tensors, so the file's name decides.
    is_turbo: /turbo/i.test(name) && !/sft|base/i.test(name),
    hidden_size: hiddenSize,
    intermediate_size: at("decoder.layers.0.mlp.gate_proj.weight", 0),
    num_hidden_layers: layersBelow(model, "decoder."),
    ...attention,
    // Published configs have encoder sizes only if the encoders are narrower than the decoder.
    ...(encoderSize === hiddenSize
      ? {}
      : {
          encoder_hidden_size: encoderSize,
          encoder_intermediate_size: at("encoder.lyric_encoder.layers.0.mlp.gate_proj.weight", 0),
          encoder_num_attention_heads: encoder.num_attention_heads,
          encoder_num_key_value_heads: encoder.num_key_value_heads,
        }),
    in_channels: at("decoder.proj_in.1.weight", 1),
    patch_size: at("decoder.proj_in.1.weight", 2),
    audio_acoustic_hidden_dim: at("decoder.proj_out.1.weight", 1),
    text_hidden_dim: at("encoder.text_projector.weight", 1),
    timbre_hidden_dim: at("encoder.timbre_encoder.embed_tokens.weight", 1),
    num_lyric_encoder_hidden_layers: layersBelow(model, "encoder.lyric_encoder."),
    num_timbre_encoder_hidden_layers: layersBelow(model, "encoder.timbre_encoder."),
    num_attention_pooler_hidden_layers: layersBelow(model, "tokenizer.attention_pooler."),
    pool_window_size: at("detokenizer.special_tokens", 1),
    fsq_dim: at("tokenizer.quantizer.project_in.weight", 1),
    ...(levels === undefined ? {} : { fsq_input_levels: levels }),
  };
}

/** Config of a text encoder or language model. @throws Error as `ditConfig` */
export function qwen3Config(model: TensorShapes): ModelConfig {
  const at = (tensor: string, index: number) => dimension(model.shape, tensor, index);
  return {
    model_type: "qwen3",
    vocab_size: at("embed_tokens.weight", 0),
    hidden_size: at("embed_tokens.weight", 1),
    intermediate_size: at("layers.0.mlp.gate_proj.weight", 0),
    num_hidden_layers: layersBelow(model, ""),
    ...attentionOf(model, "layers.0.self_attn."),
    attention_bias: model.names.includes("layers.0.self_attn.q_proj.bias"),
  };
}

/** Config of an Oobleck autoencoder with tensor names of stable-audio-tools or diffusers. @throws as `ditConfig` */
export function vaeConfig({ names, shape }: TensorShapes): ModelConfig {
  const convolution = (module: string): readonly number[] => {
    const spelling = [".weight_v", ".parametrizations.weight.original1", ".weight"].find((ending) =>
      names.includes(module + ending),
    );
    return shape(module + (spelling ?? ".weight"));
  };
  const isStableAudio = names.includes("decoder.layers.1.layers.0.alpha");
  const up = (index: number) =>
    isStableAudio ? `decoder.layers.${index + 1}.layers.1` : `decoder.block.${index}.conv_t1`;
  const [first, encoderFirst] = isStableAudio
    ? ["decoder.layers.0", "encoder.layers.0"]
    : ["decoder.conv1", "encoder.conv1"];
  const blocks: { in: number; out: number; ratio: number }[] = [];
  const has = (module: string) => names.some((name) => name.startsWith(`${module}.`));
  for (let index = 0; has(up(index)); index++) {
    const [input = 0, output = 0, kernel = 0] = convolution(up(index));
    blocks.push({ in: input, out: output, ratio: kernel / 2 });
  }
  const channels = blocks.at(-1)?.out ?? 0;
  // A config lists ratios in the order of the encoder, which is the reverse of the decoder's.
  const inOrder = blocks.reverse();
  return {
    sampling_rate: SAMPLING_RATE,
    audio_channels: convolution(encoderFirst as string)[1],
    encoder_hidden_size: convolution(encoderFirst as string)[0],
    decoder_channels: channels,
    decoder_input_channels: convolution(first as string)[1],
    downsampling_ratios: inOrder.map(({ ratio }) => ratio),
    channel_multiples: inOrder.map((block) => block.in / channels),
  };
}

function attentionOf({ shape }: TensorShapes, module: string) {
  const headDim = dimension(shape, `${module}q_norm.weight`, 0);
  const heads = (projection: string) => {
    const rows = dimension(shape, `${module}${projection}.weight`, 0);
    if (rows % headDim !== 0)
      throw new Error(`${module}${projection}.weight has ${rows} rows, not a multiple of ${headDim}`);
    return rows / headDim;
  };
  return { num_attention_heads: heads("q_proj"), num_key_value_heads: heads("k_proj"), head_dim: headDim };
}

function layersBelow({ names }: TensorShapes, prefix: string): number {
  const indices = names.flatMap((name) => {
    const found = name.startsWith(prefix) ? LAST_LAYER.exec(name.slice(prefix.length)) : null;
    return found === null ? [] : Number(found[1]);
  });
  return Math.max(-1, ...new Set(indices)) + 1;
}

function dimension(shape: ShapeOf, tensor: string, index: number): number {
  const extents = shape(tensor);
  const extent = extents[index];
  if (extent === undefined || extent < 1) throw new Error(`${tensor} has the shape [${extents.join(", ")}]`);
  return extent;
}
