/**
 * Exports a trained LoRA for other programs. diffusers and ComfyUI ignore the alpha in adapter_config.json.
 * Training sets alpha = 2 * rank by default, so these programs would apply a plain copy at half strength.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { type FloatTensor, readTensors, safetensorsChunks } from "../../engine/weight-file.js";
import { MAX_TEXT_BYTES, readRegular, readTextFile } from "../../system/regular-file.js";
import { RequestError } from "../errors.js";

export const WEIGHTS_NAME = "adapter_model.safetensors";
export const CONFIG_NAME = "adapter_config.json";
export const SINGLE_FILE_NAME = "comfy_lora.safetensors";

export interface PortableForm {
  /** Multiplies alpha / rank into lora_B and sets alpha to the rank, so that every program scales by 1. */
  foldAlpha: boolean;
  /** Writes one file in the format of ComfyUI. The file contains the alpha of each module as a tensor. */
  comfySingleFile: boolean;
}

interface Lora {
  config: Record<string, unknown>;
  rank: number;
  alpha: number;
  tensors: Map<string, FloatTensor>;
}

/** Maximum size of the weights file, because one Node buffer holds the whole file. */
const MAX_WEIGHTS_BYTES = 2 ** 32;
/** Metadata of the weights file, the same as PyTorch programs write. */
const METADATA = { format: "pt" };
const LORA_B = ".lora_B.weight";

const empty = z.strictObject({}).optional();
const off = z.literal(false).optional();

/** Accepts only options that all programs interpret in the same way: one rank and one alpha per adapter. */
const configSchema = z.object({
  r: z.int().positive(),
  lora_alpha: z.number(),
  rank_pattern: empty,
  alpha_pattern: empty,
  use_rslora: off,
  use_dora: off,
});

const weightsSchema = z.record(
  z.string().regex(/\.lora_[AB]\.weight$/),
  z.object({ dtype: z.literal("F32"), shape: z.tuple([z.int(), z.int()]) }),
);

/** @throws RequestError for a LoRA that was not written by this server's training */
export async function writePortableLora(
  source: string,
  target: string,
  { foldAlpha, comfySingleFile }: PortableForm,
): Promise<void> {
  const { config, rank, alpha, tensors } = await readLora(source);
  const shared = foldAlpha ? scaled(tensors, alpha / rank) : tensors;
  const sharedAlpha = foldAlpha ? rank : alpha;
  await mkdir(target, { recursive: true });
  if (comfySingleFile) {
    const all = new Map([...shared, ...alphasOf(shared, sharedAlpha)]);
    await writeFile(join(target, SINGLE_FILE_NAME), safetensorsChunks(all, METADATA));
    return;
  }
  const sharedConfig = { ...config, lora_alpha: sharedAlpha };
  await writeFile(join(target, WEIGHTS_NAME), safetensorsChunks(shared, METADATA));
  await writeFile(join(target, CONFIG_NAME), `${JSON.stringify(sharedConfig, null, 2)}\n`);
}

async function readLora(folder: string): Promise<Lora> {
  const config = parseJson(await readTextFile(join(folder, CONFIG_NAME), MAX_TEXT_BYTES), CONFIG_NAME);
  const { r: rank, lora_alpha: alpha } = parse(configSchema, config, CONFIG_NAME);
  const stored = readTensors(await readRegular(join(folder, WEIGHTS_NAME), MAX_WEIGHTS_BYTES)).tensors;
  parse(weightsSchema, Object.fromEntries(stored), WEIGHTS_NAME);
  const tensors = new Map<string, FloatTensor>();
  for (const [name, { shape, bytes }] of stored) {
    if (shape[name.endsWith(LORA_B) ? 1 : 0] !== rank) {
      throw new RequestError(`${WEIGHTS_NAME}: ${name} does not have the rank of ${CONFIG_NAME}, ${rank}`);
    }
    // Copies the bytes, because Float32Array needs an aligned offset.
    tensors.set(name, { shape, values: () => new Float32Array(new Uint8Array(bytes).buffer) });
  }
  return { config, rank, alpha, tensors };
}

/** Parses JSON. The message of `JSON.parse` is not shown to clients, because it quotes the file. */
// biome-ignore lint/suspicious/noExplicitAny: schemas validate the parsed value
function parseJson(text: string, fileName: string): any {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new RequestError(`${fileName} is not JSON`, { cause: error });
  }
}

function parse<T>(schema: z.ZodType<T>, value: unknown, fileName: string): T {
  const { data, error } = schema.safeParse(value);
  if (error === undefined) return data;
  const [issue] = error.issues;
  const what = `${issue?.path.join(".")}: ${issue?.message}`;
  throw new RequestError(
    `${fileName} was not written by this server's training and cannot be converted: ${what}`,
  );
}

function scaled(tensors: Map<string, FloatTensor>, factor: number): Map<string, FloatTensor> {
  return new Map(
    [...tensors].map(([name, { shape, values }]) => {
      const isScaled = name.endsWith(LORA_B);
      return [name, { shape, values: isScaled ? () => values().map((value) => value * factor) : values }];
    }),
  );
}

function alphasOf(tensors: Map<string, FloatTensor>, alpha: number): [name: string, alpha: FloatTensor][] {
  return [...tensors.keys()]
    .filter((name) => name.endsWith(LORA_B))
    .map((name) => {
      const module = name.slice(0, -LORA_B.length);
      return [`${module}.alpha`, { shape: [], values: () => Float32Array.of(alpha) }];
    });
}
