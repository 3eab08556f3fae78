/** A task as JSON for task lists and events. */

import { z } from "zod";
import type { Seed } from "../../engine/types.js";
import { noteOf, noteSchema } from "../../notes.js";
import type { AudioFiles } from "../audio/audio-files.js";
import { lostUploadFields, parametersOf } from "../request/replay.js";
import { TASK_TYPES } from "../request/task-types.js";
import { isTemporary, type SongFile, type SongResult, TASK_STATES, type Task } from "./store.js";
import type { LiveState } from "./task-queue.js";
import { songFields, songsOf, taskRecord, taskStatusSchema } from "./task-status.js";

const songSchema = z
  .object({
    ...songFields,
    bytes: z.int().meta({ description: "size of the audio" }),
    seed: z.int().or(z.string()).meta({
      description: "reproduces this song with batch_size 1; a string of digits above 2^53 - 1",
    }),
    audio_codes: z.array(z.int()).optional().meta({
      description:
        "audio codes of the song, as audio_code_string accepts them; only in GET /v1/tasks/{id}, if codes were used",
    }),
    loudness: z.number().optional().meta({ description: "integrated loudness in LUFS (EBU R 128)" }),
    peak_level: z.number().min(0).max(1).optional().meta({ description: "largest sample, 1 at full scale" }),
    peaks: z.array(z.int().min(0).max(100)).optional().meta({
      description: "waveform outline: peaks of 96 equal parts of the song, in percent of the largest peak",
    }),
  })
  .meta({ id: "Song" });

const unixSeconds = z.number().meta({ description: "Unix seconds, with a fraction" });

export const taskRowSchema = z
  .object({
    task_id: z.string(),
    task_type: z.enum(TASK_TYPES),
    state: z.enum(TASK_STATES),
    status: taskStatusSchema,
    stage: z.string(),
    progress: z.number().min(0).max(1),
    progress_text: z.string(),
    preview_seconds: z.number().min(0).meta({
      description: "seconds of the first song that GET /v1/tasks/{id}/preview can play; 0 for an ended task",
    }),
    queue_position: z
      .int()
      .nullable()
      .meta({ description: "1 for the next to start; null if the task is not waiting" }),
    create_time: unixSeconds,
    start_time: unixSeconds.nullable(),
    end_time: unixSeconds.nullable(),
    retake_of: z.string().nullable().meta({ description: "first task of the group of retakes" }),
    title: z.string().meta({ description: "title given by the user" }),
    favorite: z.boolean().meta({ description: "never expires" }),
    temporary: z.boolean().meta({ description: "expires an hour after it ended, unless it is a favourite" }),
    prompt: z.string().meta({ description: "the client's prompt" }),
    lyrics: z.string(),
    parameters: z
      .record(z.string(), z.unknown())
      .meta({ description: "body of POST /release_task that repeats the task" }),
    uploads: z.array(z.string()).meta({
      description:
        "upload fields to send again with the parameters; the recordings of a succeeded task are kept with its songs",
    }),
    songs: z.array(songSchema).meta({ description: "empty until the task has succeeded, and for analyses" }),
    analysis: z
      .record(z.string(), z.unknown())
      .nullable()
      .meta({ description: "result of an analysis; `latents` is their URL; null for songs" }),
    lm_model: z.string(),
    error: z.string().nullable(),
    error_note: noteSchema.nullable().meta({ description: "`error` with a code" }),
    warnings: z.array(z.string()).meta({ description: "changes that the server made to the request" }),
    notes: z.array(noteSchema).meta({ description: "`warnings` with codes" }),
    callback: z
      .object({
        state: z.enum(["pending", "delivered", "failed"]),
        attempts: z.int(),
        error: z.string().nullable().meta({ description: "why the last attempt failed" }),
      })
      .nullable()
      .meta({ description: "state of the call of callback_url; null if the task has none" }),
  })
  .meta({ id: "Task" });

export type TaskRow = z.output<typeof taskRowSchema>;

export function taskRow(task: Task, live: LiveState, audioFiles: AudioFiles): TaskRow {
  const { request, result } = task;
  const { status, stage, progress, lm_model, error, warnings } = taskRecord(task, live);
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
    retake_of: task.retakeOf ?? null,
    title: task.title ?? "",
    favorite: task.favorite ?? false,
    temporary: isTemporary(task),
    prompt: request.words.prompt,
    lyrics: request.words.lyrics,
    parameters: parametersOf(task),
    uploads: lostUploadFields(task),
    songs: result === null ? [] : rowsOfSongs(result, audioFiles),
    analysis: result?.analysis
      ? { ...result.analysis, ...(result.latents && { latents: audioFiles.urlOf(result.latents.name) }) }
      : null,
    lm_model,
    error,
    error_note: error === null ? null : noteOf(error),
    warnings,
    notes: warnings.map(noteOf),
    callback: callbackOf(task),
  };
}

function callbackOf({ request, callback }: Task): TaskRow["callback"] {
  if (request.callbackUrl === null) return null;
  const { state, attempts, error = null } = callback ?? { state: "pending", attempts: 0 };
  return { state, attempts, error };
}

function rowsOfSongs(result: SongResult, audioFiles: AudioFiles): TaskRow["songs"] {
  return songsOf(result, audioFiles).map((song, index) => {
    const { bytes, description } = result.audioFiles[index] as SongFile;
    const { peaks, loudness, peakLevel } = description ?? {};
    return {
      ...song,
      bytes,
      seed: result.seeds[index] as Seed,
      ...(peaks !== undefined && { peaks }),
      ...(loudness !== undefined && { loudness }),
      ...(peakLevel !== undefined && { peak_level: peakLevel }),
    };
  });
}

/** Returns the row with audio codes. Lists use `taskRow`, because audio codes are too large for lists. */
export function taskRowWithCodes(task: Task, live: LiveState, audioFiles: AudioFiles): TaskRow {
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
