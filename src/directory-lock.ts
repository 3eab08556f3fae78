/** One process to a directory. The system takes the lock back when the process ends, however it ends. */
import { mkdir, open } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { tryLock } from "fs-native-extensions";

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
      `${directory} is in use by another Carillon. Stop that one, or set ${variable} to another directory.`,
    );
    this.name = "DirectoryInUseError";
  }
}

/**
 * Makes the directory where it is absent and locks it.
 * @param variable the setting that names the directory
 * @param patienceMs how long whoever holds it may take to end
 * @throws DirectoryInUseError
 */
export async function lockDirectory(
  directory: string,
  variable: string,
  patienceMs = 0,
): Promise<DirectoryLock> {
  await mkdir(directory, { recursive: true });
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
