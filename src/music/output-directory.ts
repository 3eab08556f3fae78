import { access, constants, mkdir } from "node:fs/promises";
import { HttpError } from "./errors.js";

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
