/** How a task looks to a client that polls. */
import { z } from "zod";
import type { AudioFiles } from "../audio/audio-files.js";
import type { LiveState } from "./job-queue.js";
import type { SongDescription, Task, TaskState } from "./store.js";

const STATUS: Readonly<Record<TaskState, 0 | 1 | 2>> = {
  queued: 0,
  running: 0,
  succeeded: 1,
  failed: 2,
};

/** Clients compare it to nothing; the field is part of the interface. */
const ENVIRONMENT = "development";

/** Musical facts as clients read them; empty where only codes were asked for. */
export const songMetasSchema = z
  .object({
    bpm: z.number().nullable(),
    duration: z.number().nullable().meta({ description: "seconds; null where there is no music" }),
    genres: z.string(),
    keyscale: z.string(),
    timesignature: z.string(),
    prompt: z.string().meta({ description: "what the client wrote, before any rewriting" }),
    lyrics: z.string(),
  })
  .or(z.strictObject({}));

export const lrcSchema = z.string().optional().meta({
  description: "when lyrics are sung: lines `[mm:ss.xx]text`; of get_lrc, where the model can tell",
});

export const taskStatusSchema = z
  .literal([0, 1, 2])
  .meta({ description: "0 queued or running, 1 succeeded, 2 failed" });

/** Analyses add what they found. */
export const resultRecordSchema = z
  .object({
    file: z.string().meta({ description: "relative URL of the audio" }),
    wave: z.string(),
    status: taskStatusSchema,
    create_time: z.int().meta({ description: "Unix seconds" }),
    env: z.string(),
    prompt: z.string(),
    lyrics: z.string(),
    caption: z.string().meta({ description: "the caption that the model heard" }),
    vocal_language: z.string().meta({ description: "the language that it was told the lyrics are in" }),
    metas: songMetasSchema,
    lrc: lrcSchema,
    generation_info: z.string(),
    seed_value: z.string(),
    lm_model: z.string(),
    dit_model: z.string(),
    progress: z.number(),
    stage: z.string(),
    error: z.string().nullable(),
    warnings: z.array(z.string()).meta({ description: "what was accepted but not taken literally" }),
  })
  .meta({ id: "ResultRecord", additionalProperties: true });

export type ResultRecord = z.output<typeof resultRecordSchema>;

export const taskStatusItemSchema = z
  .object({
    task_id: z.string(),
    status: taskStatusSchema,
    result: z.string().meta({
      description: "JSON text of an array of ResultRecord",
      contentMediaType: "application/json",
      contentSchema: { type: "array", items: { $ref: "#/$defs/ResultRecord" } },
    }),
    progress_text: z.string().optional(),
    stage: z
      .literal("unknown")
      .optional()
      .meta({ description: "there is no such task; what there is has its stage in the record" }),
    queue_position: z.int().optional().meta({ description: "1 is the next to start" }),
    error: z.string().optional(),
  })
  .meta({ id: "TaskStatus" });

export type TaskStatusItem = z.output<typeof taskStatusItemSchema>;

const EMPTY_RECORD = {
  file: "",
  wave: "",
  env: ENVIRONMENT,
  prompt: "",
  lyrics: "",
  caption: "",
  vocal_language: "",
  metas: {},
  generation_info: "",
  seed_value: "",
  lm_model: "",
  dit_model: "",
};

/**
 * An id that no task has. The interface has no status for it, so clients poll on, as they do for one that is about to
 * appear; the stage tells those who look, and the text those who are shown it.
 */
export function unknownTask(id: string): TaskStatusItem {
  return {
    task_id: id,
    status: 0,
    result: "[]",
    stage: "unknown",
    progress_text: "unknown task: this server never accepted it, or has removed it with its expired songs",
  };
}

/** A task that is there and whose record cannot be read. */
export function damagedTask(id: string, error: string): TaskStatusItem {
  const record: ResultRecord = {
    ...EMPTY_RECORD,
    status: STATUS.failed,
    create_time: 0,
    progress: 0,
    stage: "failed",
    error,
    warnings: [],
  };
  return { task_id: id, status: STATUS.failed, result: JSON.stringify([record]), progress_text: "", error };
}

export function taskStatus(task: Task, live: LiveState, audioFiles: AudioFiles): TaskStatusItem {
  return {
    task_id: task.id,
    status: STATUS[task.state],
    result: JSON.stringify(resultRecords(task, live, audioFiles)),
    progress_text: live.progress?.text ?? "",
    ...(live.position === undefined ? {} : { queue_position: live.position }),
    ...(task.error === null ? {} : { error: task.error }),
  };
}

/** One for each song; a single one where there is none. */
export function resultRecords(task: Task, live: LiveState, audioFiles: AudioFiles): ResultRecord[] {
  const blank = blankRecord(task, live);
  const { result } = task;
  if (result === null) return [blank];
  const record: ResultRecord = {
    ...blank,
    ...described(result),
    seed_value: result.seeds.join(","),
    lm_model: result.lmModel,
    warnings: result.warnings,
  };
  if (result.analysis !== null) return [{ ...record, ...result.analysis }];
  return result.audioFiles.map(({ name, description }) => ({
    ...record,
    ...described(description ?? result),
    file: audioFiles.urlOf(name),
  }));
}

/** Older versions stored neither caption nor language. */
function described({
  prompt,
  lyrics,
  caption,
  vocalLanguage,
  metas,
  lrc,
  generationInfo,
  ditModel,
}: SongDescription) {
  return {
    prompt,
    lyrics,
    caption: caption ?? prompt,
    vocal_language: vocalLanguage ?? "",
    metas,
    ...(lrc !== undefined && { lrc }),
    generation_info: generationInfo,
    dit_model: ditModel,
  };
}

/** The record of a task without a result. A task that the queue has begun counts as running at once. */
function blankRecord(task: Task, live: LiveState): ResultRecord {
  const running = task.finishedAtMs === null ? live.progress : undefined;
  // A task that waits may still stand as running in a store that takes no changes.
  const stage = live.position === undefined ? task.state : "queued";
  return {
    ...EMPTY_RECORD,
    status: STATUS[task.state],
    create_time: Math.floor(task.createdAtMs / 1000),
    progress: running?.value ?? task.progress,
    stage: running?.stage ?? stage,
    error: task.error,
    warnings: task.request.warnings,
  };
}
