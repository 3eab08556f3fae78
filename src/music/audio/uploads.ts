/** Files that clients send: the names of their form fields, and their life on disk. */
import { randomUUID } from "node:crypto";
import { createWriteStream } from "node:fs";
import { mkdir, readdir, rm } from "node:fs/promises";
import { dirname, extname, join } from "node:path";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";

/** Form fields of each kind of upload, the preferred name first. */
export const UPLOAD_FIELDS = {
  referenceAudio: ["ref_audio", "reference_audio"],
  sourceAudio: ["ctx_audio", "src_audio"],
} as const;

export type UploadKind = keyof typeof UPLOAD_FIELDS;

const PREFIXES: Readonly<Record<UploadKind, string>> = {
  referenceAudio: "ref_audio_",
  sourceAudio: "ctx_audio_",
};

export interface Upload {
  /** The stored file; null where it came before any valid key and was therefore not stored. */
  path: string | null;
}

/** What a request brought; null where it brought no such file. */
export type Uploads = Readonly<Record<UploadKind, Upload | null>>;

export const NO_UPLOADS: Uploads = { referenceAudio: null, sourceAudio: null };

export interface UploadLimits {
  /** Folder of stored uploads. */
  directory: string;
  /** Bytes of one file. */
  maxBytes: number;
  /** Files of one request. */
  maxFiles: number;
}

/** What an upload of this field is, or null for fields that take no files. */
export function uploadKind(field: string): UploadKind | null {
  const kinds = Object.keys(UPLOAD_FIELDS) as UploadKind[];
  return kinds.find((kind) => (UPLOAD_FIELDS[kind] as readonly string[]).includes(field)) ?? null;
}

/** Where an upload will lie. Only the extension of the client's file name is used, if it is a plain one. */
export function uploadPath(directory: string, kind: UploadKind, clientName: string): string {
  const extension = extname(clientName);
  const suffix = /^\.[A-Za-z0-9]{1,8}$/.test(extension) ? extension : "";
  return join(directory, `${PREFIXES[kind]}${randomUUID()}${suffix}`);
}

/**
 * Writes a file part to a new file at `path`. On failure a part of it may be left there.
 * @returns its size in bytes
 */
export async function storeUpload(content: Readable, path: string): Promise<number> {
  await mkdir(dirname(path), { recursive: true });
  const file = createWriteStream(path, { flags: "wx", mode: 0o600 });
  const closed = new Promise<void>((resolve) => file.once("close", resolve));
  try {
    await pipeline(content, file);
    return file.bytesWritten;
  } finally {
    // A file that is still being opened could not be deleted for good.
    await closed;
  }
}

/** Deletes what an earlier process left behind: files that `isOwned` does not know. For the start of the service. */
export async function removeOrphanUploads(
  directory: string,
  isOwned: (path: string) => boolean,
): Promise<void> {
  await mkdir(directory, { recursive: true });
  const prefixes = Object.values(PREFIXES);
  const names = (await readdir(directory)).filter((name) => prefixes.some((p) => name.startsWith(p)));
  const orphans = names.map((name) => join(directory, name)).filter((path) => !isOwned(path));
  await Promise.all(orphans.map((path) => rm(path, { force: true })));
}
