import { readFile, writeFile } from "node:fs/promises";
import type { Logger } from "pino";
import { z } from "zod";
import { PARTIAL_SUFFIX, writeAtomically } from "../../system/atomic-file.js";
import type { Deletions } from "../storage/deletions.js";
import type { TaskSummary } from "./catalog.js";
import { DamagedRecordError, type TaskState } from "./store.js";
import type { TaskQueue } from "./task-queue.js";

/** Maximum age of temporary tasks, such as the songs of a radio. */
const TEMPORARY_SECONDS = 3600;

export interface RetentionLimits {
  /** Maximum age of finished tasks; 0: no limit. */
  maxAgeSeconds: number;
  /** Maximum size of all audio; 0: no limit. */
  maxAudioBytes: number;
  /** Maximum size of the records of finished tasks; 0: no limit. */
  maxRecordBytes: number;
}

export const retentionForecast = z
  .object({
    bytes: z.int().meta({ description: "size of all songs and of the recordings kept for them" }),
    max_bytes: z.int().nullable().meta({ description: "SVC_AUDIO_MAX_TOTAL_MB; null: no limit" }),
    max_age_seconds: z.number().nullable().meta({ description: "SVC_AUDIO_MAX_AGE_HOURS; null: no limit" }),
    expiries: z
      .record(
        z.string(),
        z.object({
          time: z.number().nullable().meta({ description: "Unix seconds; null: no age limit" }),
          after_bytes: z.int().nullable().meta({
            description: "total size of new songs after which this task is deleted; null: no size limit",
          }),
        }),
      )
      .meta({ description: "by task id; favourites and other tasks that stay are absent" }),
  })
  .meta({ id: "Retention", description: "when finished tasks are deleted: oldest first, favourites never" });

export type RetentionForecast = z.output<typeof retentionForecast>;

/**
 * Removes finished tasks and their audio, oldest first, if they are too old or too large in total. Favourites stay.
 */
export class Retention {
  constructor(
    private readonly queue: Pick<TaskQueue, "finished" | "remove" | "get">,
    private readonly deletions: Pick<Deletions, "plan" | "discard" | "sweep">,
    private readonly limits: RetentionLimits,
    private readonly log: Logger,
  ) {}

  /**
   * Removes the tasks that are beyond the limits.
   * @param nowMs current time, on the clock of `finishedAtMs`
   * @throws the signal's reason
   */
  async sweep(nowMs: number, signal?: AbortSignal): Promise<void> {
    const finished = await this.queue.finished();
    // The newest task stays whatever its size, because its client had no time yet to fetch the songs.
    const newest = finished.at(-1);
    let audioBytes = finished.reduce((sum, task) => sum + task.audioBytes, 0);
    let recordBytes = finished.reduce((sum, task) => sum + task.recordBytes, 0);
    const { maxAgeSeconds, maxAudioBytes, maxRecordBytes } = this.limits;
    for (const task of finished) {
      const maxAge = maxAgeOf(task, maxAgeSeconds);
      const isOld = maxAge > 0 && nowMs - (task.finishedAtMs as number) > maxAge * 1000;
      const isAudioOver = maxAudioBytes > 0 && audioBytes > maxAudioBytes && task.audioBytes > 0;
      const isRecordOver = maxRecordBytes > 0 && recordBytes > maxRecordBytes;
      if (task.isFavorite) continue;
      if (!isOld && (task === newest || (!isAudioOver && !isRecordOver))) continue;
      audioBytes -= task.audioBytes;
      recordBytes -= task.recordBytes;
      signal?.throwIfAborted();
      if ((await this.#removeRecord(task.id)) !== undefined) this.log.info({ task: task.id }, "task expired");
    }
    await this.deletions.sweep((id) => this.#stateOf(id), signal);
  }

  /** The record of a damaged task may be restored, so its files are kept. */
  async #stateOf(id: string): Promise<TaskState | undefined> {
    try {
      return (await this.queue.get(id))?.state;
    } catch (error) {
      if (error instanceof DamagedRecordError) return "succeeded";
      throw error;
    }
  }

  async forecast(ids: readonly string[]): Promise<RetentionForecast> {
    const { maxAgeSeconds, maxAudioBytes } = this.limits;
    const requested = new Set(ids);
    const finished = await this.queue.finished();
    const bytes = finished.reduce((sum, task) => sum + task.audioBytes, 0);
    const expiries: RetentionForecast["expiries"] = {};
    let freedBytes = 0;
    for (const task of finished) {
      if (task.isFavorite) continue;
      if (requested.has(task.id)) {
        const maxAge = maxAgeOf(task, maxAgeSeconds);
        const time = maxAge > 0 ? (task.finishedAtMs as number) / 1000 + maxAge : null;
        const isSized = maxAudioBytes > 0 && task.audioBytes > 0;
        const after_bytes = isSized ? Math.max(0, maxAudioBytes - bytes + freedBytes) : null;
        if (time !== null || after_bytes !== null) expiries[task.id] = { time, after_bytes };
      }
      freedBytes += task.audioBytes;
    }
    return {
      bytes,
      max_bytes: maxAudioBytes > 0 ? maxAudioBytes : null,
      max_age_seconds: maxAgeSeconds > 0 ? maxAgeSeconds : null,
      expiries,
    };
  }

  /**
   * Removes a finished task now. Files that the storage does not delete are absent for clients, and deleted by a sweep.
   * Returns false if no task has this id.
   * @throws StoreError; the task then stays
   */
  async remove(id: string): Promise<boolean> {
    const removed = await this.#removeRecord(id);
    if (removed === undefined) return false;
    // Records them again: a sweep that read the task just before its removal has dropped the plan.
    await this.deletions.discard(objectNames(removed), id);
    return true;
  }

  /** Plans the deletion of the files and then deletes the record: no record may point to missing audio. */
  #removeRecord(id: string): Promise<TaskSummary | undefined> {
    return this.queue.remove(id, (task) => this.deletions.plan(id, objectNames(task)));
  }
}

/** Maximum age of a finished task; 0: no limit. */
function maxAgeOf({ isTemporary }: TaskSummary, maxAgeSeconds: number): number {
  if (!isTemporary) return maxAgeSeconds;
  return maxAgeSeconds > 0 ? Math.min(maxAgeSeconds, TEMPORARY_SECONDS) : TEMPORARY_SECONDS;
}

function objectNames({ audioNames, uploadNames }: TaskSummary): string[] {
  return [...audioNames.map((name) => `audio/${name}`), ...uploadNames.map((name) => `uploads/${name}`)];
}

/** Saved state: the same moment on the retention clock and on the system clock. */
const SAVED = z.object({ serviceMs: z.number().positive(), wallMs: z.number().positive() });

/**
 * Clock for the age of finished tasks. It follows the monotonic clock, so changing the system clock does not
 * expire tasks. Downtime is measured by the system clock and counts for at most `maxGapMs` per restart. The
 * clock is saved to a file.
 */
export class RetentionClock {
  #baseMs = 0;
  #steadyBaseMs = 0;

  constructor(
    private readonly file: string,
    private readonly maxGapMs: number,
    private readonly log: Logger,
    private readonly wallMs: () => number = Date.now,
  ) {}

  /**
   * Starts the clock from the saved time. Must be called before the other methods.
   * The clock also advances by the downtime (the time since the save), but by at most `maxGapMs`.
   * @param newestMs start if no time was saved: finish time of the newest task, or null if there are no tasks
   */
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

  /** Saves the clock. If that fails, the time since the last save is lost, and tasks expire later. */
  async save(): Promise<void> {
    const times = JSON.stringify({ serviceMs: this.nowMs(), wallMs: this.wallMs() });
    try {
      await writeAtomically(this.file, (partial) => writeFile(partial, times), {
        partial: this.file + PARTIAL_SUFFIX,
      });
    } catch (err) {
      this.log.warn({ err }, "could not save the retention clock; songs expire later than configured");
    }
  }

  async #read(): Promise<z.infer<typeof SAVED> | null> {
    try {
      return SAVED.parse(JSON.parse(await readFile(this.file, "utf8")));
    } catch (err) {
      if ((err as NodeJS.ErrnoException).code !== "ENOENT") {
        this.log.warn(
          { err },
          "could not read the saved retention clock; it restarts at the time of the newest song",
        );
      }
      return null;
    }
  }
}
