/** One process to a directory. The system takes the lock back when the process ends, however it ends. */
import { mkdir, open, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { tryLock } from "fs-native-extensions";
import { ConfigError } from "./config.js";

/** Stays behind empty; only its lock means something. */
const LOCK_FILE = "lock";
const RETRY_INTERVAL_MS = 100;

export interface DirectoryLock {
  release(): Promise<void>;
}

/** Another process, or another service of this one, works on the directory. */
export class DirectoryInUseError extends Error {
  constructor(
    readonly directory: string,
    variable: string,
  ) {
    super(
      `${directory} is in use by another Carillon. Stop that one, or set ${variable} to another directory, ` +
        "as --home does for a whole server.",
    );
    this.name = "DirectoryInUseError";
  }
}

/**
 * Makes the directory where it is absent and locks it.
 * @param variable the setting that names the directory
 * @param patienceMs how long whoever holds it may take to end
 * @throws DirectoryInUseError, ConfigError where it cannot be made
 */
export async function lockDirectory(
  directory: string,
  variable: string,
  patienceMs = 0,
): Promise<DirectoryLock> {
  await makeDirectory(directory, variable);
  const file = await open(join(directory, LOCK_FILE), "a");
  try {
    const deadlineMs = performance.now() + patienceMs;
    while (!tryLock(file.fd)) {
      if (performance.now() >= deadlineMs) throw new DirectoryInUseError(directory, variable);
      await delay(RETRY_INTERVAL_MS);
    }
  } catch (error) {
    await file.close();
    throw error;
  }
  return { release: () => file.close() };
}

/**
 * Makes a directory and its parents, where they are absent.
 * @param variable the setting that names it
 * @throws ConfigError
 */
export async function makeDirectory(directory: string, variable: string): Promise<void> {
  await makeWithParents(directory).catch((error: Error) => {
    throw new ConfigError(variable, `${variable}: ${directory} cannot be made: ${error.message}`);
  });
}

/** Node's own `recursive` never comes back from where nothing can be made, as from /proc. */
async function makeWithParents(directory: string): Promise<void> {
  if (await isDirectory(directory)) return;
  if (!(await isDirectory(dirname(directory)))) await makeWithParents(dirname(directory));
  await mkdir(directory).catch(async (error: Error) => {
    // Another process may have made it meanwhile.
    if (!(await isDirectory(directory))) throw error;
  });
}

export async function isDirectory(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
}
