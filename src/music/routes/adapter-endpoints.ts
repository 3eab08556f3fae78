/** The endpoints of adapters: those in use, their training, and the data sets that they are trained on. */
import type { Request } from "express";
import type { StartedTask } from "../dataset/background-tasks.js";
import { type DataSet, sampleFields, sampleSummary } from "../dataset/data-set.js";
import { tensorInfo } from "../dataset/sample-set.js";
import { HttpError } from "../errors.js";
import {
  parseAdapterExport,
  parseAdapterLoad,
  parseAdapterScale,
  parseAdapterToggle,
  parseLokrTraining,
  parseLoraTraining,
  parseTensorInfo,
} from "../request/adapter-bodies.js";
import {
  parseLabeling,
  parseLoad,
  parsePreparation,
  parseSampleChange,
  parseSave,
  parseScan,
} from "../request/data-set-bodies.js";
import type { Fields } from "../request/json.js";
import { exportAdapter } from "../training/export.js";
import { command, type Endpoints, type RouteContext, reading } from "./route.js";

/** Adapters of slot 1. A load makes the adapter the active one; an unload lets all of them go. */
export const ADAPTER_ENDPOINTS: Endpoints = {
  "POST /v1/lora/load": command(({ service }, fields) => service.adapters.load(parseAdapterLoad(fields))),
  "POST /v1/lora/unload": command(({ service }) => service.adapters.unload()),
  "POST /v1/lora/toggle": command(({ service }, fields) =>
    service.adapters.toggle(parseAdapterToggle(fields).enabled),
  ),
  "POST /v1/lora/scale": command(({ service }, fields) => service.adapters.scale(parseAdapterScale(fields))),
  "GET /v1/lora/status": reading(({ service }) => service.adapters.status()),
};

/** Training goes on in the background; a stop ends the run under way within a step. */
const TRAINING: Endpoints = {
  "POST /v1/training/start": command(({ service }, fields) =>
    service.training.startLora(parseLoraTraining(fields)),
  ),
  "POST /v1/training/start_lokr": command(({ service }, fields) =>
    service.training.startLokr(parseLokrTraining(fields)),
  ),
  "POST /v1/training/stop": command(({ service }) => service.training.stop()),
  /** The run under way, else the latest one. */
  "GET /v1/training/status": reading(({ service }) => service.training.status()),
  "POST /v1/training/load_tensor_info": command(({ service }, fields) =>
    tensorInfo(service.trainingRoot, parseTensorInfo(fields).tensorDir),
  ),
  "POST /v1/training/export": command(({ service }, fields) =>
    exportAdapter(service.trainingRoot, parseAdapterExport(fields)),
  ),
};

const DATA_SETS: Endpoints = {
  "POST /v1/dataset/scan": command(scan),
  "POST /v1/dataset/load": command(load),
  "POST /v1/dataset/save": command(save),
  "GET /v1/dataset/samples": reading(({ service }) => contentOf(service.dataSet.current)),
  "GET /v1/dataset/sample/:index": reading(sample),
  "PUT /v1/dataset/sample/:index": command(updateSample),
  /** Answers once all samples are described. It goes on where the client hangs up. */
  "POST /v1/dataset/auto_label": command(
    async (context, fields) => (await startLabeling(context, fields)).finished,
  ),
  "POST /v1/dataset/auto_label_async": command(async (context, fields) =>
    started(await startLabeling(context, fields), "Auto-labeling started"),
  ),
  "GET /v1/dataset/auto_label_status{/:taskId}": reading(({ service }, request) =>
    service.labeling.status(taskIdOf(request)),
  ),
  /** Answers once all is written. It goes on where the client hangs up. */
  "POST /v1/dataset/preprocess": command(
    async (context, fields) => (await startPreparation(context, fields)).finished,
  ),
  "POST /v1/dataset/preprocess_async": command(async (context, fields) =>
    started(await startPreparation(context, fields), "Preprocessing started"),
  ),
  "GET /v1/dataset/preprocess_status{/:taskId}": reading(({ service }, request) =>
    service.preparations.status(taskIdOf(request)),
  ),
};

export const TRAINING_ENDPOINTS: Endpoints = { ...TRAINING, ...DATA_SETS };

/** Makes a data set of a folder of audio. */
async function scan({ service }: RouteContext, fields: Fields) {
  const wish = parseScan(fields);
  const warnings = await service.dataSet.scan(wish);
  const { samples } = service.dataSet.current;
  const found = `✅ Found ${samples.length} audio files in ${wish.directory}`;
  return {
    message: [found, ...warnings.map((warning) => `⚠️ ${warning}`)].join("\n"),
    num_samples: samples.length,
    samples: samples.map(sampleSummary),
  };
}

/** Takes up a data set that was saved. */
async function load({ service }: RouteContext, fields: Fields) {
  await service.dataSet.load(parseLoad(fields).path);
  const dataSet = service.dataSet.current;
  const message = `✅ Loaded dataset '${dataSet.name}' with ${dataSet.samples.length} samples`;
  return { message, ...contentOf(dataSet) };
}

async function save({ service }: RouteContext, fields: Fields) {
  const { path, ...change } = parseSave(fields);
  await service.dataSet.save(path, change);
  return { message: `✅ Dataset saved to ${path}`, save_path: path };
}

function sample({ service }: RouteContext, request: Request) {
  const index = indexOf(request);
  return { index, ...sampleFields(service.dataSet.sample(index)) };
}

/** Describes one piece of music. */
function updateSample({ service }: RouteContext, fields: Fields, request: Request) {
  const index = indexOf(request);
  const updated = service.dataSet.update(index, parseSampleChange(fields));
  return {
    message: `✅ Updated sample ${index}: ${updated.filename}`,
    sample: { index, ...sampleFields(updated) },
  };
}

function startLabeling({ service }: RouteContext, fields: Fields) {
  return service.labeling.start(parseLabeling(fields));
}

function startPreparation({ service }: RouteContext, fields: Fields) {
  const request = parsePreparation(fields);
  return service.preparations.start(service.dataSet.current, request);
}

function started({ taskId, total }: StartedTask<unknown>, message: string) {
  return { task_id: taskId, message, total };
}

function taskIdOf(request: Request): string | null {
  const { taskId } = request.params;
  return typeof taskId === "string" ? taskId : null;
}

function indexOf(request: Request): number {
  const text = String(request.params.index);
  if (!/^\d{1,9}$/.test(text)) throw new HttpError(404, `Sample index ${text} out of range`);
  return Number(text);
}

function contentOf(dataSet: DataSet) {
  return {
    dataset_name: dataSet.name,
    num_samples: dataSet.samples.length,
    labeled_count: dataSet.samples.filter(({ labeled }) => labeled).length,
    samples: dataSet.samples.map(sampleSummary),
  };
}
