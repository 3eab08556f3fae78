/** The endpoints of adapters: those in use, their training, and the data sets that they are trained on. */
import type { Request } from "express";
import { type DataSet, sampleFields, sampleSummary } from "../dataset/data-set.js";
import { tensorInfo } from "../dataset/sample-set.js";
import type { StartedTask } from "../dataset/sample-work.js";
import { HttpError } from "../errors.js";
import * as answers from "../openapi/answers.js";
import * as adapters from "../request/adapter-bodies.js";
import * as dataSets from "../request/data-set-bodies.js";
import { exportAdapter } from "../training/export.js";
import { command, type RouteContext, reading, section } from "./route.js";

/** Adapters of slot 1. */
export const ADAPTER_ENDPOINTS = section("Adapters", {
  "POST /v1/lora/load": command({
    summary: "Load an adapter and make it the active one",
    body: adapters.parseAdapterLoad,
    answer: answers.loadedAdapter,
    run: ({ service }, wish) => service.adapters.load(wish),
  }),
  "POST /v1/lora/unload": command({
    summary: "Let all adapters go",
    answer: answers.unloadedAdapter,
    run: ({ service }) => service.adapters.unload(),
  }),
  "POST /v1/lora/toggle": command({
    summary: "Use the active adapter, or not",
    body: adapters.parseAdapterToggle,
    answer: answers.toggledAdapter,
    run: ({ service }, { enabled }) => service.adapters.toggle(enabled),
  }),
  "POST /v1/lora/scale": command({
    summary: "How strongly an adapter acts",
    body: adapters.parseAdapterScale,
    answer: answers.scaledAdapter,
    run: ({ service }, wish) => service.adapters.scale(wish),
  }),
  "GET /v1/lora/status": reading({
    summary: "The adapters that are loaded",
    answer: answers.adapterStatus,
    run: ({ service }) => service.adapters.status(),
  }),
});

const TRAINING = section("Training", {
  "POST /v1/training/start": command({
    summary: "Train a LoRA in the background",
    body: adapters.parseLoraTraining,
    answer: answers.startedTraining,
    run: ({ service }, wish) => service.training.startLora(wish),
  }),
  "POST /v1/training/start_lokr": command({
    summary: "Train a LoKr in the background",
    body: adapters.parseLokrTraining,
    answer: answers.startedTraining,
    run: ({ service }, wish) => service.training.startLokr(wish),
  }),
  "POST /v1/training/stop": command({
    summary: "End the run under way within a step",
    answer: answers.stoppedTraining,
    run: ({ service }) => service.training.stop(),
  }),
  "GET /v1/training/status": reading({
    summary: "The run under way, else the latest one",
    answer: answers.trainingStatus,
    run: ({ service }) => service.training.status(),
  }),
  "POST /v1/training/load_tensor_info": command({
    summary: "What a directory of samples holds",
    body: adapters.parseTensorInfo,
    answer: answers.tensorInfo,
    run: ({ service }, { tensorDir }) => tensorInfo(service.trainingRoot, tensorDir),
  }),
  "POST /v1/training/export": command({
    summary: "Copy a trained adapter",
    body: adapters.parseAdapterExport,
    answer: answers.exportedAdapter,
    errors: [507],
    run: ({ service }, wish) => exportAdapter(service.trainingRoot, wish),
  }),
});

const DATA_SETS = section("Data sets", {
  "POST /v1/dataset/scan": command({
    summary: "Make a data set of a folder of audio",
    body: dataSets.parseScan,
    answer: answers.scannedDataSet,
    run: scan,
  }),
  "POST /v1/dataset/load": command({
    summary: "Take up a data set that was saved",
    body: dataSets.parseLoad,
    answer: answers.dataSetContent,
    run: load,
  }),
  "POST /v1/dataset/save": command({
    summary: "Save the data set",
    body: dataSets.parseSave,
    answer: answers.savedDataSet,
    errors: [507],
    run: async ({ service }, { path, ...change }) => {
      await service.dataSet.save(path, change);
      return { message: `✅ Dataset saved to ${path}`, save_path: path };
    },
  }),
  "GET /v1/dataset/samples": reading({
    summary: "The samples of the data set",
    answer: answers.dataSetContent,
    run: ({ service }) => contentOf(service.dataSet.current),
  }),
  "GET /v1/dataset/sample/:index": reading({
    summary: "A sample",
    answer: answers.dataSetSample,
    errors: [404],
    run: ({ service }, request) => {
      const index = indexOf(request);
      return { index, ...sampleFields(service.dataSet.sample(index)) };
    },
  }),
  "PUT /v1/dataset/sample/:index": command({
    summary: "Describe a sample",
    body: dataSets.parseSampleChange,
    answer: answers.updatedSample,
    errors: [404],
    run: ({ service }, change, request) => {
      const index = indexOf(request);
      const updated = service.dataSet.update(index, change);
      const sample = { index, ...sampleFields(updated) };
      return { message: `✅ Updated sample ${index}: ${updated.filename}`, sample };
    },
  }),
  "POST /v1/dataset/auto_label": command({
    summary: "Describe all samples, and answer once that is done",
    body: dataSets.parseLabeling,
    answer: answers.labeledDataSet,
    run: async ({ service }, wish) => (await service.labeling.start(wish)).finished,
  }),
  "POST /v1/dataset/auto_label_async": command({
    summary: "Begin to describe all samples",
    body: dataSets.parseLabeling,
    answer: answers.startedWork,
    run: async ({ service }, wish) => started(await service.labeling.start(wish), "Auto-labeling started"),
  }),
  "GET /v1/dataset/auto_label_status{/:taskId}": reading({
    summary: "How far that is",
    answer: answers.workStatus,
    errors: [404],
    run: ({ service }, request) => service.labeling.status(taskIdOf(request)),
  }),
  "POST /v1/dataset/preprocess": command({
    summary: "Write all samples as files for training, and answer once that is done",
    body: dataSets.parsePreparation,
    answer: answers.preparedDataSet,
    errors: [507],
    run: async ({ service }, wish) =>
      (await service.preparations.start(service.dataSet.current, wish)).finished,
  }),
  "POST /v1/dataset/preprocess_async": command({
    summary: "Begin to write them",
    body: dataSets.parsePreparation,
    answer: answers.startedWork,
    run: async ({ service }, wish) =>
      started(await service.preparations.start(service.dataSet.current, wish), "Preprocessing started"),
  }),
  "GET /v1/dataset/preprocess_status{/:taskId}": reading({
    summary: "How far that is",
    answer: answers.workStatus,
    errors: [404],
    run: ({ service }, request) => service.preparations.status(taskIdOf(request)),
  }),
});

export const TRAINING_ENDPOINTS = { ...TRAINING, ...DATA_SETS };

async function scan({ service }: RouteContext, wish: dataSets.ScanRequest) {
  const warnings = await service.dataSet.scan(wish);
  const { samples } = service.dataSet.current;
  const found = `✅ Found ${samples.length} audio files in ${wish.directory}`;
  return {
    message: [found, ...warnings.map((warning) => `⚠️ ${warning}`)].join("\n"),
    num_samples: samples.length,
    samples: samples.map(sampleSummary),
  };
}

async function load({ service }: RouteContext, { path }: { path: string }) {
  await service.dataSet.load(path);
  const dataSet = service.dataSet.current;
  const message = `✅ Loaded dataset '${dataSet.name}' with ${dataSet.samples.length} samples`;
  return { message, ...contentOf(dataSet) };
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
