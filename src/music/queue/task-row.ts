/** A task as lists and events show it: all that is known of it, plain JSON. */
import type { AudioFiles } from "../audio/audio-files.js";
import type { Fields } from "../request/json.js";
import { parametersOf, uploadsOf } from "../request/replay.js";
import type { TaskType } from "../request/schema.js";
import type { SongMetas, Task, TaskState } from "./store.js";
import { type LiveState, resultRecords } from "./task-status.js";

/** One song of a task. */
export interface SongRow {
  /** Relative URL of the audio. */
  file: string;
  /** Of the audio. */
  bytes: number;
  /** Makes this song alone, at `batch_size` 1. */
  seed: number;
  /** Final words, after sampling and formatting. */
  prompt: string;
  lyrics: string;
  /** What the renderer was told. */
  caption: string;
  vocal_language: string;
  metas: SongMetas | Record<string, never>;
  generation_info: string;
  dit_model: string;
}

export interface TaskRow {
  task_id: string;
  task_type: TaskType;
  state: TaskState;
  /** As POST /query_result tells it: 0 queued or running, 1 succeeded, 2 failed. */
  status: 0 | 1 | 2;
  stage: string;
  /** 0 to 1. */
  progress: number;
  progress_text: string;
  /** 1 for the next to start; null where the task does not wait. */
  queue_position: number | null;
  /** Unix seconds, with a fraction. */
  create_time: number;
  start_time: number | null;
  end_time: number | null;
  /** What a person calls it; "" where nobody has named it. */
  title: string;
  /** Kept whatever its age. */
  favorite: boolean;
  /** The client's words. */
  prompt: string;
  lyrics: string;
  /** The body of POST /release_task that makes the same again. */
  parameters: Fields;
  /** Files that must be sent beside `parameters`: they were uploaded, and went with the task. */
  uploads: string[];
  /** None before the task has succeeded, and of one that makes no music. */
  songs: SongRow[];
  /** What a task found out that makes no music. */
  analysis: Readonly<Record<string, unknown>> | null;
  lm_model: string;
  error: string | null;
  warnings: string[];
}

export function taskRow(task: Task, live: LiveState, audioFiles: AudioFiles): TaskRow {
  const { request, result } = task;
  const records = resultRecords(task, live, audioFiles);
  const { status, stage, progress, lm_model, error, warnings } = records[0] as (typeof records)[0];
  const hasEnded = task.finishedAtMs !== null;
  return {
    task_id: task.id,
    task_type: request.taskType,
    state: live.position === undefined ? task.state : "queued",
    status,
    stage,
    progress,
    progress_text: hasEnded ? "" : (live.progress?.text ?? ""),
    queue_position: live.position ?? null,
    create_time: task.createdAtMs / 1000,
    start_time: secondsOf(task.startedAtMs),
    end_time: secondsOf(task.endedAtMs ?? task.finishedAtMs),
    title: task.title ?? "",
    favorite: task.favorite ?? false,
    prompt: request.prompt,
    lyrics: request.lyrics,
    parameters: parametersOf(request),
    uploads: uploadsOf(request),
    songs: (result?.audioFiles ?? []).map(({ bytes }, index) => {
      const { file, prompt, lyrics, caption, vocal_language, metas, generation_info, dit_model } = records[
        index
      ] as (typeof records)[0];
      const seed = result?.seeds[index] as number;
      return {
        file,
        bytes,
        seed,
        prompt,
        lyrics,
        caption,
        vocal_language,
        metas,
        generation_info,
        dit_model,
      };
    }),
    analysis: result?.analysis ?? null,
    lm_model,
    error,
    warnings,
  };
}

function secondsOf(milliseconds: number | null | undefined): number | null {
  return milliseconds == null ? null : milliseconds / 1000;
}
