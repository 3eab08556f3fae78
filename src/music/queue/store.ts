/** The record of a task, as `lmdb-store.ts` and the fleet store it. */
import { z } from "zod";
import type { Seed, SongScores } from "../../engine/types.js";
import type { GenerationRequest } from "../request/generation-request.js";

export const TASK_STATES = ["queued", "running", "succeeded", "failed"] as const;
export type TaskState = (typeof TASK_STATES)[number];

/** Musical metadata as clients see it; null if unknown. */
export const songMetas = z.object({
  bpm: z.number().nullable(),
  duration: z.number().nullable().meta({ description: "seconds; null without music" }),
  genres: z.string(),
  keyscale: z.string(),
  timesignature: z.string(),
  prompt: z.string().meta({ description: "the client's prompt, before any rewriting" }),
  lyrics: z.string(),
});
export type SongMetas = z.output<typeof songMetas>;

export interface SongDescription {
  /** Final caption and lyrics, after sampling and formatting. */
  prompt: string;
  lyrics: string;
  /** Caption given to the renderer: `prompt`, or the language model's version of it. "" if no song was made. */
  caption: string;
  /** Language given to the renderer; "" if no song was made. */
  vocalLanguage: string;
  /** Audio codes that the song was rendered from, five per second. */
  audioCodes?: number[];
  /** Lyric timestamps, as lines `[mm:ss.xx]text`. Absent if not requested or if the model cannot align lyrics. */
  lrc?: string;
  /** Waveform outline of the song, see `peaksOf`. Absent in records of older versions. */
  peaks?: number[];
  /** Integrated loudness of the file in LUFS. Absent for silence, and in records of older versions. */
  loudness?: number;
  /** Largest absolute sample of the file, 1 at full scale. Absent in records of older versions. */
  peakLevel?: number;
  /** Scores; absent if they were not requested or if no model could score the song. */
  scores?: SongScores;
  /** Musical metadata; empty if only codes were requested. */
  metas: SongMetas | Record<string, never>;
  generationInfo: string;
  ditModel: string;
  /** Name of the stem, in songs of the task types extract and lego. */
  trackName?: string;
}

/**
 * An audio file. In tasks of older versions the files have no descriptions; the task has one for all of them.
 */
export interface SongFile extends StoredFile {
  description?: SongDescription;
  /** File with the latents of the song, if the request set return_latents. */
  latents?: StoredFile;
}

export interface StoredFile {
  /** File name inside the audio folder. */
  name: string;
  bytes: number;
}

/** Files that a task has made. */
export function filesOf(result: Pick<SongResult, "audioFiles" | "latents"> | null): StoredFile[] {
  const songs = result?.audioFiles ?? [];
  const files = songs.flatMap(({ name, bytes, latents }) => [{ name, bytes }, ...(latents ? [latents] : [])]);
  return [...files, ...(result?.latents ? [result.latents] : [])];
}

/**
 * Result of a finished job. The inherited fields describe the first song or, after an analysis, the analysed
 * music.
 */
export interface SongResult extends SongDescription {
  /** Seeds, one per audio file, in order. */
  seeds: Seed[];
  /** Name of the language model; "" if none was used. */
  lmModel: string;
  /** Audio files, one per batch item; empty if the task made no music. */
  audioFiles: SongFile[];
  /** Result of an analysis, with the field names of the HTTP API; null for songs. */
  analysis: Readonly<Record<string, unknown>> | null;
  /** File with the latents of the analysed source. */
  latents?: StoredFile;
  warnings: string[];
}

export interface CallbackRecord {
  state: "pending" | "delivered" | "failed";
  attempts: number;
  /** Why the last attempt to call back failed. */
  error?: string;
  /** Time of the next attempt to call back, on the system clock. */
  nextAtMs?: number;
}

export interface Task {
  /** Id of the task, a UUID v4. */
  id: string;
  /** Number of the task in the order of acceptance; unique. */
  sequence: number;
  state: TaskState;
  createdAtMs: number;
  /** Start and end of the last run, on the system clock; absent in records of older versions. */
  startedAtMs?: number;
  endedAtMs?: number;
  /**
   * End of the task on the retention clock (Redis's clock in a fleet). The age of the task counts from this
   * time.
   */
  finishedAtMs: number | null;
  /** How often the process died while this task ran. */
  interruptions: number;
  request: GenerationRequest;
  /** Idempotency key of the submission, digest of its body, and the queue position in the response. */
  submission?: { key: string; digest: string; position: number };
  /** Id of the HTTP request, as in log lines. */
  requestId?: string;
  /** Client that submitted the task. The field keeps the name that older versions gave it. */
  share?: string;
  /** Tasks with a lower turn start earlier (see `FairTurns`). */
  turn?: number;
  /** Queue that holds the task; only in a fleet. */
  route?: string;
  /** Token of the run that has claimed the task; only in a fleet. */
  claim?: string | undefined;
  /** Whether the worker must abort the task; only in a fleet. */
  isCancelled?: boolean;
  diskFailures?: number;
  /** Id of the first task in the group of retakes that this task belongs to. */
  retakeOf?: string;
  title?: string;
  /** Whether the task never expires; a user can still remove it. */
  favorite?: boolean;
  /** Whether the task expires an hour after its end, as a client has set it later; absent: `request.isTemporary`. */
  isTemporary?: boolean;
  /** Result of a task that has succeeded. */
  result: SongResult | null;
  /** Error of a task that has failed: one line that says what to do. */
  error: string | null;
  /** Progress that a failed task had reached, 0 to 1. */
  progress: number;
  /** State of the callback; absent before the first attempt. */
  callback?: CallbackRecord;
}

/** Whether the task expires an hour after its end. */
export function isTemporary({
  isTemporary: marked,
  request,
}: Pick<Task, "isTemporary" | "request">): boolean {
  return marked ?? request.isTemporary ?? false;
}

/** The record of a task exists but cannot be read. */
export class DamagedRecordError extends Error {
  constructor(
    readonly taskId: string,
    /**
     * corrupt: the bytes fail the checksum. newer: a later version wrote the record. lost: only the id survived
     * when a damaged store was restored.
     */
    readonly kind: "corrupt" | "newer" | "lost",
    reason: string,
  ) {
    super(`cannot read the record of task ${taskId}: ${reason}`);
    this.name = "DamagedRecordError";
  }
}

/** Task read by a scan, or the reason why its record cannot be read. `bytes` is the size of the record. */
export type StoredTask =
  | { id: string; bytes: number; task: Task }
  | { id: string; bytes: number; task: null; damage: DamagedRecordError };
