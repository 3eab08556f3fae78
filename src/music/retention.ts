import type { Logger } from "pino";
import type { AudioFiles } from "./audio-files.js";
import type { JobStatistics } from "./statistics.js";
import type { Task, TaskStore } from "./store.js";

export interface RetentionLimits {
  /** Finished tasks older than this go; 0: no limit. */
  maxAgeSeconds: number;
  /** While the audio of all tasks is larger, the oldest finished ones go; 0: no limit. */
  maxAudioBytes: number;
}

/** Lets finished tasks and their audio go by age and by total size, oldest first. */
export class Retention {
  constructor(
    private readonly store: TaskStore,
    private readonly audioFiles: AudioFiles,
    private readonly statistics: JobStatistics,
    private readonly limits: RetentionLimits,
    private readonly log: Logger,
  ) {}

  /** Removes audio that no finished task names: leftovers of a process that died. Call before jobs run. */
  async removeOrphans(): Promise<void> {
    const owned = new Set<string>();
    for await (const task of this.store.scan()) for (const { name } of audioOf(task)) owned.add(name);
    await this.audioFiles.removeOrphans((name) => owned.has(name));
  }

  /** One sweep. `nowMs` is the time to judge ages by. */
  async sweep(nowMs: number): Promise<void> {
    const finished: Task[] = [];
    for await (const task of this.store.scan()) if (task.finishedAtMs !== null) finished.push(task);
    finished.sort((a, b) => (a.finishedAtMs as number) - (b.finishedAtMs as number));

    // The newest stays whatever its size: nobody could have fetched it yet.
    const newest = finished.at(-1);
    let totalBytes = finished.reduce((sum, task) => sum + audioBytes(task), 0);
    for (const task of finished) {
      const isOld =
        this.limits.maxAgeSeconds > 0 &&
        nowMs - (task.finishedAtMs as number) > this.limits.maxAgeSeconds * 1000;
      const isOverSize =
        this.limits.maxAudioBytes > 0 &&
        totalBytes > this.limits.maxAudioBytes &&
        audioBytes(task) > 0 &&
        task !== newest;
      if (!isOld && !isOverSize) continue;
      totalBytes -= audioBytes(task);
      await this.#expire(task);
    }
  }

  /** The record goes first: a record without audio would be a broken promise, audio without one is an orphan. */
  async #expire(task: Task): Promise<void> {
    await this.store.remove(task.id);
    this.statistics.moved(task.state, null);
    await this.audioFiles.remove(audioOf(task).map(({ name }) => name));
    this.log.info({ task: task.id }, "task expired");
  }
}

function audioOf(task: Task): { name: string; bytes: number }[] {
  return task.result?.audioFiles ?? [];
}

function audioBytes(task: Task): number {
  return audioOf(task).reduce((sum, { bytes }) => sum + bytes, 0);
}
