import { readFile, writeFile } from "node:fs/promises";
import type { Logger } from "pino";
import { z } from "zod";
import { PARTIAL_SUFFIX, writeWhole } from "../../whole-file.js";
import type { AudioFiles } from "../audio/audio-files.js";
import type { JobQueue } from "./job-queue.js";

export interface RetentionLimits {
  /** Finished tasks older than this go; 0: no limit. */
  maxAgeSeconds: number;
  /** While the audio of all tasks is larger, the oldest finished ones go; 0: no limit. */
  maxAudioBytes: number;
  /** While the records of all finished tasks are larger, the oldest go; 0: no limit. */
  maxRecordBytes: number;
}

/** Lets finished tasks and their audio go by age and by total size, oldest first; favourites stay. */
export class Retention {
  constructor(
    private readonly queue: Pick<JobQueue, "finished" | "remove">,
    private readonly audioFiles: AudioFiles,
    private readonly limits: RetentionLimits,
    private readonly log: Logger,
  ) {}

  /** One sweep. `nowMs` is the time to judge ages by. */
  async sweep(nowMs: number): Promise<void> {
    const finished = await this.queue.finished();
    // The newest stays whatever its size: nobody could have fetched it yet.
    const newest = finished.at(-1);
    let audioBytes = finished.reduce((sum, task) => sum + task.audioBytes, 0);
    let recordBytes = finished.reduce((sum, task) => sum + task.recordBytes, 0);
    const { maxAgeSeconds, maxAudioBytes, maxRecordBytes } = this.limits;
    for (const task of finished) {
      const isOld = maxAgeSeconds > 0 && nowMs - (task.finishedAtMs as number) > maxAgeSeconds * 1000;
      const isAudioOver = maxAudioBytes > 0 && audioBytes > maxAudioBytes && task.audioBytes > 0;
      const isRecordOver = maxRecordBytes > 0 && recordBytes > maxRecordBytes;
      if (task.isFavorite) continue;
      if (!isOld && (task === newest || (!isAudioOver && !isRecordOver))) continue;
      audioBytes -= task.audioBytes;
      recordBytes -= task.recordBytes;
      await this.remove(task.id);
      this.log.info({ task: task.id }, "task expired");
    }
  }

  /** Lets a finished task go at once. False where there is none of this id. @throws StoreError; the task is then kept */
  async remove(id: string): Promise<boolean> {
    // The record goes first: a record without audio would be a broken promise.
    const removed = await this.queue.remove(id);
    if (removed === undefined) return false;
    await this.audioFiles.remove(removed.audioNames);
    return true;
  }
}

const SAVED = z.object({ serviceMs: z.number().positive(), wallMs: z.number().positive() });

/**
 * The time that songs age by. It runs with the system's steady clock, so that one who sets the clock of the wall ages
 * nothing. Time that the service did not run counts by the wall, but no start adds more than `maxGapMs` and none takes
 * any away. It begins as the wall's time and is kept in a file from one start to the next.
 */
export class ServiceClock {
  #baseMs = 0;
  #steadyBaseMs = 0;

  constructor(
    private readonly file: string,
    private readonly maxGapMs: number,
    private readonly log: Logger,
    private readonly wallMs: () => number = Date.now,
  ) {}

  /** Call before anything else. `newestMs`: a time that has certainly been, for the first start; null: none is known. */
  async start(newestMs: number | null): Promise<void> {
    const wallMs = this.wallMs();
    const saved = await this.#read();
    const firstMs = Math.min(newestMs ?? wallMs, wallMs);
    const last = saved ?? { serviceMs: firstMs, wallMs: firstMs };
    this.#baseMs = last.serviceMs + Math.min(Math.max(wallMs - last.wallMs, 0), this.maxGapMs);
    this.#steadyBaseMs = performance.now();
    await this.save();
  }

  nowMs(): number {
    return Math.round(this.#baseMs + performance.now() - this.#steadyBaseMs);
  }

  /** Keeps the time for the next start. Where that fails, ages stand still until then: nothing goes too early. */
  async save(): Promise<void> {
    const times = JSON.stringify({ serviceMs: this.nowMs(), wallMs: this.wallMs() });
    try {
      await writeWhole(this.file, (partial) => writeFile(partial, times), {
        partial: this.file + PARTIAL_SUFFIX,
      });
    } catch (err) {
      this.log.warn({ err }, "the age of songs could not be written down");
    }
  }

  async #read(): Promise<z.infer<typeof SAVED> | null> {
    try {
      return SAVED.parse(JSON.parse(await readFile(this.file, "utf8")));
    } catch (err) {
      if ((err as NodeJS.ErrnoException).code !== "ENOENT") {
        this.log.warn({ err }, "what was written down of the age of songs cannot be read");
      }
      return null;
    }
  }
}
