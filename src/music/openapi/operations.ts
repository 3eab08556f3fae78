/** What the document says of each endpoint: one entry for each of `routes/endpoints.ts`. */
import type { z } from "zod";
import { parameter } from "../../parameters/names.js";
import { oneOf, requiredText } from "../../parameters/values.js";
import { modelPullSchema } from "../model-pulls.js";
import { taskRowSchema } from "../queue/task-row.js";
import { taskStatusItemSchema } from "../queue/task-status.js";
import * as adapters from "../request/adapter-bodies.js";
import * as dataSets from "../request/data-set-bodies.js";
import { AUDIO_FORMATS, generationSchema } from "../request/schema.js";
import {
  formatMetadataSchema,
  formatTextSchema,
  parseModelPull,
  parseModelSwitch,
  parseTaskFilter,
  sampleType,
  sampleWishSchema,
  taskMarks,
} from "../request/service-bodies.js";
import * as answers from "./answers.js";

export type JsonSchema = Readonly<Record<string, unknown>>;
/**
 * Parameters of a body or a query by the service's names, and objects of such; or JSON Schema where they are no list at
 * all.
 */
export type Parameters =
  | { shape: Readonly<Record<string, z.ZodType>>; objects?: Readonly<Record<string, Parameters>> }
  | { json: JsonSchema };

export interface Operation {
  tag: "Tasks" | "Words" | "Chat" | "Models" | "Adapters" | "Training" | "Data sets" | "Service";
  summary: string;
  query?: Parameters;
  headers?: Readonly<Record<string, string>>;
  body?: Parameters;
  /** The fields of files, where the body may hold some. */
  files?: readonly string[];
  /** The data of the envelope; what a media type holds where it is no JSON in the envelope. */
  answer: z.ZodType | { media: string; schema?: z.ZodType; description: string };
  /** Statuses of failures beside those that every endpoint has. */
  errors?: readonly number[];
  /** Also open to those without the key. */
  isOpen?: boolean;
  /** The key may stand in the query, for what a page cannot give headers. */
  takesKeyInQuery?: boolean;
  example?: JsonSchema;
}

const taskId = {
  json: {
    type: "object",
    properties: { task_id: { type: "string", description: "Id of the task." } },
    required: ["task_id"],
  },
};
const taskIds = {
  json: {
    type: "object",
    properties: {
      task_id_list: {
        type: "array",
        items: { type: "string" },
        maxItems: 1000,
        description: "Ids of tasks, also as JSON text or comma-separated.",
      },
    },
    required: ["task_id_list"],
  },
};
const conversation = {
  json: {
    type: "object",
    description:
      "The last message of the user holds the words, and recordings as input_audio; all parameters of POST /release_task may stand beside it.",
    properties: {
      messages: {
        type: "array",
        items: { type: "object" },
        description: "The conversation as chat models take it.",
      },
      stream: { type: "boolean", description: "Whether the answer comes in parts, as server-sent events." },
    },
    required: ["messages"],
  },
};
const audioQuery = {
  shape: {
    path: parameter("path", requiredText, "what a result names in `file`"),
    format: parameter(
      "format",
      oneOf(AUDIO_FORMATS).optional(),
      "converts the song, from what it is stored as",
    ),
  },
};
const eventStream = {
  media: "text/event-stream",
  description:
    "Events queued, position, stage, progress, and at last done or failed with the Task. Last-Event-ID goes on behind that event; a finished task answers at once.",
};

const TASKS: Record<string, Operation> = {
  "POST /release_task": {
    tag: "Tasks",
    summary: "Queue a song",
    headers: { "Idempotency-Key": "text of the client's own: all submissions under it are one task" },
    body: generationSchema,
    files: ["src_audio", "reference_audio"],
    answer: answers.acceptedTask,
    errors: [415, 422, 429, 507],
    example: { prompt: "slow bossa nova, nylon guitar", audio_duration: 20, batch_size: 1 },
  },
  "POST /query_result": {
    tag: "Tasks",
    summary: "States and results of tasks by id",
    body: taskIds,
    answer: taskStatusItemSchema.array(),
    errors: [415],
    example: { task_id_list: ["05173848-cbc3-4b86-b50f-6c8941975494"] },
  },
  "POST /cancel_task": {
    tag: "Tasks",
    summary: "End a task that waits or runs",
    body: taskId,
    answer: answers.cancelledTask,
    errors: [404, 415, 507],
  },
  "GET /v1/tasks": {
    tag: "Tasks",
    summary: "All tasks, newest first, by pages",
    query: parseTaskFilter,
    answer: answers.taskPage,
  },
  "GET /v1/tasks/:id": { tag: "Tasks", summary: "A task", answer: taskRowSchema, errors: [404] },
  "PATCH /v1/tasks/:id": {
    tag: "Tasks",
    summary: "Name a task, or make it a favourite",
    body: taskMarks,
    answer: taskRowSchema,
    errors: [404, 415, 507],
    example: { title: "Evening", favorite: true },
  },
  "DELETE /v1/tasks/:id": {
    tag: "Tasks",
    summary: "Cancel a task that waits or runs; remove a finished one with its songs",
    answer: answers.removedTask,
    errors: [404, 409, 507],
  },
  "GET /v1/tasks/:id/events": {
    tag: "Tasks",
    summary: "What happens to a task, as it happens",
    headers: { "Last-Event-ID": "id of the last event that arrived" },
    answer: eventStream,
    errors: [404],
    takesKeyInQuery: true,
  },
  "GET /v1/tasks/:id/preview": {
    tag: "Tasks",
    summary: "The first song of a task, to be heard while it is decoded",
    answer: {
      media: "audio/wav",
      description:
        "16-bit stereo at 48 kHz, of unknown length, from the beginning on: it answers once there is sound, and ends with the song, after four minutes, or with the task. The level is the decoder's, lowered where it would exceed -1 dB. A task that has ended redirects (307) to its first song.",
    },
    errors: [404, 501],
    takesKeyInQuery: true,
  },
  "GET /v1/audio": {
    tag: "Tasks",
    summary: "The audio of a song, whole or by ranges",
    query: audioQuery,
    answer: { media: "audio/*", description: "The audio" },
    errors: [403, 404, 416, 429],
    takesKeyInQuery: true,
  },
  "GET /v1/stats": { tag: "Tasks", summary: "Counters of tasks", answer: answers.statistics },
};

const WORDS: Record<string, Operation> = {
  "POST /format_input": {
    tag: "Words",
    summary: "Rewrite a caption and lyrics",
    body: { shape: formatTextSchema.shape, objects: { param_obj: formatMetadataSchema } },
    answer: answers.songSheet,
    errors: [415, 429],
    example: { prompt: "jazz", lyrics: "", param_obj: { bpm: 90 } },
  },
  "POST /v1/create_sample": {
    tag: "Words",
    summary: "Write a wish out as a song's sheet",
    body: sampleWishSchema,
    answer: answers.wishedSheet,
    errors: [415, 429],
    example: { query: "a sad song about rain" },
  },
  "POST /create_random_sample": {
    tag: "Words",
    summary: "An example to fill a form with",
    body: { shape: { sampleType } },
    answer: answers.randomSample,
    errors: [415],
  },
  "POST /v1/chat/completions": {
    tag: "Chat",
    summary: "A song as the answer of a chat model",
    body: conversation,
    answer: {
      media: "application/json",
      schema: answers.chatCompletion,
      description: "The song; with `stream`, its parts as server-sent events",
    },
    errors: [415, 429, 507],
    example: { messages: [{ role: "user", content: "slow bossa nova" }] },
  },
};

const MODELS: Record<string, Operation> = {
  "GET /health": {
    tag: "Service",
    summary: "Whether the service is up",
    answer: answers.health,
    isOpen: true,
  },
  "GET /v1/models": { tag: "Models", summary: "The models that a task can name", answer: answers.modelList },
  "GET /v1/model_inventory": {
    tag: "Models",
    summary: "All that is installed, and what of it is loaded",
    answer: answers.modelInventory,
  },
  "POST /v1/init": {
    tag: "Models",
    summary: "Load or switch models",
    body: parseModelSwitch,
    answer: answers.modelSwitch,
    errors: [415],
  },
  "GET /v1/models/pull": {
    tag: "Models",
    summary: "How far the download of a model is",
    answer: modelPullSchema,
  },
  "POST /v1/models/pull": {
    tag: "Models",
    summary: "Download a model into the checkpoint directory",
    body: parseModelPull,
    answer: modelPullSchema,
    errors: [409, 415],
    example: { model: "acestep-v15-turbo" },
  },
  "DELETE /v1/models/pull": {
    tag: "Models",
    summary: "Cancel the download; the next one goes on with what is there",
    answer: modelPullSchema,
    errors: [404],
  },
  "POST /v1/reinitialize": {
    tag: "Models",
    summary: "Load what should be loaded and is not",
    answer: answers.reloadedModels,
    errors: [415],
  },
};

const ADAPTERS: Record<string, Operation> = {
  "POST /v1/lora/load": {
    tag: "Adapters",
    summary: "Load an adapter and make it the active one",
    body: adapters.parseAdapterLoad,
    answer: answers.loadedAdapter,
    errors: [415],
  },
  "POST /v1/lora/unload": {
    tag: "Adapters",
    summary: "Let all adapters go",
    answer: answers.unloadedAdapter,
    errors: [415],
  },
  "POST /v1/lora/toggle": {
    tag: "Adapters",
    summary: "Use the active adapter, or not",
    body: adapters.parseAdapterToggle,
    answer: answers.toggledAdapter,
    errors: [415],
  },
  "POST /v1/lora/scale": {
    tag: "Adapters",
    summary: "How strongly an adapter acts",
    body: adapters.parseAdapterScale,
    answer: answers.scaledAdapter,
    errors: [415],
  },
  "GET /v1/lora/status": {
    tag: "Adapters",
    summary: "The adapters that are loaded",
    answer: answers.adapterStatus,
  },
};

const TRAINING: Record<string, Operation> = {
  "POST /v1/training/start": {
    tag: "Training",
    summary: "Train a LoRA in the background",
    body: adapters.parseLoraTraining,
    answer: answers.startedTraining,
    errors: [415],
  },
  "POST /v1/training/start_lokr": {
    tag: "Training",
    summary: "Train a LoKr in the background",
    body: adapters.parseLokrTraining,
    answer: answers.startedTraining,
    errors: [415],
  },
  "POST /v1/training/stop": {
    tag: "Training",
    summary: "End the run under way within a step",
    answer: answers.stoppedTraining,
    errors: [415],
  },
  "GET /v1/training/status": {
    tag: "Training",
    summary: "The run under way, else the latest one",
    answer: answers.trainingStatus,
  },
  "POST /v1/training/load_tensor_info": {
    tag: "Training",
    summary: "What a directory of samples holds",
    body: adapters.parseTensorInfo,
    answer: answers.tensorInfo,
    errors: [415],
  },
  "POST /v1/training/export": {
    tag: "Training",
    summary: "Copy a trained adapter",
    body: adapters.parseAdapterExport,
    answer: answers.exportedAdapter,
    errors: [415, 507],
  },
};

const DATA_SETS: Record<string, Operation> = {
  "POST /v1/dataset/scan": {
    tag: "Data sets",
    summary: "Make a data set of a folder of audio",
    body: dataSets.parseScan,
    answer: answers.scannedDataSet,
    errors: [415],
  },
  "POST /v1/dataset/load": {
    tag: "Data sets",
    summary: "Take up a data set that was saved",
    body: dataSets.parseLoad,
    answer: answers.dataSetContent,
    errors: [415],
  },
  "POST /v1/dataset/save": {
    tag: "Data sets",
    summary: "Save the data set",
    body: dataSets.parseSave,
    answer: answers.savedDataSet,
    errors: [415, 507],
  },
  "GET /v1/dataset/samples": {
    tag: "Data sets",
    summary: "The samples of the data set",
    answer: answers.dataSetContent,
  },
  "GET /v1/dataset/sample/:index": {
    tag: "Data sets",
    summary: "A sample",
    answer: answers.dataSetSample,
    errors: [404],
  },
  "PUT /v1/dataset/sample/:index": {
    tag: "Data sets",
    summary: "Describe a sample",
    body: dataSets.parseSampleChange,
    answer: answers.updatedSample,
    errors: [404, 415],
  },
  "POST /v1/dataset/auto_label": {
    tag: "Data sets",
    summary: "Describe all samples, and answer once that is done",
    body: dataSets.parseLabeling,
    answer: answers.labeledDataSet,
    errors: [415],
  },
  "POST /v1/dataset/auto_label_async": {
    tag: "Data sets",
    summary: "Begin to describe all samples",
    body: dataSets.parseLabeling,
    answer: answers.startedWork,
    errors: [415],
  },
  "GET /v1/dataset/auto_label_status{/:taskId}": {
    tag: "Data sets",
    summary: "How far that is",
    answer: answers.workStatus,
    errors: [404],
  },
  "POST /v1/dataset/preprocess": {
    tag: "Data sets",
    summary: "Write all samples as files for training, and answer once that is done",
    body: dataSets.parsePreparation,
    answer: answers.preparedDataSet,
    errors: [415, 507],
  },
  "POST /v1/dataset/preprocess_async": {
    tag: "Data sets",
    summary: "Begin to write them",
    body: dataSets.parsePreparation,
    answer: answers.startedWork,
    errors: [415],
  },
  "GET /v1/dataset/preprocess_status{/:taskId}": {
    tag: "Data sets",
    summary: "How far that is",
    answer: answers.workStatus,
    errors: [404],
  },
};

const SERVICE: Record<string, Operation> = {
  "GET /openapi.json": {
    tag: "Service",
    summary: "This description",
    answer: { media: "application/json", description: "OpenAPI 3.1" },
    isOpen: true,
  },
  "GET /metrics": {
    tag: "Service",
    summary: "Counters and times for Prometheus",
    answer: { media: "text/plain", description: "Prometheus' text format" },
  },
  "GET /docs": {
    tag: "Service",
    summary: "This description, for people",
    answer: { media: "text/html", description: "A page" },
    isOpen: true,
  },
};

export const OPERATIONS: Readonly<Record<string, Operation>> = {
  ...TASKS,
  ...WORDS,
  ...MODELS,
  ...ADAPTERS,
  ...TRAINING,
  ...DATA_SETS,
  ...SERVICE,
};
