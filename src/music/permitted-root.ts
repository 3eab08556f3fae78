/** Keeps the paths that requests name inside one directory, and makes those that are written to. */
import { access, constants, lstat, mkdir, realpath } from "node:fs/promises";
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path";
import { HttpError, RequestError } from "./errors.js";

/** A path that leaves the permitted root, or of which that cannot be told. */
export class UnsafePathError extends RequestError {
  constructor(path: string, reason: string, options?: ErrorOptions) {
    super(`Rejected unsafe path: ${path} ${reason}`, options);
    this.name = "UnsafePathError";
  }
}

/** The directory that all paths of training requests must lie in: SVC_TRAINING_ROOT. */
export class PermittedRoot {
  /** @param directory absolute */
  constructor(readonly directory: string) {}

  /**
   * The absolute path without symbolic links that `path` stands for; a relative one starts at the root. What does not
   * exist yet is resolved from its nearest existing parent. The root itself is permitted.
   * @throws UnsafePathError
   */
  async resolve(path: string): Promise<string> {
    const root = await realpath(this.directory).catch((error: Error) => {
      throw new HttpError(500, `SVC_TRAINING_ROOT cannot be used: ${error.message}`, {}, { cause: error });
    });
    const real = await resolveLinks(resolve(root, path)).catch((error: Error) => {
      throw error instanceof UnsafePathError
        ? error
        : new UnsafePathError(path, `cannot be resolved: ${error.message}`, { cause: error });
    });
    if (!isWithin(root, real)) {
      throw new UnsafePathError(path, `lies outside ${root}, the setting SVC_TRAINING_ROOT`);
    }
    return real;
  }
}

/** @param path absolute and normalised */
async function resolveLinks(path: string): Promise<string> {
  try {
    return await realpath(path);
  } catch (error) {
    if (!isAbsence(error)) throw error;
  }
  // Writing through a link without target would create that target, wherever it is.
  if (await isLink(path)) throw new UnsafePathError(path, "is a symbolic link to nothing");
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

/** By path components, of absolute paths: a sibling whose name begins alike is outside, the root itself inside. */
export function isWithin(root: string, path: string): boolean {
  const way = relative(root, path);
  return way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}

/**
 * Makes the directory where it does not exist, with its parents, and checks that it can be written to.
 * @param asSent what the client called it
 * @throws HttpError 400 for a path that cannot be one, 500 where the disk refuses
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
