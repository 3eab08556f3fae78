/**
 * Downloads a model into the checkpoint directory, in the layout that the engine expects. Files are first written to
 * `.incomplete`. The next run hashes and resumes them, and removes files that the hub no longer lists. A complete
 * folder with the hub's checksums moves into place atomically. Existing folders never change. Model code is never
 * executed.
 */
import { existsSync } from "node:fs";
import { mkdir, readdir, rename, rm, stat, statfs } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { lockDirectory } from "../system/directory-lock.js";
import { download } from "./download.js";
import { PullError } from "./errors.js";
import type { Hub, HubFile } from "./hub.js";
import { foreignFolder, type RepositoryFolder, repositoryFolderOf, SHARED_PARTS } from "./published.js";

/** Folder of incomplete downloads. Because it is in the checkpoint directory, complete downloads move atomically. */
const INCOMPLETE = ".incomplete";

/** A folder with one of these files contains a model. */
const MODEL_FILES = ["config.json", "model_index.json"];

/** One folder of the checkpoint directory. */
interface Part {
  name: string;
  /** Path prefix of the folder's files in the repository. */
  prefix: string;
  files: HubFile[];
}

export interface PullProgress {
  doneBytes: number;
  totalBytes: number;
  /** Path of the current file in the checkpoint directory. */
  file: string;
  fileBytes: number;
}

/**
 * Downloads a model and the parts that it needs, if missing. Each folder appears in the checkpoint directory once
 * it is complete and verified; interrupted downloads resume.
 * @param name a public model, or `owner/repository`
 * @returns names of the new folders
 * @throws PullError, DirectoryInUseError
 */
export async function pullModel(
  name: string,
  directory: string,
  hub: Hub,
  onProgress: (progress: PullProgress) => void,
): Promise<string[]> {
  const source = repositoryFolderOf(name);
  const incomplete = join(directory, INCOMPLETE);
  const lock = await lockDirectory(incomplete, "SVC_CHECKPOINTS");
  try {
    const parts = await absentParts(source, directory, hub);
    await downloadParts(parts, incomplete, hub, onProgress);
    for (const { name } of parts) {
      await mkdir(dirname(join(directory, name)), { recursive: true });
      await rename(join(incomplete, name), join(directory, name));
    }
    return parts.map((part) => part.name);
  } finally {
    await lock.release();
  }
}

/** Parts to download. The model is last: once its files are in place, the parts that it needs are too. */
async function absentParts(source: RepositoryFolder, directory: string, hub: Hub): Promise<Part[]> {
  const isAbsent = (name: string) => !existsSync(join(directory, name));
  const foreign = foreignFolder(source.repository);
  const installed = join(directory, source.folder || (foreign ?? basename(source.repository)));
  let own: Part[] = [];
  let needsShared: boolean;
  // The folder of a foreign repository may contain several models. It counts as installed only if it has a
  // model's own files.
  const places = foreign === null ? [installed] : MODEL_FILES.map((name) => join(installed, name));
  if (places.some(existsSync)) {
    needsShared = lacksParts(await readdir(installed));
  } else {
    own = await listParts(source, hub);
    needsShared = own.some((part) => lacksParts(part.files.map((file) => pathInPart(part, file))));
  }
  const shared: Part[] = [];
  for (const part of needsShared ? SHARED_PARTS : []) {
    const isListed = own.some(({ name }) => name === join(foreign ?? "", part.folder));
    if (!isListed && isAbsent(part.folder)) shared.push(...(await listParts(part, hub)));
  }
  return [...shared, ...own.filter(({ name }) => isAbsent(name))];
}

async function listParts({ repository, folder }: RepositoryFolder, hub: Hub): Promise<Part[]> {
  const files = await hub.list(repository, folder);
  return folder === "" ? partsOf(repository, files) : [{ name: folder, prefix: `${folder}/`, files }];
}

/** Models in a repository: one model at its root, or one per folder. */
function partsOf(repository: string, files: HubFile[]): Part[] {
  const foreign = foreignFolder(repository);
  if (files.some(({ path }) => path === "model_index.json" || /^[^/]+\.safetensors$/.test(path))) {
    return [{ name: foreign ?? basename(repository), prefix: "", files }];
  }
  const folders = files.flatMap(({ path }) => /^([^/]+)\/config\.json$/.exec(path)?.[1] ?? []);
  if (folders.length === 0) {
    throw new PullError(
      "NOT_A_MODEL",
      `${repository} has no model in safetensors files and no folders of models.`,
    );
  }
  return folders.map((folder) => {
    const prefix = `${folder}/`;
    const name = join(foreign ?? "", folder);
    return { name, prefix, files: files.filter(({ path }) => path.startsWith(prefix)) };
  });
}

/** Whether the files are a DiT without VAE and text encoder. A silence latent identifies a DiT. */
function lacksParts(paths: string[]): boolean {
  return paths.includes("silence_latent.pt") && !paths.some((path) => path.split("/")[0] === "vae");
}

function pathInPart(part: Part, file: HubFile): string {
  return file.path.slice(part.prefix.length);
}

async function downloadParts(
  parts: Part[],
  incomplete: string,
  hub: Hub,
  onProgress: (progress: PullProgress) => void,
): Promise<void> {
  const files = parts.flatMap((part) =>
    part.files.map((file) => ({ file, name: join(part.name, pathInPart(part, file)) })),
  );
  const present = await removeUnlisted(parts, incomplete, new Set(files.map(({ name }) => name)));
  const totalBytes = files.reduce((sum, { file }) => sum + file.sizeBytes, 0);
  await assertSpace(totalBytes - present, incomplete);
  let doneBytes = 0;
  for (const { file, name } of files) {
    const report = (count: number) => {
      doneBytes += count;
      onProgress({ doneBytes, totalBytes, file: name, fileBytes: file.sizeBytes });
    };
    report(0);
    await download(file, join(incomplete, name), hub, report);
  }
}

/** Removes files of an earlier run that the hub no longer lists. @returns total bytes of the remaining files */
async function removeUnlisted(parts: Part[], incomplete: string, listed: Set<string>): Promise<number> {
  let sizeBytes = 0;
  for (const { name } of parts.filter((part) => existsSync(join(incomplete, part.name)))) {
    for (const path of await readdir(join(incomplete, name), { recursive: true })) {
      const file = join(incomplete, name, path);
      const found = await stat(file);
      if (found.isDirectory()) continue;
      if (listed.has(join(name, path))) sizeBytes += found.size;
      else await rm(file);
    }
  }
  return sizeBytes;
}

async function assertSpace(neededBytes: number, directory: string): Promise<void> {
  const { bavail, bsize } = await statfs(directory);
  const freeBytes = bavail * bsize;
  if (neededBytes <= freeBytes) return;
  throw new PullError(
    "DISK_FULL",
    `The download needs ${inMegabytes(neededBytes)}, and ${directory} has ${inMegabytes(freeBytes)} free. ` +
      "Free some space, or set SVC_CHECKPOINTS to a directory on another disk.",
  );
}

export function inMegabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`;
}
