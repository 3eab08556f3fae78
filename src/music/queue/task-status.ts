/** Responses of POST /query_result. */
import { z } from "zod";
import { audioCodeText } from "../../engine/audio-code-text.js";
import type { AudioFiles } from "../audio/audio-files.js";
import { type SongDescription, type SongResult, songMetas, type Task, type TaskState } from "./store.js";
import type { LiveState } from "./task-queue.js";

const STATUS: Readonly<Record<TaskState, 0 | 1 | 2>> = {
  queued: 0,
  running: 0,
  succeeded: 1,
  failed: 2,
};

/** Value of `env`, a field that the API requires and clients ignore. */
const ENVIRONMENT = "development";

const score = z.number().min(0).max(1);

/** What task rows and result records say about a song. */
export const songFields = {
  file: z.string().meta({ description: "relative URL of the audio" }),
  latents: z.string().optional().meta({
    description: "relative URL of the song's latents, a safetensors file; with return_latents",
  }),
  prompt: z.string().meta({ description: "final caption, after sampling and formatting" }),
  lyrics: z.string(),
  caption: z.string().meta({ description: "caption given to the renderer" }),
  vocal_language: z.string().meta({ description: "lyrics language given to the renderer" }),
  /** Empty if only codes were requested. */
  metas: songMetas.or(z.strictObject({})),
  lrc: z.string().optional().meta({
    description: "lyric timestamps, lines `[mm:ss.xx]text`; with get_lrc, if the model can align lyrics",
  }),
  scores: z
    .object({
      total: score,
      caption: score.nullable(),
      lyrics: score.nullable(),
      metadata: score.nullable(),
    })
    .optional()
    .meta({
      description:
        "how well the song fits its request, scored by the language model; with get_scores; null if not scored",
    }),
  track_name: z.string().optional().meta({ description: "stem name, for extract and lego" }),
  generation_info: z.string(),
  dit_model: z.string(),
};

export const taskStatusSchema = z
  .literal([0, 1, 2])
  .meta({ description: "0 queued or running, 1 succeeded, 2 failed" });

/** Record of one song or one analysis. An analysis adds its results as further fields. */
export const resultRecordSchema = z
  .object({
    ...songFields,
    wave: z.string(),
    status: taskStatusSchema,
    create_time: z.int().meta({ description: "Unix seconds" }),
    env: z.string(),
    audio_codes: z.string().optional().meta({
      description:
        "audio codes of the song, in the format of audio_code_string; absent if no codes were used",
    }),
    seed_value: z.string(),
    lm_model: z.string(),
    progress: z.number(),
    stage: z.string(),
    error: z.string().nullable(),
    warnings: z.array(z.string()).meta({ description: "changes that the server made to the request" }),
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
      .meta({ description: "unknown task id; known tasks have their stage in the record" }),
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
 * Status item of an unknown id. The API has no status for unknown ids. They get the status of a waiting task,
 * with the stage "unknown".
 */
export function unknownTaskStatus(id: string): TaskStatusItem {
  return {
    task_id: id,
    status: 0,
    result: "[]",
    stage: "unknown",
    progress_text: "unknown task: this server never accepted it, or has removed it with its expired songs",
  };
}

/** Status of a task whose record cannot be read. */
export function damagedTaskStatus(id: string, error: string): TaskStatusItem {
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

/** Returns one record for each song, or a single record if there are no songs. */
function resultRecords(task: Task, live: LiveState, audioFiles: AudioFiles): ResultRecord[] {
  const record = taskRecord(task, live);
  const { result } = task;
  if (result === null) return [record];
  if (result.analysis === null)
    return songsOf(result, audioFiles).map((song, index) => {
      const codes = result.audioFiles[index]?.description?.audioCodes;
      return { ...record, ...song, ...(codes && { audio_codes: audioCodeText(codes) }) };
    });
  const { latents, analysis } = result;
  const file = latents && { latents: audioFiles.urlOf(latents.name) };
  return [{ ...record, ...described(result), ...file, ...analysis }];
}

/** Fields of the songs of a task. */
export function songsOf({ audioFiles: songs, ...result }: SongResult, audioFiles: AudioFiles) {
  return songs.map(({ name, description, latents }) => ({
    ...described(description ?? result),
    file: audioFiles.urlOf(name),
    ...(latents !== undefined && { latents: audioFiles.urlOf(latents.name) }),
  }));
}

/** Fields of a result record that describe the song. Older versions stored neither caption nor language. */
function described({
  prompt,
  lyrics,
  caption,
  vocalLanguage,
  metas,
  lrc,
  scores,
  trackName,
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
    ...(scores !== undefined && { scores }),
    ...(trackName !== undefined && { track_name: trackName }),
    generation_info: generationInfo,
    dit_model: ditModel,
  };
}

/** Result record of a task, without its songs. */
export function taskRecord(task: Task, live: LiveState): ResultRecord {
  const { result } = task;
  const running = task.finishedAtMs === null ? live.progress : undefined;
  // A task with a queue position is waiting. The store may still say "running" if it was not writable.
  const stage = live.position === undefined ? task.state : "queued";
  return {
    ...EMPTY_RECORD,
    status: STATUS[task.state],
    create_time: Math.floor(task.createdAtMs / 1000),
    progress: running?.value ?? task.progress,
    stage: running?.stage ?? stage,
    error: task.error,
    warnings: task.request.warnings,
    ...(result && {
      seed_value: result.seeds.join(","),
      lm_model: result.lmModel,
      warnings: result.warnings,
    }),
  };
}
