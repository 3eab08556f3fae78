/**
 * Where tasks live: what was accepted, what became of it. The interface is small enough for a key-value
 * server; `lmdb-store.ts` is the embedded implementation.
 */
import type { SongAdapter } from "../../engine/types.js";
import type { GenerationRequest } from "../request/schema.js";
import type { StoredAdapter } from "../storage/adapter-shelf.js";

export type TaskState = "queued" | "running" | "succeeded" | "failed";

/** Musical facts as clients read them; null where unknown. */
export interface SongMetas {
  bpm: number | null;
  /** Seconds; null where there is no music. */
  duration: number | null;
  genres: string;
  keyscale: string;
  timesignature: string;
  /** What the client wrote, before any rewriting. */
  prompt: string;
  lyrics: string;
}

/** What the record of a song says of it. */
export interface SongDescription {
  /** Final caption and lyrics, after sampling and formatting. */
  prompt: string;
  lyrics: string;
  /** What the renderer was told: `prompt`, or what the language model made of it. "" where there is no song. */
  caption: string;
  /** The language that the renderer was told; "" where there is no song. */
  vocalLanguage: string;
  /** What the song was rendered of, five a second; absent where codes had no part, and in records of older versions. */
  audioCodes?: number[];
  /** When lyrics are sung, a line `[mm:ss.xx]text` each; absent where nobody asked or the model cannot tell. */
  lrc?: string;
  /** Empty where only codes were asked for. */
  metas: SongMetas | Record<string, never>;
  generationInfo: string;
  ditModel: string;
}

/** A file that holds a song, and what it is; tasks of older versions have one description for all. */
export interface SongFile {
  /** Inside the audio folder. */
  name: string;
  bytes: number;
  description?: SongDescription;
}

/** What a finished job leaves behind; described is its first song, or what an analysis found. */
export interface SongResult extends SongDescription {
  /** One per audio file, in order. */
  seeds: number[];
  /** "" where the language model took no part. */
  lmModel: string;
  /** One per batch item. None where the task made no music. */
  audioFiles: SongFile[];
  /** What an analysis found, in the words that clients read; null for songs. */
  analysis: Readonly<Record<string, unknown>> | null;
  warnings: string[];
}

/** An adapter as a task names it: by its content, so that any worker can load it. */
export interface TaskAdapter extends StoredAdapter, Omit<SongAdapter, "path"> {}

export interface Task {
  /** UUID v4. */
  id: string;
  /** Order of acceptance; unique, ascending. */
  sequence: number;
  state: TaskState;
  createdAtMs: number;
  /** When it last began and when it ended, by the wall's clock; absent in records of older versions. */
  startedAtMs?: number;
  endedAtMs?: number;
  /** By the service's clock, which songs age by. */
  finishedAtMs: number | null;
  /** How often the process ended without warning while this task ran. */
  interruptions: number;
  request: GenerationRequest;
  /** The client's key of the submission, the digest of its body, and the position that was told. */
  submission?: { key: string; digest: string; position: number };
  /** The HTTP request that brought it, as the log names it. */
  requestId?: string;
  /** Whose turn it takes, and which: see `Turns` of the queue's rules. */
  share?: string;
  turn?: number;
  /** In a fleet: which workers can run it, and the claim of the one that does. */
  route?: string;
  claim?: string | undefined;
  /** In a fleet: the worker that runs it is to stop; and how often a full disk gave it back. */
  isCancelled?: boolean;
  /** In a fleet: what it is rendered under; the base model where there is none. */
  adapter?: TaskAdapter;
  diskFailures?: number;
  /** What a person calls it. */
  title?: string;
  /** Kept until a person removes it, whatever its age. */
  favorite?: boolean;
  /** Set once the task succeeded. */
  result: SongResult | null;
  /** Set once the task failed: one line a person can act on. */
  error: string | null;
  /** How far a failed task came, 0 to 1. */
  progress: number;
}

/** The record of a task is there and cannot be read. */
export class DamagedRecordError extends Error {
  constructor(
    readonly taskId: string,
    /** Its bytes are not those that were written, a newer version wrote it, or it was lost with a damaged store. */
    readonly kind: "corrupt" | "newer" | "lost",
    reason: string,
  ) {
    super(`the record of task ${taskId} cannot be read: ${reason}`);
    this.name = "DamagedRecordError";
  }
}

/** What a scan finds under an id; `bytes` is what the record takes. */
export type StoredTask =
  | { id: string; bytes: number; task: Task }
  | { id: string; bytes: number; task: null; damage: DamagedRecordError };

/** Every promise resolves once the change would survive the end of the process, or rejects with StoreError. */
export interface TaskStore {
  /** Adds a new task. */
  add(task: Task): Promise<void>;
  /** @throws DamagedRecordError */
  get(id: string): Promise<Task | undefined>;
  /**
   * Replaces a task by what `change` makes of it, with no other update between reading and writing.
   * Resolves with the new task, or undefined where there is none.
   */
  update(id: string, change: (task: Task) => Task): Promise<Task | undefined>;
  remove(id: string): Promise<void>;
  /** All tasks, in no order, one at a time: together they may be larger than the memory. */
  scan(): AsyncIterable<StoredTask>;
  close(): Promise<void>;
}
