/** Keeps paths of requests inside one directory, and creates output directories. */
import { access, constants, lstat, mkdir, realpath } from "node:fs/promises";
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path";
import { makeDirectory } from "../../system/directory-lock.js";
import { HttpError, RequestError } from "../errors.js";

/** Path outside the permitted root, or one that cannot be resolved. */
export class UnsafePathError extends RequestError {
  constructor(path: string, reason: string, options?: ErrorOptions) {
    super(`Rejected unsafe path: ${path} ${reason}`, options);
    this.name = "UnsafePathError";
  }
}

/** Directory that must contain all paths of training requests (SVC_TRAINING_ROOT). */
export class PermittedRoot {
  /** @param directory absolute path */
  constructor(readonly directory: string) {}

  /**
   * Resolves `path` to an absolute path without symbolic links. A relative path starts at the root, which is made again
   * if it was deleted. A path that does not exist is resolved from its nearest existing parent. The root itself is
   * permitted.
   * @throws UnsafePathError
   */
  async resolve(path: string): Promise<string> {
    const root = await this.#realPath().catch((error: Error) => {
      throw new HttpError(500, `SVC_TRAINING_ROOT is not usable: ${error.message}`, {}, { cause: error });
    });
    const real = await resolveLinks(resolve(root, path)).catch((error: Error) => {
      throw error instanceof UnsafePathError
        ? error
        : new UnsafePathError(path, `cannot be resolved: ${error.message}`, { cause: error });
    });
    if (!isWithin(root, real)) {
      throw new UnsafePathError(path, `is outside ${root} (SVC_TRAINING_ROOT)`);
    }
    return real;
  }

  /** Returns a path inside the root relative to it, and other paths as they are. */
  shorten(path: string): string {
    return isWithin(this.directory, path) ? relative(this.directory, path) : path;
  }

  async #realPath(): Promise<string> {
    await makeDirectory(this.directory, "SVC_TRAINING_ROOT");
    return realpath(this.directory);
  }
}

/** @param path absolute and normalised path */
async function resolveLinks(path: string): Promise<string> {
  try {
    return await realpath(path);
  } catch (error) {
    if (!isAbsence(error)) throw error;
  }
  // Writing through a dangling link would create its target, possibly outside the root.
  if (await isLink(path)) throw new UnsafePathError(path, "is a dangling symbolic link");
  return join(await resolveLinks(dirname(path)), basename(path));
}

function isAbsence(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === "ENOENT" || code === "ENOTDIR";
}

async function isLink(path: string): Promise<boolean> {
  return lstat(path).then(
    (found) => found.isSymbolicLink(),
    () => false,
  );
}

/** Note for the error about a missing path: clients send paths that are relative to a folder of their own machine. */
export function noteOnRelativePath(path: string): string {
  return isAbsolute(path) ? "" : " (relative paths start in SVC_TRAINING_ROOT on the server)";
}

/** Compares absolute paths by component: `/root2` is outside `/root`; the root itself is inside. */
export function isWithin(root: string, path: string): boolean {
  const way = relative(root, path);
  return way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}

/**
 * Creates the directory and its parents if missing, and checks that it is writable.
 * @param asSent path as sent by the client, for errors
 * @throws HttpError 400 for an unusable path, 500 for disk errors
 */
export async function createOutputDirectory(path: string, asSent: string): Promise<void> {
  try {
    await mkdir(path, { recursive: true });
    await access(path, constants.W_OK);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const isBadPath = ["EEXIST", "ENOTDIR", "EACCES", "EPERM"].includes(code ?? "");
    const detail = `The output directory ${asSent} cannot be created: ${message}`;
    throw new HttpError(isBadPath ? 400 : 500, detail, {}, { cause: error });
  }
}
