/** Locks a directory for one process. The operating system releases the lock when the process ends for any reason. */
/// <reference path="./fs-native-extensions.d.ts" />
import { mkdir, open, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { tryLock } from "fs-native-extensions";
import { ConfigError } from "./config-error.js";

/** Name of the lock file. The empty file is never deleted; only the lock on it counts. */
const LOCK_FILE = "lock";
const RETRY_INTERVAL_MS = 100;

/** Another process, or another service in this one, uses the directory. */
export class DirectoryInUseError extends ConfigError {
  constructor(
    readonly directory: string,
    variable: string,
  ) {
    super(
      variable,
      `${directory} is in use by another Carillon server. Stop that server, or set ${variable} to another directory ` +
        "(--home moves all directories of a server).",
    );
    this.name = "DirectoryInUseError";
  }
}

/**
 * Creates the directory if it is missing, and locks it.
 * @param variable name of the setting that contains the directory, for errors
 * @param wait time to wait for a lock that is not free, as its holder may be stopping, and a function that is then
 * called once; absent: fails at once
 * @throws DirectoryInUseError, or ConfigError if the directory cannot be created or locked
 */
export async function lockDirectory(
  directory: string,
  variable: string,
  wait?: { limitMs: number; onWait: () => void },
): Promise<{ release(): Promise<void> }> {
  await makeDirectory(directory, variable);
  const file = await open(join(directory, LOCK_FILE), "a").catch((error: Error) => {
    throw new ConfigError(variable, `${variable}: ${directory} cannot be locked: ${error.message}`);
  });
  try {
    const deadlineMs = performance.now() + (wait?.limitMs ?? 0);
    for (let attempt = 0; !tryLock(file.fd); attempt++) {
      if (performance.now() >= deadlineMs) throw new DirectoryInUseError(directory, variable);
      if (attempt === 0) wait?.onWait();
      await delay(RETRY_INTERVAL_MS);
    }
  } catch (error) {
    await file.close();
    throw error;
  }
  return { release: () => file.close() };
}

/**
 * Creates a directory and its parents if they are missing.
 * @param variable name of the setting that contains the directory, for errors
 * @throws ConfigError
 */
export async function makeDirectory(directory: string, variable: string): Promise<void> {
  await makeWithParents(directory).catch((error: Error) => {
    throw new ConfigError(variable, `${variable}: ${directory} cannot be created: ${error.message}`);
  });
}

/**
 * Creates parents one by one. Node's option `recursive` hangs in file systems that allow no new directories, such as
 * /proc.
 */
async function makeWithParents(directory: string): Promise<void> {
  if (await isDirectory(directory)) return;
  if (!(await isDirectory(dirname(directory)))) await makeWithParents(dirname(directory));
  await mkdir(directory).catch(async (error: Error) => {
    // Another process may have created the directory.
    if (!(await isDirectory(directory))) throw error;
  });
}

export async function isDirectory(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
}
