/** Writes adapters for the built-in model in the formats of PEFT and LyCORIS. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Checkpoints } from "../../src/engine/checkpoints.js";

export interface Tensor {
  shape: readonly number[];
  values: Float32Array;
}

/** An attention projection of the DiT, such as `layers.0.self_attn.q_proj`, with shape [out, in]. */
export interface Projection {
  name: string;
  out: number;
  in: number;
}

/** The attention projections of carillon-nano. */
export function attentionProjections(): Projection[] {
  const { path: directory } = new Checkpoints("").renderer("carillon-nano").model;
  const file = readFileSync(join(directory, "model.safetensors"));
  const header = JSON.parse(file.toString("utf8", 8, 8 + Number(file.readBigUInt64LE()))) as Record<
    string,
    { shape: number[] }
  >;
  return Object.entries(header).flatMap(([key, { shape }]) => {
    const name = /^decoder\.(layers\.\d+\.(?:self|cross)_attn\.[qkvo]_proj)\.weight$/.exec(key)?.[1];
    return name === undefined ? [] : [{ name, out: shape[0] as number, in: shape[1] as number }];
  });
}

/** Values around 0 that depend only on `seed`. */
export function pseudoRandomTensor(shape: readonly number[], seed: number, size = 0.3): Tensor {
  const count = shape.reduce((product, extent) => product * extent, 1);
  return {
    shape,
    values: Float32Array.from({ length: count }, (_, i) => size * Math.sin(i * 12.9898 + seed)),
  };
}

function ones(shape: readonly number[]): Tensor {
  const count = shape.reduce((product, extent) => product * extent, 1);
  return { shape, values: new Float32Array(count).fill(1) };
}

export function writeSafetensors(
  path: string,
  tensors: Readonly<Record<string, Tensor>>,
  metadata: Record<string, string> = {},
): void {
  let end = 0;
  const entries = Object.entries(tensors).map(([name, { shape, values }]) => {
    const begin = end;
    end += values.byteLength;
    return [name, { dtype: "F32", shape, data_offsets: [begin, end] }];
  });
  const header = Buffer.from(JSON.stringify({ __metadata__: metadata, ...Object.fromEntries(entries) }));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(header.length));
  const data = Object.values(tensors).map(({ values }) => Buffer.from(values.buffer));
  writeFileSync(path, Buffer.concat([length, header, ...data]));
}

/**
 * Writes a PEFT folder with a LoRA of rank 4.
 * @param inputs input width of the projections; 0 uses the width that the model has
 * @param dora whether to add DoRA magnitudes, all 1
 */
export function writeLora(folder: string, { seed = 1, inputs = 0, dora = false, alpha = 8 } = {}): string {
  mkdirSync(folder, { recursive: true });
  const tensors = attentionProjections().flatMap(({ name, out, in: own }) => [
    [`base_model.model.${name}.lora_A.weight`, pseudoRandomTensor([4, inputs || own], seed)],
    [`base_model.model.${name}.lora_B.weight`, pseudoRandomTensor([out, 4], seed + 1)],
    ...(dora ? [[`base_model.model.${name}.lora_magnitude_vector`, ones([out])]] : []),
  ]);
  writeSafetensors(join(folder, "adapter_model.safetensors"), Object.fromEntries(tensors));
  const config = { peft_type: "LORA", r: 4, lora_alpha: alpha, target_modules: ["q_proj"], use_dora: dora };
  writeFileSync(join(folder, "adapter_config.json"), JSON.stringify(config));
  return folder;
}

/**
 * Writes a LyCORIS LoKr file with undecomposed factors.
 * @param dora whether to add DoRA magnitudes, all 1
 */
export function writeLokr(path: string, { seed = 1, dora = false } = {}): string {
  const tensors = attentionProjections().flatMap(({ name, out, in: inputs }) => {
    const prefix = `lycoris_${name.replaceAll(".", "_")}`;
    return [
      [`${prefix}.alpha`, { shape: [], values: new Float32Array([64]) }],
      [`${prefix}.lokr_w1`, pseudoRandomTensor([2, 2], seed)],
      [`${prefix}.lokr_w2`, pseudoRandomTensor([out / 2, inputs / 2], seed + 1)],
      ...(dora ? [[`${prefix}.dora_scale`, ones([out, 1])]] : []),
    ];
  });
  const config = JSON.stringify({ linear_dim: 64, linear_alpha: 128, factor: 2 });
  const metadata = { algo: "lokr", format: "lycoris", lokr_config: config };
  writeSafetensors(path, Object.fromEntries(tensors), metadata);
  return path;
}
