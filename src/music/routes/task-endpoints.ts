/** Endpoints for tasks, and endpoints that write text for request fields. */
import type { Request } from "express";
import type { Fields } from "../../parameters.js";
import type { Caller } from "../access/concurrency-limit.js";
import { uploadPathsOf } from "../audio/audio-inputs.js";
import { HttpError, RequestError } from "../errors.js";
import { selectSlot } from "../models/models.js";
import * as answers from "../openapi/answers.js";
import { retentionForecast } from "../queue/retention.js";
import type { TaskState } from "../queue/store.js";
import { QueueFullError, UncertainSubmissionError } from "../queue/task-queue.js";
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
  parseRetake,
  parseRetentionQuery,
  parseSampleRequest,
  parseTaskChanges,
  parseTaskFilter,
  parseTaskId,
  parseTaskIds,
  parseTaskRemoval,
  sampleRequestSchema,
} from "../request/service-bodies.js";
import type { MusicService } from "../service.js";
import { drawSeed } from "../song/seeds.js";
import { audioEndpoint, previewEndpoint } from "./audio.js";
import { changeEventsEndpoint } from "./change-events.js";
import {
  abortableCommand,
  command,
  commandRoute,
  createGetEndpoint,
  type Route,
  type RouteContext,
  withTag,
} from "./route.js";
import { taskEventsEndpoint } from "./task-events.js";

/** Size limit of a response, enough for about a thousand finished tasks of two songs with lyrics. */
const MAX_ANSWER_BYTES = 8 * 2 ** 20;

const IDEMPOTENCY = {
  "Idempotency-Key":
    "Any text, such as a UUID. Submissions with the same key create one task, also after a restart, until the task is deleted. A different body is refused (422).",
};

const CALLBACK = `When the task ends, its status item, as in \`POST /query_result\`, is posted to \`callback_url\`, with \`event\` (\`done\` or \`failed\`) and \`timestamp\` (Unix seconds). Statuses 200 to 299 within ten seconds acknowledge it; otherwise it is sent up to 15 times in about six hours.

- \`X-Carillon-Signature\`: \`sha256=\` and the hex HMAC-SHA256 of the body, with the API key at the position of the submission's key in SVC_API_KEY and SVC_API_KEYS, or SVC_API_KEY if that position has none now; absent without SVC_API_KEY
- \`X-Carillon-Timestamp\`: \`timestamp\` of the body; refuse messages older than some minutes
- \`X-Carillon-Task\`: id of the task; deduplicate by it, since a server killed after a delivery may send it again`;

const TASKS = withTag("Tasks", {
  /** If the client disconnects before the task is accepted, the request is dropped. */
  "POST /release_task": abortableCommand({
    summary: "Queue a song",
    description: CALLBACK,
    headers: IDEMPOTENCY,
    body: generationSchema,
    files: ["src_audio", "reference_audio", "src_latents", "ref_latents"],
    answer: answers.acceptedTask,
    errors: [422, 429, 507],
    example: { prompt: "slow bossa nova, nylon guitar", audio_duration: 20, batch_size: 1 },
    rule: BODY_RULES.releaseTask,
    run: (context, body, caller, request) =>
      acceptTask(context, body, caller, { idempotencyKey: request.get("Idempotency-Key") }),
  }),
  "POST /v1/tasks/:id/retake": abortableCommand({
    summary: "Make the songs of a task again with other seeds",
    headers: IDEMPOTENCY,
    body: parseRetake,
    files: ["src_audio", "reference_audio", "src_latents", "ref_latents"],
    answer: answers.acceptedTask,
    errors: [404, 409, 422, 429, 507],
    example: { batch_size: 2 },
    rule: BODY_RULES.retake,
    run: retake,
  }),
  /** Returns one item per requested id; a repeated id gives repeated items. */
  "POST /query_result": command({
    summary: "Status and results of tasks by id",
    body: parseTaskIds,
    answer: taskStatusItemSchema.array(),
    example: { task_id_list: ["05173848-cbc3-4b86-b50f-6c8941975494"] },
    rule: BODY_RULES.question,
    run: ({ service }, ids) => statesOf(ids, service),
  }),
  "POST /cancel_task": command({
    summary: "Cancel a waiting or running task",
    body: parseTaskId,
    answer: answers.cancelledTask,
    errors: [404, 507],
    run: async ({ service }, id) => {
      await service.tasks.cancel(id);
      return { job_id: id, status: "cancelled" };
    },
  }),
  "GET /v1/tasks": createGetEndpoint({
    summary: "List tasks, by default newest first",
    description: "A page ends early at 8 MiB: continue at `offset` plus the number of rows.",
    query: parseTaskFilter,
    answer: answers.taskPage,
    run: ({ service }, { query }) => service.tasks.list(parseTaskFilter(query)),
  }),
  "GET /v1/tasks/:id": createGetEndpoint({
    summary: "Get a task",
    answer: taskRowSchema,
    errors: [404],
    run: ({ service }, { params }) => service.tasks.get(String(params.id)),
  }),
  "PATCH /v1/tasks/:id": command({
    summary: "Set title or favourite of a task",
    body: parseTaskChanges,
    answer: taskRowSchema,
    errors: [404, 507],
    example: { title: "Evening", favorite: true },
    run: ({ service }, marks, { params }) => service.tasks.mark(String(params.id), marks),
  }),
  "DELETE /v1/tasks/:id": {
    summary:
      "Cancel a waiting or running task, or remove a failed one; with state=succeeded, delete its songs",
    query: parseTaskRemoval,
    answer: answers.removedTask,
    errors: [404, 409, 507],
    route: removalRoute(({ query }) => {
      const { state } = parseTaskRemoval(query);
      return state === null ? ["queued", "running", "failed"] : [state];
    }),
  },
  "GET /v1/retention": createGetEndpoint({
    summary: "Size of all songs, its limits, and when tasks are deleted",
    query: parseRetentionQuery,
    answer: retentionForecast,
    run: ({ service }, { query }) => service.retention.forecast(parseRetentionQuery(query).ids),
  }),
  "GET /v1/tasks/:id/events": taskEventsEndpoint,
  "GET /v1/events": changeEventsEndpoint,
  "GET /v1/tasks/:id/preview": previewEndpoint,
  "GET /v1/audio": audioEndpoint,
  "GET /v1/stats": createGetEndpoint({
    summary: "Queue statistics",
    answer: answers.statistics,
    run: ({ service }) => service.statistics(),
  }),
});

const WRITING = withTag("Text", {
  "POST /format_input": abortableCommand({
    summary: "Rewrite a caption and lyrics",
    body: {
      shape: { ...formatTextSchema.shape, ...formatMetadataSchema.shape },
      objects: { param_obj: formatMetadataSchema },
    },
    answer: answers.songSheet,
    errors: [429],
    example: { prompt: "jazz", lyrics: "", param_obj: { bpm: 90 } },
    rule: BODY_RULES.question,
    run: ({ config, service }, { fields }, caller) =>
      service.writer.formatInput(parseFormatInput(fields, config.rangePolicy), caller),
  }),
  "POST /v1/create_sample": abortableCommand({
    summary: "Write caption, lyrics and metadata for a short description",
    body: sampleRequestSchema,
    answer: answers.sampleSheet,
    errors: [429],
    example: { query: "a sad song about rain" },
    rule: BODY_RULES.question,
    run: async ({ config, service }, { fields }, caller) => {
      const sample = await service.writer.createSample(
        parseSampleRequest(fields, config.rangePolicy),
        caller,
      );
      // Repeat key and time signature under the names that older clients read.
      return { ...sample, keyscale: sample.key_scale, timesignature: sample.time_signature };
    },
  }),
  "POST /create_random_sample": command({
    summary: "Random example for a form",
    body: parseRandomSample,
    answer: answers.randomSample,
    rule: BODY_RULES.question,
    run: ({ samples }, { sampleType }) => samples.draw(sampleType),
  }),
});

/** @param statesOf returns the states in which the request may remove a task */
export function removalRoute(statesOf: (request: Request) => readonly TaskState[]): Route {
  return commandRoute(async ({ service }, _fields, request) => {
    const id = String(request.params.id);
    return { task_id: id, status: await service.tasks.remove(id, statesOf(request)) };
  });
}

export const TASK_ENDPOINTS = { ...TASKS, ...WRITING };

interface Acceptance {
  /** Submissions with the same idempotency key create only one task. */
  idempotencyKey?: string | undefined;
  retakeOf?: string;
  /** Values of fields that the client did not send. */
  defaults?: Fields | undefined;
  /** Request in the words of another dialect, from which its answer is made. */
  original?: unknown;
  /** Warnings about the words of another dialect. */
  warnings?: readonly string[];
}

/**
 * Parses and queues a task. Uploads are deleted unless the task uses them, which is accepted or, after
 * UncertainSubmissionError, may be.
 */
export async function acceptTask(
  { config, service }: RouteContext,
  body: RequestBody,
  caller: Caller,
  { idempotencyKey, retakeOf, defaults, original, warnings = [] }: Acceptance = {},
) {
  let keptFiles: string[] = [];
  try {
    const parsed = parseGenerationRequest(body.fields, {
      rangePolicy: config.rangePolicy,
      slotOf: (model) => selectSlot(service.catalog.slots(), model),
      uploads: body.uploads,
      drawSeed,
      defaults,
    });
    parsed.warnings.push(...warnings);
    const generation = original === undefined ? parsed : { ...parsed, original };
    const key = await submissionKey(idempotencyKey, body);
    const submit = async () => {
      try {
        const source = { client: body.client, submission: key, retakeOf };
        const accepted = await service.submissions.submit(generation, caller, source);
        keptFiles = uploadPathsOf(generation);
        return accepted;
      } catch (error) {
        if (error instanceof UncertainSubmissionError) keptFiles = uploadPathsOf(generation);
        return refusal(error);
      }
    };
    return await (key === null ? submit() : service.submissions.submitOnce(key, submit));
  } finally {
    // Files that stay are deleted at the next start.
    await body.dispose(keptFiles).catch(() => {});
  }
}

/** Queues the task again, with the seeds in the body or with random seeds. */
async function retake(context: RouteContext, body: RequestBody, caller: Caller, request: Request) {
  const again = async () => {
    const { seed, batchSize } = parseRetake(body.fields);
    const id = String(request.params.id);
    const { first, parameters, defaults } = await context.service.tasks.retakeOf(id, body.uploads);
    const fields = {
      ...parameters,
      ...(batchSize !== null && { batch_size: batchSize }),
      ...(seed.length > 0 && { seed: seed.map((one) => one ?? -1), use_random_seed: false }),
    };
    return { retakeOf: first, fields, defaults };
  };
  const { fields, ...origin } = await again().catch(async (error: unknown) => {
    await body.dispose();
    throw error;
  });
  return acceptTask(context, { ...body, fields }, caller, {
    idempotencyKey: request.get("Idempotency-Key"),
    ...origin,
  });
}

function refusal(error: unknown): never {
  if (error instanceof QueueFullError) {
    throw new HttpError(429, error.message, { "Retry-After": String(error.retryAfterSeconds) });
  }
  throw error;
}

/**
 * Returns the status of the tasks. Reads one task at a time, and repeated ids only once.
 * @throws RequestError if the results are too large for a response
 */
async function statesOf(ids: readonly string[], service: MusicService): Promise<TaskStatusItem[]> {
  const known = new Map<string, TaskStatusItem>();
  const items: TaskStatusItem[] = [];
  let bytes = 0;
  for (const id of ids) {
    const item = known.get(id) ?? (await service.tasks.status(id));
    known.set(id, item);
    items.push(item);
    bytes += Buffer.byteLength(item.result);
    if (bytes > MAX_ANSWER_BYTES) {
      throw new RequestError(
        `task_id_list: the results of its ${ids.length} tasks exceed ${MAX_ANSWER_BYTES} bytes: request fewer tasks at a time`,
      );
    }
  }
  return items;
}
