/** Exports a trained adapter from the output directory of a training run. */
import { randomUUID } from "node:crypto";
import { cp, lstat, mkdir, readdir, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join, relative } from "node:path";
import { MAX_ADAPTER_BYTES } from "../../system/regular-file.js";
import { HttpError, RequestError } from "../errors.js";
import { CHECKPOINTS, FINAL } from "../models/style-folder.js";
import type { AdapterExport } from "../request/training-bodies.js";
import { isWithin, type PermittedRoot } from "../storage/permitted-root.js";
import { CONFIG_NAME, SINGLE_FILE_NAME, WEIGHTS_NAME, writePortableLora } from "./portable-lora.js";

/** Folder in which a run stores the files of a LoRA. Many other programs expect these files in the parent folder. */
const PEFT_FOLDER = "adapter";
const ADAPTER_FILES = [WEIGHTS_NAME, "lokr_weights.safetensors", SINGLE_FILE_NAME];
/** Names of all files that an exported adapter can have. */
const EXPORT_NAMES = new Set([...ADAPTER_FILES, CONFIG_NAME, "training_info.json", PEFT_FOLDER]);
/** Trainer state. Exports omit it: it is needed only to resume training, and is larger than the adapter. */
const STATE_FILE = /^training_state\./;
/**
 * Name of a checkpoint folder. Training saves a checkpoint after an epoch, or when it is stopped within an
 * epoch.
 */
const CHECKPOINT_FOLDER = /^(stopped_)?epoch_(\d+)_(?:step_(\d+))?/;

/**
 * Copies `final`, or else the latest checkpoint, to the folder `export_path`. A LoRA's files go to this
 * folder and to its subfolder `adapter`, or become one file if requested. Replaces an earlier export only
 * when the new one is complete.
 * @throws HttpError 404 if there is no trained adapter, 400 if `export_path` exists but is not an earlier
 * export, or if the adapter cannot be exported in the requested form
 */
export async function exportAdapter(root: PermittedRoot, request: AdapterExport) {
  const found = await findAdapter(await root.resolve(request.outputDir), request.outputDir);
  const source = await root.resolve(found);
  const target = await root.resolve(request.exportPath);
  if (isWithin(source, target) || isWithin(target, source)) {
    throw new RequestError(
      `export_path must be outside the trained adapter's folder, got ${request.exportPath}`,
    );
  }
  await assertReplaceable(target, request.exportPath);
  try {
    await replace(target, (staging) => writeExport(source, staging, request));
  } catch (error) {
    if (error instanceof HttpError) throw error;
    const detail = `Could not export the adapter to ${request.exportPath}: ${(error as Error).message}`;
    throw new HttpError(500, detail, {}, { cause: error });
  }
  return { message: "LoRA exported successfully", export_path: target, source };
}

async function findAdapter(outputDirectory: string, asSent: string): Promise<string> {
  const final = join(outputDirectory, FINAL);
  const checkpoint = await latestCheckpoint(join(outputDirectory, CHECKPOINTS));
  if ((await kindOf(final)) === "directory") {
    // The checkpoint is newer than `final` if a later run resumed from `final` and was stopped.
    const isNewer = checkpoint !== null && (await stat(checkpoint)).mtimeMs > (await stat(final)).mtimeMs;
    return isNewer ? checkpoint : final;
  }
  if (checkpoint !== null) return checkpoint;
  if ((await kindOf(join(outputDirectory, CHECKPOINTS))) === "directory") {
    throw new HttpError(404, "No checkpoints found");
  }
  throw new HttpError(404, `No trained model found in ${asSent}`);
}

/** Folder of the latest checkpoint that was saved after `sinceMs`; null if there is none. */
export async function latestCheckpoint(directory: string, sinceMs = 0): Promise<string | null> {
  const names = await readdir(directory).catch(() => []);
  const isRecent = (name: string) =>
    stat(join(directory, name)).then(
      ({ mtimeMs }) => mtimeMs >= sinceMs,
      () => false,
    );
  const recent = await Promise.all(names.map(isRecent));
  const found = names
    .filter((_, i) => recent[i])
    .flatMap((name) => {
      const [match, stopped, epoch, step] = CHECKPOINT_FOLDER.exec(name) ?? [];
      // If training was stopped within an epoch, its checkpoint is older than the one at the end of the epoch.
      const epochs = Number(epoch) - (stopped === undefined ? 0 : 0.5);
      return match === undefined ? [] : [{ name, epochs, step: Number(step ?? 0) }];
    });
  found.sort((a, b) => b.epochs - a.epochs || b.step - a.step);
  return found[0] === undefined ? null : join(directory, found[0].name);
}

async function assertReplaceable(path: string, asSent: string): Promise<void> {
  const kind = await kindOf(path);
  if (kind === "absent") return;
  if (kind === "directory" && ((await readdir(path)).length === 0 || (await isExport(path)))) return;
  throw new RequestError(`export_path ${asSent} exists and is not an exported adapter; choose another path`);
}

/** Whether a folder contains only an exported adapter. */
async function isExport(directory: string): Promise<boolean> {
  const names = await readdir(directory);
  if (names.some((name) => !EXPORT_NAMES.has(name))) return false;
  if (!names.includes(PEFT_FOLDER)) return names.some((name) => ADAPTER_FILES.includes(name));
  const inner = await readdir(join(directory, PEFT_FOLDER)).catch(() => [""]);
  return inner.every((name) => name !== PEFT_FOLDER && EXPORT_NAMES.has(name));
}

async function writeExport(source: string, target: string, request: AdapterExport): Promise<void> {
  if (request.foldAlpha || request.comfySingleFile) await exportPortableLora(source, target, request);
  else await copyAdapter(source, target);
  const peft = join(target, PEFT_FOLDER);
  if ((await kindOf(peft)) === "directory") await cp(peft, target, { recursive: true });
}

async function copyAdapter(source: string, target: string): Promise<void> {
  const filter = async (path: string) => {
    const name = relative(source, path);
    if (STATE_FILE.test(basename(name))) return false;
    const entry = await lstat(path);
    if (entry.size > MAX_ADAPTER_BYTES) {
      throw new RequestError(
        `${name} in the trained adapter has ${entry.size} bytes, more than the maximum of ${MAX_ADAPTER_BYTES}`,
      );
    }
    if (entry.isFile() || entry.isDirectory()) return true;
    throw new RequestError(
      `${name} in the trained adapter is neither a regular file nor a folder; remove it`,
    );
  };
  await cp(source, target, { recursive: true, filter });
}

async function exportPortableLora(source: string, target: string, request: AdapterExport): Promise<void> {
  const inner = join(source, PEFT_FOLDER);
  const peft = (await kindOf(inner)) === "directory" ? inner : source;
  if ((await kindOf(join(peft, CONFIG_NAME))) === "absent") {
    throw new RequestError(
      "fold_alpha and comfy_single_file are only for LoRA adapters; a LoKr is already one file with its alpha",
    );
  }
  await writePortableLora(peft, request.comfySingleFile ? target : join(target, PEFT_FOLDER), request);
}

/** Replaces `target` atomically with a folder that `write` fills. */
async function replace(target: string, write: (staging: string) => Promise<void>): Promise<void> {
  const beside = (suffix: string) => join(dirname(target), `.${basename(target)}.${randomUUID()}.${suffix}`);
  const staging = beside("part");
  const old = beside("old");
  const isReplacement = (await kindOf(target)) !== "absent";
  await mkdir(dirname(target), { recursive: true });
  try {
    await write(staging);
    if (isReplacement) await rename(target, old);
    await rename(staging, target).catch(async (error: unknown) => {
      if (isReplacement) await rename(old, target);
      throw error;
    });
  } finally {
    await rm(staging, { recursive: true, force: true });
  }
  await rm(old, { recursive: true, force: true });
}

async function kindOf(path: string): Promise<"absent" | "directory" | "other"> {
  return stat(path).then(
    (found) => (found.isDirectory() ? "directory" : "other"),
    () => "absent",
  );
}
