/** Copies a trained adapter out of a run's output directory. */
import { cp, mkdir, readdir, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join, relative } from "node:path";
import { v4 as uuid } from "uuid";
import { HttpError, RequestError } from "../errors.js";
import { isWithin, type PermittedRoot } from "../permitted-root.js";
import type { AdapterExport } from "../request/adapter-bodies.js";
import { CONFIG_NAME, SINGLE_FILE_NAME, WEIGHTS_NAME, writeSharedLora } from "./shared-adapter.js";

/** A LoRA's files lie in this folder of what a run wrote; many programs look for them one level up. */
const PEFT_FOLDER = "adapter";
const ADAPTER_FILES = [WEIGHTS_NAME, "lokr_weights.safetensors", SINGLE_FILE_NAME];
/** All that an exported adapter can consist of. */
const EXPORT_NAMES = new Set([...ADAPTER_FILES, CONFIG_NAME, "training_info.json", PEFT_FOLDER]);
/** What only a trainer that goes on needs; it is larger than the adapter itself. */
const STATE_FILE = /^training_state\./;
/** A checkpoint after a whole epoch, or where a run was stopped within one. */
const CHECKPOINT_FOLDER = /^(stopped_)?epoch_(\d+)_(?:step_(\d+))?/;

/**
 * Copies `final`, else the checkpoint that got furthest, to `export_path`: a LoRA's files both in the folder
 * itself and in its `adapter` folder, or as one file where that is asked for. An earlier export there is replaced once
 * the new one is whole.
 * @throws HttpError 404 where nothing was trained, 400 where `export_path` holds anything but an earlier export, or
 *   where the adapter has no such form
 */
export async function exportAdapter(root: PermittedRoot, request: AdapterExport) {
  const source = await findAdapter(await root.resolve(request.outputDir), request.outputDir);
  const target = await root.resolve(request.exportPath);
  if (isWithin(source, target) || isWithin(target, source)) {
    throw new RequestError(`export_path must lie apart from the trained adapter, got ${request.exportPath}`);
  }
  await assertReplaceable(target, request.exportPath);
  try {
    await replace(target, (staging) => writeExport(source, staging, request));
  } catch (error) {
    if (error instanceof HttpError) throw error;
    const detail = `The adapter cannot be exported to ${request.exportPath}: ${(error as Error).message}`;
    throw new HttpError(500, detail, {}, { cause: error });
  }
  return { message: "LoRA exported successfully", export_path: target, source };
}

async function findAdapter(outputDirectory: string, asSent: string): Promise<string> {
  const final = join(outputDirectory, "final");
  const checkpoint = await furthestCheckpoint(join(outputDirectory, "checkpoints"));
  if ((await kindOf(final)) === "directory") {
    // A run that went on from there and was stopped leaves the final adapter of the run before it.
    return checkpoint !== null && (await isNewer(checkpoint, final)) ? checkpoint : final;
  }
  if (checkpoint !== null) return checkpoint;
  if ((await kindOf(join(outputDirectory, "checkpoints"))) === "directory") {
    throw new HttpError(404, "No checkpoints found");
  }
  throw new HttpError(404, `No trained model found in ${asSent}`);
}

/** The folder of the checkpoint with the most training in it, or null where there is none. */
async function furthestCheckpoint(directory: string): Promise<string | null> {
  const found = (await readdir(directory).catch(() => [])).flatMap((name) => {
    const [match, stopped, epoch, step] = CHECKPOINT_FOLDER.exec(name) ?? [];
    // A stop within an epoch comes before that epoch's own checkpoint.
    const epochs = Number(epoch) - (stopped === undefined ? 0 : 0.5);
    return match === undefined ? [] : [{ name, epochs, step: Number(step ?? 0) }];
  });
  found.sort((a, b) => b.epochs - a.epochs || b.step - a.step);
  return found[0] === undefined ? null : join(directory, found[0].name);
}

async function isNewer(path: string, other: string): Promise<boolean> {
  return (await stat(path)).mtimeMs > (await stat(other)).mtimeMs;
}

async function assertReplaceable(path: string, asSent: string): Promise<void> {
  const kind = await kindOf(path);
  if (kind === "absent") return;
  if (kind === "directory" && ((await readdir(path)).length === 0 || (await isExport(path)))) return;
  throw new RequestError(
    `export_path ${asSent} exists and is no exported adapter: it is not overwritten, name another`,
  );
}

/** Whether a folder holds an adapter and nothing else. */
async function isExport(directory: string): Promise<boolean> {
  const names = await readdir(directory);
  if (names.some((name) => !EXPORT_NAMES.has(name))) return false;
  if (!names.includes(PEFT_FOLDER)) return names.some((name) => ADAPTER_FILES.includes(name));
  const inner = await readdir(join(directory, PEFT_FOLDER)).catch(() => [""]);
  return inner.every((name) => name !== PEFT_FOLDER && EXPORT_NAMES.has(name));
}

async function writeExport(source: string, target: string, request: AdapterExport): Promise<void> {
  if (request.foldAlpha || request.comfySingleFile) await shareLora(source, target, request);
  else await copyAdapter(source, target);
  const peft = join(target, PEFT_FOLDER);
  if ((await kindOf(peft)) === "directory") await cp(peft, target, { recursive: true });
}

async function copyAdapter(source: string, target: string): Promise<void> {
  const filter = (path: string) => !STATE_FILE.test(basename(relative(source, path)));
  await cp(source, target, { recursive: true, filter });
}

async function shareLora(source: string, target: string, request: AdapterExport): Promise<void> {
  const inner = join(source, PEFT_FOLDER);
  const peft = (await kindOf(inner)) === "directory" ? inner : source;
  if ((await kindOf(join(peft, CONFIG_NAME))) === "absent") {
    throw new RequestError(
      "fold_alpha and comfy_single_file are for LoRA adapters: a LoKr is one file already, with alpha in it",
    );
  }
  await writeSharedLora(peft, request.comfySingleFile ? target : join(target, PEFT_FOLDER), request);
}

/** Puts a folder that `write` fills in the place of whatever is at `target`, at once and only when it is whole. */
async function replace(target: string, write: (staging: string) => Promise<void>): Promise<void> {
  const beside = (suffix: string) => join(dirname(target), `.${basename(target)}.${uuid()}.${suffix}`);
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
