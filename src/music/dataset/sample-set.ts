/** Finds the sample files in a directory for adapter training. */

import { readdir, realpath, stat } from "node:fs/promises";
import { join, resolve, win32 } from "node:path";
import { isObject } from "../../parameters.js";
import { MAX_TEXT_BYTES, readTextIfPresent } from "../../system/regular-file.js";
import { RequestError } from "../errors.js";
import { isWithin, noteOnRelativePath, type PermittedRoot } from "../storage/permitted-root.js";

export const MANIFEST_NAME = "manifest.json";
const SAMPLE_EXTENSION = /\.(?:pt|safetensors)$/;
/** File names that are not samples: temporary files of other tools, and trainer states. */
const NOT_A_SAMPLE = /(?:\.tmp|^training_state)\.\w+$/;

export interface SampleSet {
  /** Data set fields of the manifest; null without a manifest. */
  metadata: Readonly<Record<string, unknown>> | null;
  /** Absolute paths of the sample files, without symbolic links. The order is that of the manifest, else by name. */
  samples: string[];
  /** Manifest entries for which there is no usable sample file, as written in the manifest. */
  skipped: string[];
}

/**
 * Finds the sample files of `tensorDirectory`. A manifest entry is looked up in the directory, then below `root`. Its
 * base name is looked up last, in the directory, because the directory may have been moved, perhaps from Windows. Both
 * arguments are absolute paths without symbolic links.
 * @throws RequestError, UnusableFileError if the manifest is unreadable
 */
export async function discoverSamples(tensorDirectory: string, root: string): Promise<SampleSet> {
  const manifest = await readManifest(tensorDirectory);
  if (manifest === null) {
    return { metadata: null, samples: await listSamples(tensorDirectory), skipped: [] };
  }
  const found = new Set<string>();
  const skipped: string[] = [];
  for (const entry of manifest.samples) {
    const path = typeof entry === "string" ? await locate(entry, tensorDirectory, root) : null;
    if (path === null) skipped.push(String(entry));
    else found.add(path);
  }
  return { metadata: manifest.metadata, samples: [...found], skipped };
}

/** @throws RequestError if `path` is not a directory with usable sample files */
export async function tensorInfo(root: PermittedRoot, path: string) {
  const directory = await root.resolve(path);
  const found = await stat(directory).catch(() => null);
  if (found === null) throw new RequestError(`Directory not found: ${path}${noteOnRelativePath(path)}`);
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

async function readManifest(directory: string) {
  const path = join(directory, MANIFEST_NAME);
  const text = await readTextIfPresent(path, MAX_TEXT_BYTES);
  if (text === null) return null;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new RequestError(`${path} is not JSON`, { cause: error });
  }
  if (!isObject(value) || !Array.isArray(value.samples)) {
    throw new RequestError(`${path} is not a manifest: it must be an object with a list "samples"`);
  }
  const samples: unknown[] = value.samples;
  return { metadata: isObject(value.metadata) ? value.metadata : {}, samples };
}

async function listSamples(directory: string): Promise<string[]> {
  const names = (await readdir(directory)).filter(isSampleName).sort();
  // If a sample exists as .pt and as .safetensors, lists only the .pt file.
  const nameOfId = new Map<string, string>();
  for (const name of names) {
    const id = name.replace(SAMPLE_EXTENSION, "");
    if (!nameOfId.has(id)) nameOfId.set(id, name);
  }
  const paths = await Promise.all(
    [...nameOfId.values()].map((name) => sampleAt(join(directory, name), directory)),
  );
  return paths.filter((path) => path !== null);
}

async function locate(entry: string, directory: string, root: string): Promise<string | null> {
  const name = win32.basename(entry);
  if (!isSampleName(name)) return null;
  const path = entry.replaceAll("\\", "/");
  return (
    (await sampleAt(resolve(directory, path), directory)) ??
    (await sampleAt(resolve(root, path), root)) ??
    (await sampleAt(join(directory, name), directory))
  );
}

/** Real path of a file; null if it does not exist or is outside `directory`. */
async function sampleAt(path: string, directory: string): Promise<string | null> {
  const file = await realpath(path).catch(() => null);
  if (file === null || !isWithin(directory, file)) return null;
  return (await stat(file)).isFile() ? file : null;
}

function isSampleName(name: string): boolean {
  return SAMPLE_EXTENSION.test(name) && !NOT_A_SAMPLE.test(name);
}
