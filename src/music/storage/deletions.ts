/**
 * Deletes files of tasks. A file is recorded until the storage has deleted it, so none is left for ever if the storage
 * refuses a deletion, or if it or the server is down.
 */
import { randomUUID } from "node:crypto";
import type { Logger } from "../../system/log.js";
import { withTimeLimit } from "../../system/time-limit.js";
import type { TaskState } from "../queue/store.js";
import type { DeletionRecord } from "./deletion-record.js";
import type { FileStorage } from "./file-storage.js";

/** Time limit of an attempt. Clients wait for it. */
const ATTEMPT_SECONDS = 5;
/** Maximum number of files that a sweep deletes at the same time. */
const MAX_AT_ONCE = 16;

class SilentStorageError extends Error {
  constructor(name: string) {
    super(`the storage did not delete ${name} within ${ATTEMPT_SECONDS} seconds`);
  }
}

export class Deletions {
  /** @param storages all folders whose files may be recorded */
  constructor(
    public record: DeletionRecord,
    private readonly storages: readonly FileStorage[],
    private readonly log: Logger,
  ) {}

  /** Whether a file is to be deleted. False if the record cannot be read. */
  has(name: string): Promise<boolean> {
    return this.record.has(name).catch(() => false);
  }

  /** Records that the files are deleted if the task has no record or has failed. @throws StoreError */
  async plan(task: string, names: readonly string[]): Promise<void> {
    if (names.length > 0) await this.record.add(task, names);
  }

  /**
   * Deletes the files of a task that was removed, has failed or was not accepted. The next sweep deletes those that the
   * storage does not delete now. Never rejects.
   */
  async discard(names: readonly string[], task: string = randomUUID()): Promise<void> {
    await this.plan(task, names).catch((err: unknown) =>
      this.log.error({ err, names }, "could not record files that are to be deleted"),
    );
    this.#report(await this.#attempt(names));
  }

  /** Deletes planned files. Returns an error for each one that the storage did not delete. */
  async #attempt(names: readonly string[]): Promise<Error[]> {
    const attempts = await Promise.allSettled(names.map((name) => this.#delete(name)));
    const deleted = names.filter((_, index) => attempts[index]?.status === "fulfilled");
    if (deleted.length > 0) {
      await this.record
        .drop(deleted)
        .catch((err: unknown) =>
          this.log.debug({ err }, "could not record that files were deleted; the next sweep tries again"),
        );
    }
    return attempts.flatMap((attempt) => (attempt.status === "rejected" ? [attempt.reason as Error] : []));
  }

  #report(failures: readonly Error[]): void {
    const [first] = failures;
    if (first === undefined) return;
    const details = { reason: first.message, count: failures.length };
    this.log.warn(details, "the storage did not delete files; the next sweep tries again");
  }

  async #delete(name: string): Promise<void> {
    const storage = this.storages.find(({ prefix }) => name.startsWith(prefix));
    if (storage === undefined) throw new Error(`no storage has files named ${name}`);
    const error = () => new SilentStorageError(name);
    await withTimeLimit({ ms: ATTEMPT_SECONDS * 1000, error }, (signal) =>
      storage.remove(name.slice(storage.prefix.length), signal),
    );
  }

  /**
   * Deletes recorded files that are still stored. Keeps the files of a task that is still there, because the record of
   * the task could not be removed. Stops at a file for which the storage does not answer, but not at one that it refuses.
   * @throws the signal's reason
   */
  async sweep(
    stateOf: (task: string) => Promise<TaskState | undefined>,
    signal?: AbortSignal,
  ): Promise<void> {
    const names: string[] = [];
    const kept: string[] = [];
    for (const [name, task] of await this.record.all()) {
      const state = await stateOf(task);
      (state === undefined || state === "failed" ? names : kept).push(name);
    }
    if (kept.length > 0) await this.record.drop(kept);
    const failures: Error[] = [];
    for (let begin = 0; begin < names.length; begin += MAX_AT_ONCE) {
      if (signal?.aborted || failures.some((error) => error instanceof SilentStorageError)) break;
      failures.push(...(await this.#attempt(names.slice(begin, begin + MAX_AT_ONCE))));
    }
    this.#report(failures);
    signal?.throwIfAborted();
  }
}
