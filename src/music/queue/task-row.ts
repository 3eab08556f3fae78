/** A task as lists and events show it: all that is known of it, plain JSON. */
import { z } from "zod";
import type { AudioFiles } from "../audio/audio-files.js";
import { parametersOf, uploadsOf } from "../request/replay.js";
import { TASK_TYPES } from "../request/schema.js";
import type { LiveState } from "./job-queue.js";
import type { Task } from "./store.js";
import { lrcSchema, resultRecords, songMetasSchema, taskStatusSchema } from "./task-status.js";

const songSchema = z
  .object({
    file: z.string().meta({ description: "relative URL of the audio" }),
    bytes: z.int().meta({ description: "of the audio" }),
    seed: z.int().meta({ description: "makes this song alone, at batch_size 1" }),
    prompt: z.string().meta({ description: "final words, after sampling and formatting" }),
    lyrics: z.string(),
    caption: z.string().meta({ description: "what the renderer was told" }),
    vocal_language: z.string(),
    audio_codes: z.array(z.int()).optional().meta({
      description:
        "what the song was rendered of, as audio_code_string takes it; of GET /v1/tasks/{id} alone, where codes had a part",
    }),
    metas: songMetasSchema,
    lrc: lrcSchema,
    generation_info: z.string().meta({ description: "text for people" }),
    dit_model: z.string(),
  })
  .meta({ id: "Song" });

const unixSeconds = z.number().meta({ description: "Unix seconds, with a fraction" });

export const taskRowSchema = z
  .object({
    task_id: z.string(),
    task_type: z.enum(TASK_TYPES),
    state: z.enum(["queued", "running", "succeeded", "failed"]),
    status: taskStatusSchema,
    stage: z.string(),
    progress: z.number().min(0).max(1),
    progress_text: z.string(),
    preview_seconds: z.number().min(0).meta({
      description: "what GET /v1/tasks/{id}/preview plays of the first song by now; 0 for an ended task",
    }),
    queue_position: z
      .int()
      .nullable()
      .meta({ description: "1 for the next to start; null: the task does not wait" }),
    create_time: unixSeconds,
    start_time: unixSeconds.nullable(),
    end_time: unixSeconds.nullable(),
    title: z.string().meta({ description: "what a person calls it" }),
    favorite: z.boolean().meta({ description: "kept whatever its age" }),
    prompt: z.string().meta({ description: "the client's words" }),
    lyrics: z.string(),
    parameters: z
      .record(z.string(), z.unknown())
      .meta({ description: "the body of POST /release_task that makes the same again" }),
    uploads: z
      .array(z.string())
      .meta({ description: "files to send beside parameters: they went with the task that they came with" }),
    songs: z
      .array(songSchema)
      .meta({ description: "none before the task has succeeded, and of one that makes no music" }),
    analysis: z
      .record(z.string(), z.unknown())
      .nullable()
      .meta({ description: "what a task found out that makes no music" }),
    lm_model: z.string(),
    error: z.string().nullable(),
    warnings: z.array(z.string()).meta({ description: "what was not taken literally" }),
  })
  .meta({ id: "Task" });

export type TaskRow = z.output<typeof taskRowSchema>;

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
    preview_seconds: hasEnded ? 0 : (live.progress?.previewSeconds ?? 0),
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
      const { file, prompt, lyrics, caption, vocal_language, metas, lrc, generation_info, dit_model } =
        records[index] as (typeof records)[0];
      const seed = result?.seeds[index] as number;
      const words = { prompt, lyrics, caption, vocal_language, metas, ...(lrc !== undefined && { lrc }) };
      return { file, bytes, seed, ...words, generation_info, dit_model };
    }),
    analysis: result?.analysis ?? null,
    lm_model,
    error,
    warnings,
  };
}

/** With what is too large for a list. */
export function wholeTaskRow(task: Task, live: LiveState, audioFiles: AudioFiles): TaskRow {
  const row = taskRow(task, live, audioFiles);
  const songs = row.songs.map((song, index) => {
    const codes = task.result?.audioFiles[index]?.description?.audioCodes;
    return codes === undefined ? song : { ...song, audio_codes: codes };
  });
  return { ...row, songs };
}

function secondsOf(milliseconds: number | null | undefined): number | null {
  return milliseconds == null ? null : milliseconds / 1000;
}
