/** Writes the built-in model in ComfyUI's layouts: one file, or one file per part. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { EMBEDDED_MODEL } from "../../src/engine/checkpoints.js";

interface StoredTensor {
  dtype: string;
  shape: number[];
  bytes: Buffer;
}

export type StoredTensors = Record<string, StoredTensor>;

const NANO = join("models", EMBEDDED_MODEL);

/** Part folders of the built-in model, with ComfyUI's names. */
const PARTS = {
  transformer: { folder: "", prefix: "model.diffusion_model.", place: "diffusion_models/nano_turbo" },
  vae: { folder: "vae", prefix: "vae.", place: "vae/nano_vae" },
  text_encoder: {
    folder: "text_encoder",
    prefix: "text_encoders.qwen3_06b.transformer.model.",
    place: "text_encoders/nano_text",
  },
  language_model: {
    folder: "lm",
    prefix: "text_encoders.qwen3_2b.transformer.model.",
    place: "text_encoders/nano_lm",
  },
} as const;

type Part = keyof typeof PARTS;

export function readTensors(path: string): StoredTensors {
  const file = readFileSync(path);
  const begin = 8 + Number(file.readBigUInt64LE());
  const { __metadata__, ...header } = JSON.parse(file.toString("utf8", 8, begin));
  return Object.fromEntries(
    Object.entries<{ dtype: string; shape: number[]; data_offsets: [number, number] }>(header).map(
      ([
        name,
        {
          dtype,
          shape,
          data_offsets: [from, to],
        },
      ]) => [name, { dtype, shape, bytes: file.subarray(begin + from, begin + to) }],
    ),
  );
}

export function writeTensors(
  path: string,
  tensors: StoredTensors,
  metadata: Record<string, string> = {},
): string {
  let end = 0;
  const header = Object.fromEntries(
    Object.entries(tensors).map(([name, { dtype, shape, bytes }]) => {
      const data_offsets = [end, end + bytes.length];
      end += bytes.length;
      return [name, { dtype, shape, data_offsets }];
    }),
  );
  const text = Buffer.from(JSON.stringify({ __metadata__: metadata, ...header }));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, Buffer.concat([length, text, ...Object.values(tensors).map(({ bytes }) => bytes)]));
  return path;
}

function configOf(part: Part): object {
  return JSON.parse(readFileSync(join(NANO, PARTS[part].folder, "config.json"), "utf8"));
}

/** Tensors of a part under ComfyUI's names. */
function tensorsOf(part: Part): StoredTensors {
  const file = part === "vae" ? "diffusion_pytorch_model.safetensors" : "model.safetensors";
  const tensors = readTensors(join(NANO, PARTS[part].folder, file));
  return part === "vae" ? inStableAudioNames(tensors) : tensors;
}

/**
 * Gives the tensors of the autoencoder's decoder their names in stable-audio-tools, and flattens the snake
 * parameters. Leaves the encoder unchanged.
 */
function inStableAudioNames(tensors: StoredTensors): StoredTensors {
  const blocks =
    1 +
    Math.max(...Object.keys(tensors).map((name) => Number(/^decoder\.block\.(\d+)/.exec(name)?.[1] ?? 0)));
  const inBlock: Record<string, string> = {
    snake1: "0",
    conv_t1: "1",
    res_unit1: "2",
    res_unit2: "3",
    res_unit3: "4",
  };
  const inUnit: Record<string, string> = { snake1: "0", conv1: "1", snake2: "2", conv2: "3" };
  const ends: Record<string, number> = { conv1: 0, snake1: blocks + 1, conv2: blocks + 2 };
  const renamed = (name: string): string => {
    const [network, module = "", ...rest] = name.split(".");
    if (network !== "decoder") return name;
    if (module !== "block") return ["decoder.layers", ends[module], ...rest].join(".");
    const [index, part = "", ...tail] = rest;
    const layer = `decoder.layers.${Number(index) + 1}.layers.${inBlock[part]}`;
    if (!part.startsWith("res_unit")) return [layer, ...tail].join(".");
    const [inner = "", ...end] = tail;
    return [layer, "layers", inUnit[inner], ...end].join(".");
  };
  return Object.fromEntries(
    Object.entries(tensors).map(([name, tensor]) => {
      const isSnake = /\.(alpha|beta)$/.test(name) && name.startsWith("decoder.");
      return [renamed(name), isSnake ? { ...tensor, shape: [tensor.shape[1] as number] } : tensor];
    }),
  );
}

/** Writes the given parts of the model, by default all parts, into one file. */
export function writeAllInOne(path: string, parts: readonly Part[] = Object.keys(PARTS) as Part[]): string {
  const tensors: StoredTensors = {};
  for (const part of parts) {
    for (const [name, tensor] of Object.entries(tensorsOf(part))) tensors[PARTS[part].prefix + name] = tensor;
  }
  const config = Object.fromEntries(parts.map((part) => [part, configOf(part)]));
  return writeTensors(path, tensors, { config: JSON.stringify(config) });
}

/**
 * Writes each part of the model to its own file below `root`. `prefix` is put before the DiT's tensor names.
 */
export function writeSplit(root: string, prefix = ""): Record<Part, string> {
  const entries = (Object.keys(PARTS) as Part[]).map((part) => {
    const own = part === "transformer" ? prefix : part === "vae" ? "" : "model.";
    const tensors = Object.fromEntries(
      Object.entries(tensorsOf(part)).map(([name, tensor]) => [own + name, tensor]),
    );
    const path = join(root, `${PARTS[part].place}.safetensors`);
    return [part, writeTensors(path, tensors, { config: JSON.stringify({ [part]: configOf(part) }) })];
  });
  return Object.fromEntries(entries) as Record<Part, string>;
}

/** Copies a tokenizer into a folder, because ComfyUI files contain none. */
export function writeTokenizer(folder: string, part: "text_encoder" | "language_model"): void {
  mkdirSync(folder, { recursive: true });
  for (const name of ["tokenizer.json", "tokenizer_config.json"]) {
    writeFileSync(join(folder, name), readFileSync(join(NANO, PARTS[part].folder, name)));
  }
}

/** Copies the silence table into a folder, because ComfyUI files contain none. */
export function writeSilence(folder: string): void {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "silence_latent.pt"), readFileSync(join(NANO, "silence_latent.pt")));
}
