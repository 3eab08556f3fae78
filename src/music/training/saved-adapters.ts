/** Finds the adapters in the training root. */
import { readdir, stat } from "node:fs/promises";
import { join, relative } from "node:path";
import type { z } from "zod";
import { CHECKPOINTS, FINAL, styleFolder } from "../models/style-folder.js";
import type { savedStyle } from "../openapi/answers.js";
import { latestCheckpoint } from "./export.js";
import { CONFIG_NAME } from "./portable-lora.js";

/** Folder in which training stores the files of a LoRA. */
const LORA_FOLDER = "adapter";
/** Files by which a folder is recognized as an adapter. */
const ADAPTER_NAMES = [
  CONFIG_NAME,
  "lokr_weights.safetensors",
  "loha_weights.safetensors",
  "pytorch_lora_weights.safetensors",
];
/** Maximum depth of the search, which finds `zydeco/final` and `bands/zydeco/final`. */
const DEPTH = 3;

/** Returns the adapters of `savedAdapters` with their names and the times at which they were saved. */
export async function savedStyles(root: string): Promise<z.output<typeof savedStyle>[]> {
  const paths = await savedAdapters(root);
  const styles = paths.map(async (path) => {
    const saved = await stat(join(root, path)).catch(() => null);
    return saved === null ? [] : [{ name: styleFolder(path), path, saved_time: saved.mtimeMs / 1000 }];
  });
  return (await Promise.all(styles)).flat();
}

/**
 * Returns the folders that contain an adapter, sorted, as paths for `POST /v1/lora/load`. Skips symbolic links and
 * unreadable folders.
 */
export async function savedAdapters(root: string): Promise<string[]> {
  const found = await adaptersIn(root, "", DEPTH);
  return found.sort();
}

async function adaptersIn(root: string, path: string, depth: number): Promise<string[]> {
  const read = (folder: string) => readdir(folder, { withFileTypes: true }).catch(() => []);
  const entries = await read(join(root, path));
  const lora = await read(join(root, path, LORA_FOLDER));
  const names = [...entries, ...lora].map(({ name }) => name);
  const isAdapter = path !== "" && ADAPTER_NAMES.some((name) => names.includes(name));
  if (depth === 0) return isAdapter ? [path] : [];
  const folders = entries.filter(
    (entry) => entry.isDirectory() && entry.name !== LORA_FOLDER && entry.name !== CHECKPOINTS,
  );
  // Of a run that was stopped, the latest checkpoint is all there is.
  const isStopped = !entries.some(({ name }) => name === FINAL);
  const latest = isStopped ? await latestCheckpoint(join(root, path, CHECKPOINTS)) : null;
  const nested = await Promise.all(
    folders.map(({ name }) => adaptersIn(root, path === "" ? name : `${path}/${name}`, depth - 1)),
  );
  const stopped = latest === null ? [] : [relative(root, latest)];
  return [...(isAdapter ? [path] : []), ...stopped, ...nested.flat()];
}
