/** The endpoints of tasks, and of the words that clients fill a task with. */
import type { Request } from "express";
import { ownFiles } from "../audio/audio-inputs.js";
import type { Caller } from "../concurrency-limit.js";
import { HttpError, RequestError } from "../errors.js";
import { QueueFullError } from "../queue/job-queue.js";
import type { TaskStatusItem } from "../queue/task-status.js";
import { BODY_RULES, type RequestBody } from "../request/body.js";
import { submissionKey } from "../request/idempotency.js";
import { parseGenerationRequest } from "../request/parse.js";
import {
  parseFormatInput,
  parseSampleType,
  parseSampleWish,
  parseTaskFilter,
  parseTaskIds,
  parseTaskMarks,
} from "../request/service-bodies.js";
import type { MusicService } from "../service.js";
import { drawSeed } from "../song/seeds.js";
import { command, type Endpoints, type RouteContext, reading, whileHeld } from "./route.js";

/** About what a thousand finished tasks take, each of two songs with lyrics. */
const MAX_ANSWER_BYTES = 8 * 2 ** 20;

export const TASK_ENDPOINTS: Endpoints = {
  /** A task whose client hangs up before it is accepted is dropped. */
  "POST /release_task": whileHeld(BODY_RULES.releaseTask, (context, body, caller, request) =>
    accept(context, body, sharing(context, caller, request, body), request.get("Idempotency-Key")),
  ),
  /** One item per id asked for, repetitions included. */
  "POST /query_result": command(
    ({ service }, fields) => statesOf(parseTaskIds(fields), service),
    BODY_RULES.queryResult,
  ),
  "POST /cancel_task": command(async ({ service }, fields) => {
    const id = fields.task_id ?? fields.job_id;
    if (typeof id !== "string" || id === "") throw new RequestError("task_id is missing");
    if (!(await service.cancel(id))) throw new HttpError(404, "No such task waits or runs");
    return { job_id: id, status: "cancelled" };
  }),
  /** All tasks, newest first, by pages. */
  "GET /v1/tasks": reading(({ service }, { query }) => service.list(parseTaskFilter(query))),
  "GET /v1/tasks/:id": reading(({ service }, { params }) => service.task(String(params.id))),
  /** Names a task, or makes it a favourite. */
  "PATCH /v1/tasks/:id": command(({ service }, fields, { params }) =>
    service.mark(String(params.id), parseTaskMarks(fields)),
  ),
  /** Cancels a task that waits or runs; a finished one goes with its songs. */
  "DELETE /v1/tasks/:id": command(async ({ service }, _fields, { params }) => {
    const id = String(params.id);
    return { task_id: id, status: await service.remove(id) };
  }),
  /** Counters of tasks, and the average job time. */
  "GET /v1/stats": reading(({ service }) => service.statistics()),

  /** The language model rewrites a caption and lyrics. */
  "POST /format_input": whileHeld(BODY_RULES.textService, ({ config, service }, { fields }, caller) =>
    service.formatInput(parseFormatInput(fields, config.rangePolicy), caller),
  ),
  /** The language model makes a song's description of a wish. */
  "POST /v1/create_sample": whileHeld(
    BODY_RULES.textService,
    async ({ config, service }, { fields }, caller) => {
      const sample = await service.createSample(parseSampleWish(fields, config.rangePolicy), caller);
      // Clients of other servers read these names.
      return { ...sample, keyscale: sample.key_scale, timesignature: sample.time_signature };
    },
  ),
  /** An example to fill a form with. */
  "POST /create_random_sample": command(
    ({ samples }, fields) => samples.draw(parseSampleType(fields)),
    BODY_RULES.textService,
  ),
};

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
      isTurbo: (model) => service.isTurbo(model),
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
export function sharing(
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
    const item = known.get(id) ?? ((await service.query([id]))[0] as TaskStatusItem);
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
