/** The endpoints of tasks, and of the words that clients fill a task with. */
import type { Request } from "express";
import { ownFiles } from "../audio/audio-inputs.js";
import type { Caller } from "../concurrency-limit.js";
import { HttpError, RequestError } from "../errors.js";
import { selectSlot } from "../models.js";
import * as answers from "../openapi/answers.js";
import { QueueFullError } from "../queue/job-queue.js";
import { taskRowSchema } from "../queue/task-row.js";
import { type TaskStatusItem, taskStatusItemSchema } from "../queue/task-status.js";
import { BODY_RULES, type RequestBody } from "../request/body.js";
import { submissionKey } from "../request/idempotency.js";
import { parseGenerationRequest } from "../request/parse.js";
import { generationSchema } from "../request/schema.js";
import {
  formatMetadataSchema,
  formatTextSchema,
  parseFormatInput,
  parseRandomSample,
  parseSampleWish,
  parseTaskFilter,
  parseTaskId,
  parseTaskIds,
  parseTaskMarks,
  sampleWishSchema,
} from "../request/service-bodies.js";
import type { MusicService } from "../service.js";
import { drawSeed } from "../song/seeds.js";
import { audio, preview } from "./audio.js";
import { command, type RouteContext, reading, section, whileHeld } from "./route.js";
import { taskEvents } from "./task-events.js";

/** About what a thousand finished tasks take, each of two songs with lyrics. */
const MAX_ANSWER_BYTES = 8 * 2 ** 20;

const TASKS = section("Tasks", {
  /** A task whose client hangs up before it is accepted is dropped. */
  "POST /release_task": whileHeld({
    summary: "Queue a song",
    headers: { "Idempotency-Key": "text of the client's own: all submissions under it are one task" },
    body: generationSchema,
    files: ["src_audio", "reference_audio"],
    answer: answers.acceptedTask,
    errors: [422, 429, 507],
    example: { prompt: "slow bossa nova, nylon guitar", audio_duration: 20, batch_size: 1 },
    rule: BODY_RULES.releaseTask,
    run: (context, body, caller, request) =>
      accept(context, body, sharing(context, caller, request, body), request.get("Idempotency-Key")),
  }),
  /** One item per id asked for, repetitions included. */
  "POST /query_result": command({
    summary: "States and results of tasks by id",
    body: parseTaskIds,
    answer: taskStatusItemSchema.array(),
    example: { task_id_list: ["05173848-cbc3-4b86-b50f-6c8941975494"] },
    rule: BODY_RULES.question,
    run: ({ service }, ids) => statesOf(ids, service),
  }),
  "POST /cancel_task": command({
    summary: "End a task that waits or runs",
    body: parseTaskId,
    answer: answers.cancelledTask,
    errors: [404, 507],
    run: async ({ service }, id) => {
      if (!(await service.queue.cancel(id))) throw new HttpError(404, "No such task waits or runs");
      return { job_id: id, status: "cancelled" };
    },
  }),
  "GET /v1/tasks": reading({
    summary: "All tasks, newest first, by pages",
    query: parseTaskFilter,
    answer: answers.taskPage,
    run: ({ service }, { query }) => service.list(parseTaskFilter(query)),
  }),
  "GET /v1/tasks/:id": reading({
    summary: "A task",
    answer: taskRowSchema,
    errors: [404],
    run: ({ service }, { params }) => service.task(String(params.id)),
  }),
  "PATCH /v1/tasks/:id": command({
    summary: "Name a task, or make it a favourite",
    body: parseTaskMarks,
    answer: taskRowSchema,
    errors: [404, 507],
    example: { title: "Evening", favorite: true },
    run: ({ service }, marks, { params }) => service.mark(String(params.id), marks),
  }),
  "DELETE /v1/tasks/:id": command({
    summary: "Cancel a task that waits or runs; remove a finished one with its songs",
    answer: answers.removedTask,
    errors: [404, 409, 507],
    run: async ({ service }, _wish, { params }) => {
      const id = String(params.id);
      return { task_id: id, status: await service.remove(id) };
    },
  }),
  "GET /v1/tasks/:id/events": taskEvents,
  "GET /v1/tasks/:id/preview": preview,
  "GET /v1/audio": audio,
  "GET /v1/stats": reading({
    summary: "Counters of tasks",
    answer: answers.statistics,
    run: ({ service }) => service.statistics(),
  }),
});

const WORDS = section("Words", {
  "POST /format_input": whileHeld({
    summary: "Rewrite a caption and lyrics",
    body: { shape: formatTextSchema.shape, objects: { param_obj: formatMetadataSchema } },
    answer: answers.songSheet,
    errors: [429],
    example: { prompt: "jazz", lyrics: "", param_obj: { bpm: 90 } },
    rule: BODY_RULES.question,
    run: ({ config, service }, { fields }, caller) =>
      service.writer.formatInput(parseFormatInput(fields, config.rangePolicy), caller),
  }),
  "POST /v1/create_sample": whileHeld({
    summary: "Write a wish out as a song's sheet",
    body: sampleWishSchema,
    answer: answers.wishedSheet,
    errors: [429],
    example: { query: "a sad song about rain" },
    rule: BODY_RULES.question,
    run: async ({ config, service }, { fields }, caller) => {
      const sample = await service.writer.createSample(parseSampleWish(fields, config.rangePolicy), caller);
      // Clients of other servers read these names.
      return { ...sample, keyscale: sample.key_scale, timesignature: sample.time_signature };
    },
  }),
  "POST /create_random_sample": command({
    summary: "An example to fill a form with",
    body: parseRandomSample,
    answer: answers.randomSample,
    rule: BODY_RULES.question,
    run: ({ samples }, { sampleType }) => samples.draw(sampleType),
  }),
});

export const TASK_ENDPOINTS = { ...TASKS, ...WORDS };

/**
 * Queues what the body asks for, once for all submissions under `idempotencyKey`. Of its files only those of an accepted
 * task are left.
 */
export async function accept(
  { config, service }: RouteContext,
  body: RequestBody,
  caller: Caller,
  idempotencyKey?: string,
) {
  let kept: string[] = [];
  try {
    const generation = parseGenerationRequest(body.fields, {
      rangePolicy: config.rangePolicy,
      isTurbo: (model) => selectSlot(service.engine.slots(), model).isTurbo,
      uploads: body.uploads,
      drawSeed,
    });
    const key = await submissionKey(idempotencyKey, body);
    const submit = async () => {
      const accepted = await service.submit(generation, caller, key).catch(refusal);
      kept = ownFiles(generation);
      return accepted;
    };
    return await (key === null ? submit() : service.submitOnce(key, submit));
  } finally {
    await body.dispose(kept);
  }
}

/** The caller with the share of the key that the request presents. */
function sharing(
  { authenticator }: RouteContext,
  caller: Caller,
  request: Request,
  { fields }: Pick<RequestBody, "fields">,
): Caller {
  return { ...caller, share: authenticator.shareOf(request, fields.ai_token) };
}

function refusal(error: unknown): never {
  if (error instanceof QueueFullError) {
    throw new HttpError(429, error.message, { "Retry-After": String(error.retryAfterSeconds) });
  }
  throw error;
}

/** Every task is read once, one after the other, and no more of them than one answer may hold. */
async function statesOf(ids: readonly string[], service: MusicService): Promise<TaskStatusItem[]> {
  const known = new Map<string, TaskStatusItem>();
  const items: TaskStatusItem[] = [];
  let bytes = 0;
  for (const id of ids) {
    const item = known.get(id) ?? (await service.query(id));
    known.set(id, item);
    items.push(item);
    bytes += Buffer.byteLength(item.result);
    if (bytes > MAX_ANSWER_BYTES) {
      throw new RequestError(
        `task_id_list asks for more than ${MAX_ANSWER_BYTES} bytes of results at a time: ask for fewer of its ${ids.length} tasks`,
      );
    }
  }
  return items;
}
