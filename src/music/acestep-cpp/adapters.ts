/** Adapters by name: in the training root, and in the directory of SVC_ADAPTERS. */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import type { Config } from "../../config.js";
import { describe } from "../../parameters.js";
import { RequestError } from "../errors.js";
import { savedAdapters } from "../training/saved-adapters.js";

const EXTENSION = ".safetensors";

interface NamedAdapter {
  /** Name of the file or folder, relative to its directory. */
  name: string;
  path: string;
}

type Directories = Pick<Config, "trainingRoot" | "adaptersDirectory">;

/** Adapters of both directories, those of the training root first. */
export async function namedAdapters({
  trainingRoot,
  adaptersDirectory,
}: Directories): Promise<NamedAdapter[]> {
  const directories = [trainingRoot, ...(adaptersDirectory === null ? [] : [adaptersDirectory])];
  const found = await Promise.all(directories.map(adaptersIn));
  const unique = new Map(
    found
      .flat()
      .toReversed()
      .map((adapter) => [adapter.name, adapter]),
  );
  return [...unique.values()].toReversed();
}

/** Folders with an adapter, and files beside them. */
async function adaptersIn(directory: string): Promise<NamedAdapter[]> {
  const files = await readdir(directory).catch(() => []);
  const names = [...files.filter((name) => name.endsWith(EXTENSION)), ...(await savedAdapters(directory))];
  return names.sort().map((name) => ({ name, path: join(directory, name) }));
}

/** @throws RequestError if no adapter has this name, with or without extension */
export async function adapterPath(name: string, directories: Directories): Promise<string> {
  const adapters = await namedAdapters(directories);
  const found = adapters.find((one) => one.name === name || one.name === name + EXTENSION);
  if (found !== undefined) return found.path;
  const known =
    adapters.length === 0 ? "there are none" : `use one of ${adapters.map((one) => one.name).join(", ")}`;
  throw new RequestError(
    `adapter ${describe(name)} is neither in SVC_TRAINING_ROOT nor in SVC_ADAPTERS: ${known}`,
  );
}
