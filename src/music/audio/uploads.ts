/** Uploaded files: form field names and storage. */
import { randomUUID } from "node:crypto";
import { createWriteStream } from "node:fs";
import { mkdir, readdir, rm } from "node:fs/promises";
import { basename, dirname, extname, join } from "node:path";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { makeFolder } from "../storage/file-storage.js";

/**
 * Form fields for each kind of upload, in order of priority. Names of stored files begin with the first field.
 * Messages name the last field. The last field with `_path` appended is the parameter for a path.
 */
export const UPLOAD_FIELDS = {
  sourceAudio: ["ctx_audio", "src_audio"],
  referenceAudio: ["ref_audio", "reference_audio"],
  sourceLatents: ["src_latents"],
  referenceLatents: ["ref_latents"],
} as const;

export type UploadKind = keyof typeof UPLOAD_FIELDS;
export const UPLOAD_KINDS = Object.keys(UPLOAD_FIELDS) as UploadKind[];
const PREFIXES = Object.values(UPLOAD_FIELDS).map(([first]) => `${first}_`);

export interface Upload {
  /** Path of the stored file; null if the file arrived before a valid key and was not stored. */
  path: string | null;
}

export type Uploads = Readonly<Record<UploadKind, Upload | null>>;

export const NO_UPLOADS: Uploads = mapUploadKinds(() => null);

export interface UploadLimits {
  directory: string;
  maxBytes: number;
  maxFiles: number;
}

export function mapUploadKinds<T>(get: (kind: UploadKind) => T): Record<UploadKind, T> {
  return Object.fromEntries(UPLOAD_KINDS.map((kind) => [kind, get(kind)])) as Record<UploadKind, T>;
}

export function uploadFieldName(kind: UploadKind): string {
  return UPLOAD_FIELDS[kind].at(-1) as string;
}

/** Kind of upload of this field; null for other fields. */
export function uploadKind(field: string): UploadKind | null {
  return UPLOAD_KINDS.find((kind) => (UPLOAD_FIELDS[kind] as readonly string[]).includes(field)) ?? null;
}

/** Path for a new upload. Only a plain extension of the client's file name is used. */
export function uploadPath(directory: string, kind: UploadKind, clientName: string): string {
  const extension = extname(clientName);
  const suffix = /^\.[A-Za-z0-9]{1,11}$/.test(extension) ? extension : "";
  return join(directory, `${UPLOAD_FIELDS[kind][0]}_${randomUUID()}${suffix}`);
}

/** Name by which clients refer to a kept upload; the same on all servers of a fleet. */
export function uploadReference(path: string): string {
  return `upload:${basename(path)}`;
}

const UPLOAD_REFERENCE = new RegExp(
  `^upload:((?:${PREFIXES.join("|")})[0-9a-f-]{36}(?:\\.[A-Za-z0-9]{1,11})?)$`,
);

/** Path of a kept upload that a client refers to; null for other values. */
export function referencedUpload(directory: string, value: string): string | null {
  const [, name] = UPLOAD_REFERENCE.exec(value) ?? [];
  return name === undefined ? null : join(directory, name);
}

/** Writes an uploaded file to `path`, which must be new, and returns its size. A failure may leave a partial file. */
export async function storeUpload(content: Readable, path: string): Promise<number> {
  await makeFolder(dirname(path));
  const file = createWriteStream(path, { flags: "wx" });
  const closed = new Promise<void>((resolve) => file.once("close", resolve));
  try {
    await pipeline(content, file);
    return file.bytesWritten;
  } finally {
    // Wait until the file is closed. The caller may delete the file next, which is not reliable before.
    await closed;
  }
}

/** Called at start-up. Deletes uploads of earlier processes for which `isOwned` is false. */
export async function removeOrphanUploads(
  directory: string,
  isOwned: (path: string) => boolean,
): Promise<void> {
  await mkdir(directory, { recursive: true });
  const names = (await readdir(directory)).filter((name) => PREFIXES.some((p) => name.startsWith(p)));
  const orphans = names.map((name) => join(directory, name)).filter((path) => !isOwned(path));
  await Promise.all(orphans.map((path) => rm(path, { force: true })));
}
