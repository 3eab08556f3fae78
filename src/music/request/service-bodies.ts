/** The small bodies: polling, text helpers, random samples, model switching. */
import { z } from "zod";
import type { RangePolicy } from "../../config.js";
import {
  describe,
  flag,
  lyricsText,
  oneOf,
  parameter,
  requiredText,
  strictInteger,
  text,
  textOrNull,
  trimmed,
  within,
} from "../../parameters.js";
import { RequestError } from "../errors.js";
import { FieldSources, parseField, parseObject, strictParser } from "./fields.js";
import { type Fields, isObject, readClientJson } from "./json.js";
import { generationSchema, TASK_ID_NAMES } from "./schema.js";

const MAX_TASK_IDS = 1000;
const MAX_SHOWN_KEYS = 8;

/**
 * The ids of POST /query_result in the order asked, repetitions kept: an array, a form field that is repeated, JSON
 * text of an array, or ids separated by commas.
 * @throws RequestError where `task_id_list` is absent, too long, or holds anything but ids
 */
export const parseTaskIds = Object.assign(readTaskIds, {
  json: {
    type: "object",
    properties: {
      task_id_list: {
        type: "array",
        items: { type: "string" },
        maxItems: MAX_TASK_IDS,
        description: "Ids of tasks, also as JSON text or comma-separated.",
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
  const parsed = readClientJson(value, "task_id_list");
  if (parsed === undefined) return value.split(",", MAX_TASK_IDS + 1).flatMap((id) => id.trim() || []);
  return Array.isArray(parsed) ? readIds(parsed) : undefined;
}

/** The id of POST /cancel_task. @throws RequestError without one */
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

const { bpm, audioDurationSeconds, keyScale, timeSignature, lmTemperature, lmModelPath } =
  generationSchema.shape;
const temperature = parameter("temperature", lmTemperature);
const language = parameter(
  ["language", "vocal_language"],
  textOrNull.nullable().default(null),
  "Language of the lyrics; open: the model decides.",
);

export const formatTextSchema = z.object({
  prompt: parameter(["prompt", "caption"], text.default(""), "The caption to rewrite."),
  lyrics: parameter("lyrics", lyricsText.default(""), "The lyrics to rewrite."),
  temperature,
});

/** The metadata of `param_obj`, by the rules of generation requests. */
export const formatMetadataSchema = z.object({
  bpm,
  durationSeconds: audioDurationSeconds,
  keyScale,
  timeSignature,
  language,
});

export type FormatInput = z.output<typeof formatTextSchema> &
  z.output<typeof formatMetadataSchema> & { warnings: string[] };

/**
 * The body of POST /format_input.
 * @throws RequestError naming the field at fault
 */
export function parseFormatInput(fields: Fields, policy: RangePolicy): FormatInput {
  const warnings: string[] = [];
  const topLevel = new FieldSources(fields);
  const words = parseObject(formatTextSchema, topLevel, policy, warnings);
  const metadata = new FieldSources(readParamObj(fields.param_obj));
  const values = parseObject(formatMetadataSchema, metadata, policy, warnings);
  return {
    ...words,
    ...values,
    timeSignature: values.timeSignature || parseField(timeSignature, topLevel, policy, warnings),
    warnings,
  };
}

/** An object or JSON text of one; text that is no JSON counts as empty. */
function readParamObj(value: unknown): Fields {
  const parsed = (typeof value === "string" ? readClientJson(value, "param_obj") : value) ?? {};
  if (!isObject(parsed)) throw new RequestError(`param_obj must be an object, got ${describe(parsed)}`);
  return parsed;
}

export const sampleWishSchema = z.object({
  query: parameter(
    ["query", "sample_query", "description", "desc"],
    trimmed.default(""),
    "What the song should be, in a sentence or a few words.",
  ),
  instrumental: parameter("instrumental", flag.default(false), "Whether nobody sings."),
  language: parameter(["vocal_language", "language"], language),
  temperature,
});

export type SampleWish = z.output<typeof sampleWishSchema> & { warnings: string[] };

/**
 * The body of POST /v1/create_sample.
 * @throws RequestError naming the field at fault
 */
export function parseSampleWish(fields: Fields, policy: RangePolicy): SampleWish {
  const warnings: string[] = [];
  return { ...parseObject(sampleWishSchema, new FieldSources(fields), policy, warnings), warnings };
}

export type SampleType = "simple_mode" | "custom_mode";

/** The body of POST /create_random_sample. Any word but `simple_mode` asks for a custom sample. */
export const parseRandomSample = strictParser({
  sampleType: parameter(
    "sample_type",
    trimmed
      .transform((word): SampleType => (word === "simple_mode" ? word : "custom_mode"))
      .meta({ type: "string" })
      .default("simple_mode"),
    "simple_mode: an example in a sentence; any other word: a whole sheet.",
  ),
});

/** Tasks in one answer of GET /v1/tasks. */
const MAX_LISTED_TASKS = 200;

/** The query of GET /v1/tasks. */
export const parseTaskFilter = strictParser({
  state: parameter(
    "state",
    oneOf(["queued", "running", "succeeded", "failed"]).nullable().default(null),
    "Tasks in this state alone.",
  ),
  favorite: parameter(
    "favorite",
    flag.nullable().default(null),
    "true: favourites alone; false: all others.",
  ),
  search: parameter(
    ["search", "q"],
    trimmed.default(""),
    "Words that all stand in the title, the prompt or the lyrics.",
  ),
  offset: parameter(
    "offset",
    within(strictInteger, 0, Number.MAX_SAFE_INTEGER).default(0),
    "Newer tasks to pass over.",
  ),
  limit: parameter(
    "limit",
    within(strictInteger, 1, MAX_LISTED_TASKS).default(50),
    "Tasks in the answer; it may hold fewer.",
  ),
});

const MAX_TITLE = 200;

/** The body of PATCH /v1/tasks/{id}. What is absent stays; a title of "" takes the name away. */
export const taskMarks = z.strictObject({
  title: z
    .string("must be text")
    .trim()
    .max(MAX_TITLE, `must be at most ${MAX_TITLE} characters long`)
    .optional()
    .meta({ description: "What a person calls it; blank takes the name away." }),
  favorite: z
    .boolean("must be true or false")
    .optional()
    .meta({ description: "Whether its songs are kept whatever their age." }),
});

/** @throws RequestError naming the field at fault */
export const parseTaskMarks = Object.assign(readTaskMarks, { shape: taskMarks.shape });

function readTaskMarks(fields: Fields) {
  const { ai_token, ...marks } = fields;
  const result = taskMarks.safeParse(marks);
  if (result.success) return { title: result.data.title, favorite: result.data.favorite };
  const issue = result.error.issues[0] as z.core.$ZodIssue;
  const name = issue.code === "unrecognized_keys" ? issue.keys[0] : issue.path[0];
  const rule =
    issue.code === "unrecognized_keys" ? "is unknown: title and favorite can be set" : issue.message;
  throw new RequestError(`${String(name)} ${rule}, got ${describe(marks[String(name)])}`);
}

/** The body of POST /v1/init. */
export const parseModelSwitch = strictParser({
  model: parameter("model", textOrNull.nullable().default(null), "Name of the model; open: the slot's own."),
  slot: parameter("slot", within(strictInteger, 1, 3).default(1), "The slot to load it into."),
  initLanguageModel: parameter(
    ["init_llm"],
    flag.default(false),
    "Whether the language model is loaded, too.",
  ),
  languageModel: lmModelPath,
});

/** The body of POST /v1/models/pull. */
export const parseModelPull = strictParser({
  model: parameter("model", requiredText, "A model known by name, or owner/repository of the hub."),
});

export type ModelSwitch = ReturnType<typeof parseModelSwitch>;
