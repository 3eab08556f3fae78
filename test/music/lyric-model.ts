/** The built-in model, configured to align lyrics with some of its attention heads. */
import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const NANO = fileURLToPath(new URL("../../models/carillon-nano", import.meta.url));

export const LYRIC_MODEL = "follows-lyrics";

/** Writes the model to a checkpoint folder. Returns the settings that load it. */
export function lyricModel(checkpoints: string): Record<string, string> {
  const model = join(checkpoints, LYRIC_MODEL);
  cpSync(NANO, model, { recursive: true });
  const path = join(model, "config.json");
  const heads = { lyric_alignment_layers_config: { 3: [0, 1, 2, 3, 4, 5, 6, 7] } };
  writeFileSync(path, JSON.stringify({ ...JSON.parse(readFileSync(path, "utf8")), ...heads }));
  sharpen(join(model, "model.safetensors"), "decoder.layers.3.cross_attn.q_norm.weight");
  return { SVC_CHECKPOINTS: checkpoints, SVC_CONFIG_PATH2: LYRIC_MODEL };
}

/** Multiplies a bfloat16 query norm by 32, so that heads attend to one word at a time, as in trained models. */
function sharpen(file: string, tensor: string): void {
  const bytes = readFileSync(file);
  const headerBytes = Number(bytes.readBigUInt64LE());
  const { [tensor]: found } = JSON.parse(bytes.toString("utf8", 8, 8 + headerBytes));
  const [begin, end] = found.data_offsets.map((offset: number) => 8 + headerBytes + offset);
  const exponent = 5 << 7;
  for (let at = begin; at < end; at += 2) bytes.writeUInt16LE(bytes.readUInt16LE(at) + exponent, at);
  writeFileSync(file, bytes);
}
