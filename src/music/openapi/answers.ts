/**
 * Schemas of HTTP responses. Those of task rows and task status are in ../queue. Unless stated otherwise, a schema
 * describes the field `data` of the envelope.
 */
import { z } from "zod";
import { noteSchema } from "../../notes.js";
import { workerStatus } from "../queue/task-queue.js";
import { taskRowSchema } from "../queue/task-row.js";

const text = z.string();
const warnings = z.array(text).meta({ description: "values that were changed or ignored" });
const withMessage = z.object({ message: text });

export const errorAnswer = z
  .object({
    detail: text.meta({ description: "one line: the fault and how to fix it" }),
    error: z
      .union([text, z.object({ message: text, type: text, param: z.null(), code: z.int() })])
      .optional()
      .meta({ description: "same as `detail`, for clients that read this field" }),
    note: noteSchema.optional().meta({ description: "`detail` with a code; absent without one" }),
  })
  .meta({ id: "Error" });

export const acceptedTask = z
  .object({
    task_id: z.uuid(),
    status: z.literal("queued"),
    queue_position: z.int().min(1),
    warnings,
  })
  .meta({ id: "AcceptedTask" });

export const taskPage = z
  .object({
    tasks: z.array(taskRowSchema),
    total: z.int().meta({ description: "number of matching tasks" }),
    offset: z.int(),
  })
  .meta({ id: "TaskPage" });

export const session = z.object({
  active: z.boolean().meta({ description: "whether a session cookie was set; false without SVC_API_KEY" }),
});
export const cancelledTask = z.object({ job_id: text, status: z.literal("cancelled") });
export const removedTask = z.object({ task_id: text, status: z.enum(["cancelled", "deleted"]) });

const count = z.int().min(0);
export const statistics = z.object({
  jobs: z.object({ total: count, queued: count, running: count, succeeded: count, failed: count }),
  queue_size: count,
  queue_maxsize: count,
  avg_job_seconds: z.number(),
  workers: z
    .array(workerStatus)
    .optional()
    .meta({ description: "fleet workers; absent for a standalone server" }),
});

const sheet = {
  caption: text,
  lyrics: text,
  bpm: z.number().nullable(),
  key_scale: text,
  time_signature: text,
  duration: z.number().nullable().meta({ description: "seconds" }),
  vocal_language: text,
};
export const songSheet = z.object({ ...sheet, warnings }).meta({ id: "SongSheet" });
/** Song sheet of POST /v1/create_sample. Repeats key and time signature under the names that older clients read. */
export const sampleSheet = z.object({ ...sheet, warnings, keyscale: text, timesignature: text });
export const randomSample = z.looseObject(sheet);

export const health = z.object({
  status: z.literal("ok"),
  service: text,
  version: text,
  models_initialized: z.boolean(),
  llm_initialized: z.boolean(),
  loaded_model: text.nullable(),
  loaded_lm_model: text.nullable(),
});

const model = z.object({ name: text, is_default: z.boolean(), is_loaded: z.boolean() });
const languageModel = z.object({
  name: text,
  is_loaded: z.boolean(),
  writes_text: z.boolean().meta({
    description: "false for the built-in model, which plans songs and writes no captions or lyrics",
  }),
});
export const modelList = z.object({
  models: z.array(model.omit({ is_loaded: true })),
  default_model: text.nullable(),
});
export const modelInventory = z.object({
  models: z.array(
    model.extend({
      supported_task_types: z.array(text),
      infer_methods: z.array(text).meta({ description: "solvers; every model runs with all of them" }),
      sings: z.boolean().meta({ description: "false for the built-in model, which is instrumental" }),
    }),
  ),
  default_model: text.nullable(),
  slots: z.array(
    z.object({
      slot: z.int(),
      model: text.nullable().meta({ description: "null until a model was loaded" }),
      is_loaded: z.boolean().meta({ description: "false: unloaded until the next use" }),
    }),
  ),
  lm_models: z.array(languageModel),
  loaded_lm_model: text.nullable(),
  llm_initialized: z.boolean(),
});
export const switchedModels = z.object({
  message: text,
  slot: z.int(),
  loaded_model: text.nullable(),
  loaded_lm_model: text.nullable(),
  models: z.array(model),
  lm_models: z.array(languageModel),
  llm_initialized: z.boolean(),
});
export const modelPullStatus = z
  .object({
    published: z.array(z.string()).meta({ description: "models known by name; others as owner/repository" }),
    singing: z.object({ model: z.string(), bytes: z.int() }).meta({
      description: "model to pull for songs with vocals, and its size with shared parts",
    }),
    pull: z
      .object({
        model: z.string(),
        state: z.enum(["running", "completed", "failed", "cancelled"]),
        done_bytes: z
          .int()
          .meta({ description: "downloaded and verified bytes, including files already present" }),
        total_bytes: z.int().meta({ description: "0 until all files are listed" }),
        file: z.string().meta({ description: "file being downloaded" }),
        new_folders: z
          .array(z.string())
          .meta({ description: "new folders in the checkpoint directory; empty if all files were present" }),
        error: z.string().nullable(),
      })
      .nullable()
      .meta({ description: "running download, or the latest since the server started" }),
  })
  .meta({ id: "ModelPull" });

export const reloadedModels = z.object({ message: text, reloaded: z.array(text) });

/** Chat completion, which is sent without the envelope. */
export const chatCompletion = z.looseObject({
  id: text,
  object: z.literal("chat.completion"),
  created: z.int(),
  model: text,
  choices: z.array(
    z.object({
      index: z.int(),
      message: z.object({
        role: z.literal("assistant"),
        content: text,
        audio: z.union([
          z.array(z.object({ type: z.literal("audio_url"), audio_url: z.object({ url: text }) })),
          z
            .object({ id: text, data: text, transcript: text, expires_at: z.int() })
            .meta({ description: "with `modalities` or `audio`: one song in base64, and its lyrics" }),
        ]),
      }),
      finish_reason: text,
    }),
  ),
});

export const adapterStatus = z.object({
  lora_loaded: z.boolean(),
  use_lora: z.boolean(),
  lora_scale: z.number(),
  adapter_type: text.nullable(),
  scales: z.record(text, z.number()),
  active_adapter: text.nullable(),
  adapters: z.array(text),
  enabled_adapters: z.array(text),
  paths: z.record(text, text).meta({ description: "path of each adapter, as POST /v1/lora/load takes it" }),
  synthetic_default_mode: z.boolean(),
});
export const savedStyle = z.object({
  name: text,
  path: text,
  saved_time: z.number().meta({ description: "seconds since the epoch" }),
});
export const availableAdapters = z.object({
  adapters: z.array(text).meta({ description: "paths" }),
  styles: z.array(savedStyle),
});
export const loadedAdapter = withMessage.extend({ lora_path: text, adapter_name: text });
export const unloadedAdapter = withMessage;
export const toggledAdapter = withMessage.extend({ use_lora: z.boolean() });
export const scaledAdapter = withMessage.extend({ scale: z.number(), adapter_name: text.nullable() });

export const startedTraining = withMessage.extend({
  tensor_dir: text,
  output_dir: text,
  config: z.looseObject({}),
  run_id: text,
  warnings: z.array(text).meta({ description: "fields that were ignored" }),
  fp8_enabled: z.boolean().optional(),
});
export const stoppedTraining = withMessage;
export const exportedAdapter = z.looseObject({ message: text });
const number = z.number().nullable();
export const interruptedRun = z
  .object({
    adapter_type: z.enum(["lora", "lokr"]),
    output_dir: text,
    current_step: z.int(),
    resume_from: text.nullable().meta({ description: "latest checkpoint; null if none was saved" }),
    parameters: z.looseObject({}).meta({ description: "request of the run" }),
  })
  .meta({ description: "the latest run, if a stop or crash of the server ended it" });
export const trainingStatus = z.object({
  is_training: z.boolean(),
  should_stop: z.boolean(),
  current_step: z.int(),
  current_loss: number,
  status: text,
  config: z.looseObject({}),
  tensor_dir: text,
  loss_history: z.array(z.object({ step: z.int(), loss: z.number() })),
  tensorboard_url: z.null(),
  tensorboard_logdir: text.nullable(),
  training_log: text,
  start_time: number,
  current_epoch: z.int(),
  steps_per_second: z.number(),
  estimated_time_remaining: z.number(),
  error: text.nullable(),
  state: z.enum(["idle", "starting", "running", "stopping", "completed", "stopped", "failed"]),
  run_id: text.nullable(),
  adapter_type: text.nullable(),
  total_steps: z.int(),
  total_epochs: z.int(),
  learning_rate: number,
  grad_norm: number,
  output_path: text.nullable(),
  interrupted: interruptedRun.nullable(),
});
export const tensorInfo = z.object({
  dataset_name: text,
  num_samples: count,
  custom_tag: text,
  tensor_dir: text,
  message: text,
});

const sample = z.looseObject({ index: count, filename: text, caption: text, labeled: z.boolean() });
const samples = z.array(sample);
export const scannedDataSet = withMessage.extend({ num_samples: count, samples });
export const dataSetContent = z.object({
  message: text.optional(),
  dataset_name: text,
  num_samples: count,
  labeled_count: count,
  samples,
});
export const storedRecording = z.object({ audio_dir: text, bytes: count });
export const savedDataSet = withMessage.extend({ save_path: text });
export const dataSetSample = sample;
export const updatedSample = withMessage.extend({ sample });
export const labeledDataSet = withMessage.extend({ labeled_count: count, samples });
export const preparedDataSet = withMessage.extend({ output_dir: text, num_tensors: count });
export const startedDataSetTask = z.object({ task_id: text, message: text, total: count });
export const dataSetTaskStatus = z.looseObject({
  task_id: text.nullable(),
  status: z.enum(["idle", "running", "completed", "failed"]),
  progress: text,
  current: count,
  total: count,
});
