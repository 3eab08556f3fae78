/** What a directory of sample files holds, before anything is trained on it (reference/training.md 9.6). */
import { stat } from "node:fs/promises";
import { discoverSamples } from "../dataset/sample-set.js";
import { RequestError } from "../errors.js";
import type { PermittedRoot } from "../permitted-root.js";

/** @throws RequestError where `path` is no directory of sample files within reach */
export async function tensorInfo(root: PermittedRoot, path: string) {
  const directory = await root.resolve(path);
  const found = await stat(directory).catch(() => null);
  if (found === null) throw new RequestError(`Directory not found: ${path}`);
  if (!found.isDirectory()) throw new RequestError(`Not a directory: ${path}`);
  const { metadata, samples } = await discoverSamples(directory, await root.resolve("."));
  if (samples.length === 0) throw new RequestError(`No .pt tensor files found in ${path}`);
  const name = textOr(metadata?.name, "Unknown");
  return {
    dataset_name: name,
    num_samples: samples.length,
    custom_tag: textOr(metadata?.custom_tag, ""),
    tensor_dir: path,
    message: `Loaded tensor dataset: ${name} (${samples.length} samples)`,
  };
}

function textOr(value: unknown, fallback: string): string {
  return typeof value === "string" && value !== "" ? value : fallback;
}
