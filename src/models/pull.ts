/** Downloads a model into the checkpoint directory, in the layout that the engine resolves. */
import { existsSync } from "node:fs";
import { readdir, rename, rm, stat, statfs } from "node:fs/promises";
import { basename, join } from "node:path";
import { lockDirectory } from "../directory-lock.js";
import { download } from "./download.js";
import { PullError } from "./errors.js";
import type { Hub, HubFile } from "./hub.js";
import { SHARED_PARTS, type Source, sourceOf } from "./published.js";

/** In the checkpoint directory, so that what is whole moves into place in one step. */
const INCOMPLETE = ".incomplete";

/** One folder of the checkpoint directory. */
interface Part {
  name: string;
  /** Begins the path of each of its files in the repository. */
  prefix: string;
  files: HubFile[];
}

export interface PullProgress {
  doneBytes: number;
  totalBytes: number;
  /** In the checkpoint directory. */
  file: string;
  fileBytes: number;
}

/**
 * Downloads what is absent of a model and of the parts it needs. A folder appears in the checkpoint directory once all
 * of its files are there and verified; until then it lies beside, where the next call goes on with it.
 * @param name a public model, or `owner/repository`
 * @returns the folders that are new
 * @throws PullError, DirectoryInUseError
 */
export async function pullModel(
  name: string,
  directory: string,
  hub: Hub,
  onProgress: (progress: PullProgress) => void,
): Promise<string[]> {
  const source = sourceOf(name);
  const incomplete = join(directory, INCOMPLETE);
  const lock = await lockDirectory(incomplete, "SVC_CHECKPOINTS");
  try {
    const parts = await absentParts(source, directory, hub);
    await downloadParts(parts, incomplete, hub, onProgress);
    for (const part of parts) await rename(join(incomplete, part.name), join(directory, part.name));
    return parts.map((part) => part.name);
  } finally {
    await lock.release();
  }
}

/** The model itself is the last one: whoever finds it finds its parts. */
async function absentParts(source: Source, directory: string, hub: Hub): Promise<Part[]> {
  const isAbsent = (name: string) => !existsSync(join(directory, name));
  const installed = join(directory, source.folder || basename(source.repository));
  let own: Part[] = [];
  let needsShared: boolean;
  if (existsSync(installed)) {
    needsShared = lacksParts(await readdir(installed));
  } else {
    own = await listParts(source, hub);
    needsShared = own.some((part) => lacksParts(part.files.map((file) => pathInPart(part, file))));
  }
  const shared: Part[] = [];
  for (const part of needsShared ? SHARED_PARTS : []) {
    const isListed = own.some(({ name }) => name === part.folder);
    if (!isListed && isAbsent(part.folder)) shared.push(...(await listParts(part, hub)));
  }
  return [...shared, ...own.filter(({ name }) => isAbsent(name))];
}

async function listParts({ repository, folder }: Source, hub: Hub): Promise<Part[]> {
  const files = await hub.list(repository, folder);
  return folder === "" ? partsOf(repository, files) : [{ name: folder, prefix: `${folder}/`, files }];
}

/** A repository is one model, or has a folder for each. */
function partsOf(repository: string, files: HubFile[]): Part[] {
  if (files.some(({ path }) => path === "model_index.json" || /^[^/]+\.safetensors$/.test(path))) {
    return [{ name: basename(repository), prefix: "", files }];
  }
  const folders = files.flatMap(({ path }) => /^([^/]+)\/config\.json$/.exec(path)?.[1] ?? []);
  if (folders.length === 0) {
    throw new PullError(
      "NOT_A_MODEL",
      `${repository} holds no model in safetensors files, nor folders of models.`,
    );
  }
  return folders.map((name) => {
    const prefix = `${name}/`;
    return { name, prefix, files: files.filter(({ path }) => path.startsWith(prefix)) };
  });
}

/** Whether the parts that a DiT renders with lie elsewhere; a DiT is what has a latent of silence. */
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

/**
 * What an earlier run left and the repository no longer has would otherwise become part of the model.
 * @returns the bytes that stay
 */
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
    `${inMegabytes(neededBytes)} are to be downloaded, and ${directory} has room for ${inMegabytes(freeBytes)}. ` +
      "Free some space, or set SVC_CHECKPOINTS to a directory on another disk.",
  );
}

export function inMegabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`;
}
