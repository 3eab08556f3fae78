/** Bodies and queries of the endpoints for task status, task lists, retakes, text, sample songs and models. */
import { z } from "zod";
import type { RangePolicy } from "../../config.js";
import {
  describe,
  type Fields,
  flag,
  integer,
  isObject,
  namesOf,
  offByDefault,
  oneOf,
  optionalText,
  parameter,
  requiredText,
  strictInteger,
  text,
  trimmed,
  within,
} from "../../parameters.js";
import { RequestError } from "../errors.js";
import { TASK_ORDERS } from "../queue/catalog.js";
import { TASK_STATES } from "../queue/store.js";
import { FieldSources, parseObject, strictParser } from "./fields.js";
import { tryParseClientJson } from "./json.js";
import { generationSchema, TASK_ID_NAMES } from "./schema.js";
import { lyrics, optionalLanguage } from "./value-types.js";

const MAX_TASK_IDS = 1000;
const MAX_SHOWN_KEYS = 8;

/**
 * Reads `task_id_list` of POST /query_result: an array, a repeated form field, JSON text of an array, or
 * comma-separated ids. Keeps order and repetitions.
 * @throws RequestError if the list is missing, too long, or contains values that are not ids
 */
export const parseTaskIds = Object.assign(readTaskIds, {
  json: {
    type: "object",
    properties: {
      task_id_list: {
        type: "array",
        items: { type: "string" },
        maxItems: MAX_TASK_IDS,
        description: "Task ids, also as JSON text or comma-separated.",
      },
    },
    required: ["task_id_list"],
  },
});

function readTaskIds(fields: Fields): string[] {
  const name = TASK_ID_NAMES.find((candidate) => Object.hasOwn(fields, candidate));
  if (name === undefined) {
    const keys = Object.keys(fields).slice(0, MAX_SHOWN_KEYS).map(describe).join(", ");
    throw new RequestError(`task_id_list is missing; the body holds ${keys || "no keys"}`);
  }
  const ids = readIds(fields[name]);
  if (ids === undefined) {
    throw new RequestError(`task_id_list must be an array of task ids, got ${describe(fields[name])}`);
  }
  if (ids.length > MAX_TASK_IDS) {
    throw new RequestError(`task_id_list must hold at most ${MAX_TASK_IDS} ids, got ${ids.length}`);
  }
  return ids;
}

function readIds(value: unknown): string[] | undefined {
  if (value === null || typeof value === "number") return [];
  if (typeof value === "string") return readIdText(value.trim());
  if (!Array.isArray(value)) return undefined;
  const isId = (element: unknown) => typeof element === "string" || typeof element === "number";
  return value.every(isId) ? value.map(String) : undefined;
}

function readIdText(value: string): string[] | undefined {
  const parsed = tryParseClientJson(value, "task_id_list");
  if (parsed === undefined) return value.split(",", MAX_TASK_IDS + 1).flatMap((id) => id.trim() || []);
  return Array.isArray(parsed) ? readIds(parsed) : undefined;
}

/** Reads the id of POST /cancel_task. @throws RequestError if it is missing */
export const parseTaskId = Object.assign(readTaskId, {
  json: {
    type: "object",
    properties: { task_id: { type: "string", description: "Id of the task." } },
    required: ["task_id"],
  },
});

function readTaskId({ task_id, job_id }: Fields): string {
  const id = task_id ?? job_id;
  if (typeof id !== "string" || id === "") throw new RequestError("task_id is missing");
  return id;
}

const {
  bpm,
  durationSeconds,
  keyScale,
  timeSignature,
  temperature: lmTemperature,
  languageModel,
} = generationSchema.shape;
const temperature = parameter("temperature", lmTemperature);
const language = parameter(
  ["language", "vocal_language"],
  optionalLanguage,
  "Language of the lyrics; unset: chosen by the model.",
);

export const formatTextSchema = z.object({
  prompt: parameter(["prompt", "caption"], text.default(""), "The caption to rewrite."),
  lyrics: parameter("lyrics", lyrics.default(""), "The lyrics to rewrite."),
  temperature,
});

/** Metadata of POST /format_input, in the body or in its `param_obj`. The rules are the same as in POST /release_task. */
export const formatMetadataSchema = z.object({
  bpm,
  durationSeconds,
  keyScale,
  timeSignature,
  language,
});

export type FormatInput = z.output<typeof formatTextSchema> &
  z.output<typeof formatMetadataSchema> & { warnings: string[] };

/** @throws RequestError naming the invalid field */
export function parseFormatInput(fields: Fields, policy: RangePolicy): FormatInput {
  const warnings: string[] = [];
  const sources = new FieldSources({ ...fields, param_obj: readParamObj(fields.param_obj) });
  return {
    ...parseObject(formatTextSchema, sources, policy, warnings),
    ...parseObject(formatMetadataSchema, sources, policy, warnings),
    warnings,
  };
}

/** Reads an object, or JSON text of one. Invalid JSON counts as an empty object. */
function readParamObj(value: unknown): Fields {
  const parsed = (typeof value === "string" ? tryParseClientJson(value, "param_obj") : value) ?? {};
  if (!isObject(parsed)) throw new RequestError(`param_obj must be an object, got ${describe(parsed)}`);
  return parsed;
}

export const sampleRequestSchema = z.object({
  query: parameter(
    ["query", "sample_query", "description", "desc"],
    trimmed.default(""),
    "Short description of the song.",
  ),
  instrumental: parameter("instrumental", offByDefault, "Song without vocals."),
  language: parameter(["vocal_language", "language"], language),
  temperature,
});

export type SampleRequest = z.output<typeof sampleRequestSchema> & { warnings: string[] };

/** @throws RequestError naming the invalid field */
export function parseSampleRequest(fields: Fields, policy: RangePolicy): SampleRequest {
  const warnings: string[] = [];
  return { ...parseObject(sampleRequestSchema, new FieldSources(fields), policy, warnings), warnings };
}

export type SampleType = "simple_mode" | "custom_mode";

/**
 * Body of POST /create_random_sample. Any value but `simple_mode` asks for a sample with caption, lyrics and
 * metadata.
 */
export const parseRandomSample = strictParser({
  sampleType: parameter(
    "sample_type",
    trimmed
      .transform((word): SampleType => (word === "simple_mode" ? word : "custom_mode"))
      .meta({ type: "string" })
      .default("simple_mode"),
    "simple_mode: a short description; any other value: caption, lyrics and metadata.",
  ),
});

/** Maximum number of tasks per page of GET /v1/tasks. */
const MAX_LISTED_TASKS = 200;

const idList = trimmed
  .transform((ids) => ids.split(",").flatMap((id) => id.trim() || []))
  .meta({ type: "string" });

/** Query of GET /v1/tasks. */
export const parseTaskFilter = strictParser({
  state: parameter("state", oneOf(TASK_STATES).nullable().default(null), "Only tasks in this state."),
  favorite: parameter(
    "favorite",
    flag.nullable().default(null),
    "true: only favourites; false: only others.",
  ),
  analysis: parameter(
    "analysis",
    flag.nullable().default(null),
    "true: only analyses; false: only tasks that make songs.",
  ),
  temporary: parameter(
    "temporary",
    flag.nullable().default(null),
    "true: only tasks that expire after an hour; false: only others.",
  ),
  retakesOf: parameter(
    ["retakes_of", "retake_of"],
    optionalText,
    "Id of a task: only that task and its retakes. For a retake, use its `retake_of`.",
  ),
  search: parameter(
    ["search", "q"],
    trimmed.default(""),
    "Words that must all occur in title, prompt or lyrics.",
  ),
  ids: parameter("task_ids", idList.nullable().default(null), "Only these tasks, comma-separated."),
  order: parameter(
    "sort",
    oneOf(TASK_ORDERS).default("newest"),
    "newest or oldest first, or by title; tasks without a title by their prompt.",
  ),
  offset: parameter(
    "offset",
    within(strictInteger, 0, Number.MAX_SAFE_INTEGER).default(0),
    "Number of tasks to skip.",
  ),
  limit: parameter(
    "limit",
    within(strictInteger, 1, MAX_LISTED_TASKS).default(50),
    "Maximum number of tasks.",
  ),
});

/** Query of DELETE /v1/tasks/{id}. A task with songs is deleted only if the query names the state `succeeded`. */
export const parseTaskRemoval = strictParser({
  state: parameter(
    "state",
    oneOf(TASK_STATES).nullable().default(null),
    "State in which the task is removed; in another state the answer is 409. Unset: any state but succeeded.",
  ),
});

/** Query of GET /v1/retention. */
export const parseRetentionQuery = strictParser({
  ids: parameter("task_ids", idList.default([]), "Tasks whose removal is forecast, comma-separated."),
});

const retakeParser = strictParser({
  seed: generationSchema.shape.seed,
  batchSize: parameter(
    "batch_size",
    within(integer, 1, 8).nullable().default(null),
    "Number of songs; unset: as in the original task.",
  ),
});
const RETAKE_NAMES: ReadonlySet<string> = new Set([
  ...Object.values(retakeParser.shape).flatMap((type) => [...namesOf(type)]),
  "ai_token",
]);

/** Body of POST /v1/tasks/{id}/retake. @throws RequestError naming the invalid field */
export const parseRetake = Object.assign(readRetake, { shape: retakeParser.shape });

function readRetake(fields: Fields) {
  const other = Object.keys(fields).find((name) => !RETAKE_NAMES.has(name));
  if (other === undefined) return retakeParser(fields);
  throw new RequestError(
    `A retake can change only seed and batch_size, not ${describe(other)}; to change others, send all parameters to POST /release_task`,
  );
}

const MAX_TITLE = 200;

/** Body of PATCH /v1/tasks/{id}. Absent values are unchanged; a blank title is removed. */
export const taskChanges = z.strictObject({
  title: z
    .string("must be text")
    .trim()
    .max(MAX_TITLE, `must be at most ${MAX_TITLE} characters long`)
    .optional()
    .meta({ description: "Title; blank removes it." }),
  favorite: z
    .boolean("must be true or false")
    .optional()
    .meta({ description: "true: keep the songs of the task regardless of age." }),
  temporary: z
    .boolean("must be true or false")
    .optional()
    .meta({ description: "false: keep the songs of a task that was submitted with `temporary`." }),
});

/** @throws RequestError naming the invalid field */
export const parseTaskChanges = Object.assign(readTaskChanges, { shape: taskChanges.shape });

function readTaskChanges(fields: Fields) {
  const { ai_token, ...marks } = fields;
  const result = taskChanges.safeParse(marks);
  if (result.success) return result.data;
  const issue = result.error.issues[0] as z.core.$ZodIssue;
  const name = issue.code === "unrecognized_keys" ? issue.keys[0] : issue.path[0];
  const rule =
    issue.code === "unrecognized_keys"
      ? "is unknown: only title, favorite and temporary can be set"
      : issue.message;
  throw new RequestError(`${String(name)} ${rule}, got ${describe(marks[String(name)])}`);
}

/** Body of POST /v1/init. */
export const parseModelSwitch = strictParser({
  model: parameter("model", optionalText, "Name of the model; unset: the model of the slot."),
  slot: parameter("slot", within(strictInteger, 1, 3).default(1), "Slot to load the model into."),
  initLanguageModel: parameter(["init_llm"], offByDefault, "Also load the language model."),
  languageModel: languageModel,
});

/** Body of POST /v1/models/pull. */
export const parseModelPull = strictParser({
  model: parameter("model", requiredText, "Known model name, or owner/repository on Hugging Face."),
});

export type ModelSwitch = ReturnType<typeof parseModelSwitch>;
