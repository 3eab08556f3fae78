/** Endpoints of acestep.cpp's server. A job is a task, and its id is the task's. */
import type { Request, RequestHandler, Response } from "express";
import { z } from "zod";
import type { SlotState } from "../../engine/types.js";
import { type Fields, parameter, requiredText } from "../../parameters.js";
import { DecodeError } from "../audio/decode.js";
import type { Uploads } from "../audio/uploads.js";
import { type ErrorBody, HttpError, RequestError, setErrorBody, TooLargeError } from "../errors.js";
import { selectSlot } from "../models/models.js";
import { hasEnded } from "../queue/catalog.js";
import { DamagedRecordError, type Task } from "../queue/store.js";
import { CANCELLED } from "../queue/task-queue.js";
import type { BodyRule } from "../request/body.js";
import { removeFiles } from "../request/multipart.js";
import { songOf } from "../routes/chat-completions.js";
import { callerOf, type Endpoint, type Endpoints, type Route, type RouteContext } from "../routes/route.js";
import { acceptTask } from "../routes/task-endpoints.js";
import type { MusicService } from "../service.js";
import { drawSeed } from "../song/seeds.js";
import { type AceRequest, FIELDS, readAceRequests } from "./ace-request.js";
import { adapterPath } from "./adapters.js";
import { withSafetensors } from "./latents.js";
import { lmFields, understandFields, withSeeds } from "./lm.js";
import { isFromThisMachine, streamLog } from "./logs.js";
import { ownLanguageModel, ownName, synthModels } from "./names.js";
import { propsOf } from "./props.js";
import { sendResult } from "./result.js";
import { outputFields, synthFields } from "./synth.js";
import { currentRequest, waits } from "./waiting.js";

const ACE_REQUEST = {
  json: {
    type: ["object", "array"],
    description: "A missing field, or one of a wrong type, has its default.",
    properties: Object.fromEntries(
      Object.entries(FIELDS).map(([name, { unset, meaning }]) => [
        name,
        { type: typeof unset, default: unset, description: meaning },
      ]),
    ),
  },
};

const BODY: BodyRule = {
  types: ["json", "form", "multipart"],
  storesFiles: true,
  mayBeEmpty: true,
  jsonField: "request",
  parts: { request: "text", audio: "sourceAudio" },
};

const errorBody: ErrorBody = (_status, detail) => ({ error: detail });

/** Clients of acestep.cpp know no keys: a key in the query of their base address counts like one in a header. */
function route(handle: (context: RouteContext) => RequestHandler): Route {
  return (context) => {
    const handler = handle(context);
    return (request, response, next) => {
      setErrorBody(response, errorBody);
      const { ai_token: key } = request.query;
      if (typeof key === "string" && key !== "") request.headers.authorization = `Bearer ${key}`;
      return handler(request, response, next);
    };
  };
}

interface Submission {
  fields: Fields;
  /** Request from which the answer is made, if its task does not suffice. */
  original?: AceRequest;
}

interface Sent {
  requests: [AceRequest, ...AceRequest[]];
  /** Our name of the model of the first request; undefined: the default. */
  model: string | undefined;
  slot: SlotState;
  uploads: Uploads;
}

/**
 * An endpoint that queues a task and answers with its id.
 * @param withoutRequest what a form without a request means; by default it is refused
 */
function submission(
  translate: (context: RouteContext, sent: Sent) => Promise<Submission>,
  withoutRequest?: Partial<AceRequest>,
): Route {
  return route((context) => async (request, response) => {
    const caller = callerOf(request, response);
    try {
      const body = await context.bodies.read(request, BODY);
      const converted: string[] = [];
      const dispose = async (kept: readonly string[] = []) => {
        await body.dispose(kept);
        await removeFiles(converted.filter((path) => !kept.includes(path)));
      };
      const prepare = async () => {
        const { request: sent = withoutRequest } = body.fields;
        if (sent === undefined) {
          throw new RequestError("request is missing: send it as JSON, in a form as the field request");
        }
        const requests = readAceRequests(waits(request) ? currentRequest(sent, request) : sent);
        const { catalog } = context.service;
        const [{ synth_model }] = requests;
        const model = synth_model === "" ? undefined : ownName(synth_model, synthModels(catalog));
        const slot = selectSlot(catalog.slots(), model ?? null);
        const uploads = await withSafetensors(body.uploads, slot.latentChannels, (path) =>
          converted.push(path),
        );
        return { uploads, ...(await translate(context, { requests, model, slot, uploads })) };
      };
      const { original, ...prepared } = await prepare().catch(async (error: unknown) => {
        await dispose();
        throw error;
      });
      const { task_id: id } = await acceptTask(context, { ...body, ...prepared, dispose }, caller, {
        original,
      });
      if (waits(request)) await answerEnded(context, id, response, caller.signal);
      else response.json({ id });
    } catch (error) {
      // Ignore errors after the client has disconnected.
      if (!caller.signal.aborted) throw refusal(error);
    }
  });
}

/** Waits for a task and answers with its result. */
async function answerEnded(
  context: RouteContext,
  id: string,
  response: Response,
  signal: AbortSignal,
): Promise<void> {
  await songOf(context, id, signal);
  const task = (await context.service.queue.get(id)) as Task;
  await sendResult(response, task, context.service.audioFiles, signal, { withLatents: false });
}

/** Fields of clients by the names that our errors give them. */
const CLIENT_NAMES: Readonly<Record<string, string>> = {
  timesteps: "custom_timesteps",
  infer_method: "solver",
  audio_code_string: "audio_codes",
  src_audio: "audio",
  reference_audio: "ref_audio",
  stem: "track",
  repainting_windows: "repainting_start and repainting_end",
};

/** An error in the client's words. Too long a recording has a status of its own. */
function refusal(error: unknown): unknown {
  if (!(error instanceof RequestError)) return error;
  const isTooLong = error.cause instanceof DecodeError && error.cause.code === "TOO_LONG";
  const isTooMuch = isTooLong || error instanceof TooLargeError;
  const [first = ""] = /^\w+/.exec(error.detail) ?? [];
  const detail = (CLIENT_NAMES[first] ?? first) + error.detail.slice(first.length);
  return new HttpError(isTooMuch ? 413 : error.status, detail, {}, { cause: error });
}

const synth = submission(async ({ config }, { requests, model, slot, uploads }) => {
  if (slot.model === null) throw new HttpError(501, "No model is installed for /synth");
  const [{ adapter, adapter_scale }] = requests;
  const fields = synthFields(requests, {
    model,
    isTurbo: slot.isTurbo,
    adapter: adapter === "" ? null : { path: await adapterPath(adapter, config), scale: adapter_scale },
    uploads,
    drawSeed,
  });
  return { fields };
});

const lm = submission(async ({ service }, { requests: [sent] }) => {
  const { catalog } = service;
  if (catalog.languageModels().length === 0)
    throw new HttpError(501, "No language model is installed for /lm");
  const request = withSeeds(sent, drawSeed);
  const languageModel = ownLanguageModel(request.lm_model, catalog);
  const fields = lmFields(request, languageModel);
  if (request.lm_mode !== "generate") await requireWriter(service, languageModel, request.lm_mode);
  return { fields, original: request };
});

/** @throws HttpError 501 if the language model writes no texts */
async function requireWriter(
  { writer }: MusicService,
  name: string | undefined,
  mode: string,
): Promise<void> {
  const { name: used, writesText } = await writer.languageModel(name ?? null);
  if (writesText) return;
  throw new HttpError(
    501,
    `lm_mode ${mode} needs a language model that writes captions and lyrics, which ${used} does not: install another, or use generate`,
  );
}

const understand = submission(
  async ({ service }, { requests: [sent], model, uploads }) => {
    const { catalog } = service;
    if (catalog.languageModels().length === 0) {
      throw new HttpError(501, "No language model is installed for /understand");
    }
    requireSource(uploads);
    const request = withSeeds(sent, drawSeed);
    const languageModel = ownLanguageModel(request.lm_model, catalog);
    return { fields: { ...understandFields(request, languageModel), model }, original: request };
  },
  { lm_temperature: 0.3, lm_top_p: 1 },
);

function requireSource({ sourceAudio, sourceLatents }: Uploads): void {
  if (sourceAudio !== null || sourceLatents !== null) return;
  throw new RequestError("send the recording as audio or src_latents in a form");
}

const vae = submission(async (_context, { requests: [request], model, uploads }) => {
  const { sourceAudio, sourceLatents } = uploads;
  if ((sourceAudio === null) === (sourceLatents === null)) {
    throw new RequestError("send either audio, to encode it, or src_latents, to decode them, in a form");
  }
  const task = sourceAudio === null ? { decode_only: true, ...outputFields(request) } : { encode_only: true };
  return { fields: { ...task, model } };
}, {});

const statusRoute = route((context) => async (request, response) => {
  context.authenticator.authorize(request);
  const task = await jobOf(context, request);
  if (request.query.result !== "1") {
    response.json({ status: statusOf(task) });
    return;
  }
  if (task.result === null) throw new HttpError(404, "Result not ready");
  const { signal } = callerOf(request, response);
  // Ignore errors after the client has disconnected.
  await sendResult(response, task, context.service.audioFiles, signal).catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
});

const cancelRoute = route((context) => async (request, response) => {
  context.authenticator.authorize(request);
  const task = await jobOf(context, request);
  if (request.query.cancel !== "1") throw new RequestError("Unknown action: send cancel=1");
  if (!hasEnded(task.state) && (await context.service.queue.cancel(task.id))) {
    response.json({ status: "cancelled" });
    return;
  }
  response.json({ status: statusOf(await jobOf(context, request)) });
});

/** @throws HttpError 400 without an id, 404 for an unknown one */
async function jobOf({ service }: RouteContext, { query }: Request): Promise<Task> {
  const { id } = query;
  if (typeof id !== "string" || id === "") throw new RequestError("id is missing: send the id of a job");
  const task = await service.queue.get(id).catch((error: unknown) => {
    if (error instanceof DamagedRecordError) return undefined;
    throw error;
  });
  if (task === undefined) throw new HttpError(404, "Job not found");
  return task;
}

function statusOf({ state, error }: Task): "running" | "done" | "failed" | "cancelled" {
  if (state === "succeeded") return "done";
  if (state === "failed") return error === CANCELLED ? "cancelled" : "failed";
  return "running";
}

const propsRoute = route(({ authenticator, config, service }) => async (request, response) => {
  authenticator.authorize(request);
  response.json(await propsOf(config, service.catalog));
});

const logsRoute = route(({ authenticator }) => (request, response) => {
  authenticator.authorize(request);
  if (!authenticator.isEnabled && !isFromThisMachine(request)) {
    throw new HttpError(403, "Without a key only this machine may read the log: set SVC_API_KEY");
  }
  const { signal } = callerOf(request, response);
  if (request.method === "HEAD") response.end();
  else streamLog(response, signal);
});

const queuedJob = {
  media: "application/json",
  schema: z.object({ id: z.uuid() }).or(z.array(z.looseObject({}))),
  description: "Id of the job; with wait=1 the result of the job, without latents",
};
const JOB_ID = parameter("id", requiredText, "Id of the job, which is the id of its task.");
const FLAG = z.literal("1").optional();
const WAIT = {
  shape: { wait: parameter("wait", FLAG, "1: answer with the result, for clients of the time before jobs.") },
};

function tagged<Name extends keyof Endpoints>(
  endpoints: Readonly<Record<Name, Omit<Endpoint, "tag" | "errorSchema">>>,
): Readonly<Record<Name, Endpoint>> {
  const entries = Object.entries<Omit<Endpoint, "tag" | "errorSchema">>(endpoints).map(([name, endpoint]) => {
    return [
      name,
      { tag: "Clients of acestep.cpp", takesKeyInQuery: true, errorSchema: aceError, ...endpoint },
    ];
  });
  return Object.fromEntries(entries) as never;
}

const aceError = z
  .object({ error: z.string().meta({ description: "one line: the fault and how to fix it" }) })
  .meta({ id: "AceError" });

export const ACE_ENDPOINTS = tagged({
  "POST /synth": {
    summary: "Queue songs",
    description:
      "One request, or a list of requests whose songs are one batch. Task, model, adapter, steps, window and format are those of the first. In a form, the JSON is in `request`, and the source in `audio` or `src_latents`, the timbre in `ref_audio` or `ref_latents`. Latents win over audio; they are float32 values, 64 a frame, 25 frames a second. The result is multipart/mixed: the audio and the latents of each song.",
    body: ACE_REQUEST,
    files: ["audio", "src_latents", "ref_audio", "ref_latents"],
    query: WAIT,
    answer: queuedJob,
    errors: [413, 429, 501, 507],
    example: { caption: "slow bossa nova, nylon guitar", duration: 20 },
    route: synth,
  },
  "POST /lm": {
    summary: "Queue plans of songs by the language model",
    description:
      "lm_mode generate writes metadata, lyrics and audio codes, inspire metadata and lyrics for a short caption, format rewrites caption and lyrics. An empty or zero field is filled, a given one never changes, except the caption with use_cot_caption and the texts that format rewrites. The result is a list of lm_batch_size requests for /synth, without fields at their defaults.",
    body: ACE_REQUEST,
    query: WAIT,
    answer: queuedJob,
    errors: [429, 501, 507],
    example: { caption: "slow bossa nova, nylon guitar", lyrics: "[Instrumental]", duration: 20 },
    route: lm,
  },
  "POST /understand": {
    summary: "Queue the description of a recording",
    description:
      "A form with the recording in `audio` or `src_latents`, and optionally a request with models and sampling in `request`. The result is multipart/mixed: a list of one request, and the latents of the recording.",
    body: ACE_REQUEST,
    files: ["audio", "src_latents"],
    query: WAIT,
    answer: queuedJob,
    errors: [413, 429, 501, 507],
    route: understand,
  },
  "POST /vae": {
    summary: "Queue the encoding of audio, or the decoding of latents",
    description:
      "A form with either `audio`, whose result is its latents, or `src_latents`, whose result is audio in the output_format of the optional `request`.",
    body: ACE_REQUEST,
    files: ["audio", "src_latents"],
    query: WAIT,
    answer: queuedJob,
    errors: [413, 429, 507],
    route: vae,
  },
  "GET /job": {
    summary: "Status or result of a job",
    query: { shape: { id: JOB_ID, result: parameter("result", FLAG, "1: send the result.") } },
    answer: {
      media: "application/json",
      schema: z
        .looseObject({ status: z.enum(["running", "done", "failed", "cancelled"]) })
        .or(z.array(z.looseObject({}))),
      description: "The status, running also while the job waits; with result=1 the result with its own type",
    },
    errors: [404],
    route: statusRoute,
  },
  "POST /job": {
    summary: "Cancel a job",
    query: { shape: { id: JOB_ID, cancel: parameter("cancel", FLAG, "1: cancel the job.") } },
    answer: {
      media: "application/json",
      schema: z.object({ status: z.enum(["running", "done", "failed", "cancelled"]) }),
      description: "The status; a job that has ended keeps its own",
    },
    errors: [404],
    route: cancelRoute,
  },
  "GET /props": {
    summary: "Models, adapters and defaults",
    answer: { media: "application/json", description: "Names that requests may use" },
    route: propsRoute,
  },
  "GET /logs": {
    summary: "Log of the server",
    description:
      "Recent lines, then new ones, as server-sent events. Without a key only this machine may read it.",
    answer: { media: "text/event-stream", description: "`data: line`" },
    route: logsRoute,
  },
});
