/** Endpoints for adapters, training and data sets. */
import type { Request } from "express";
import type { Run } from "../background-work.js";
import { type DataSet, sampleSummary } from "../dataset/data-set.js";
import { storeRecording } from "../dataset/recordings.js";
import { tensorInfo } from "../dataset/sample-set.js";
import { type SampleProgress, taskStatus, withWarnings } from "../dataset/sample-work.js";
import { HttpError } from "../errors.js";
import * as answers from "../openapi/answers.js";
import * as bodies from "../request/training-bodies.js";
import { exportAdapter } from "../training/export.js";
import { savedStyles } from "../training/saved-adapters.js";
import { command, createGetEndpoint, type RouteContext, sendEnvelope, withTag } from "./route.js";

/** Endpoints for the adapters of the model in slot 1. */
export const ADAPTER_ENDPOINTS = withTag("Adapters", {
  "POST /v1/lora/load": command({
    summary: "Load an adapter in addition to those already loaded",
    body: bodies.parseAdapterLoad,
    answer: answers.loadedAdapter,
    run: ({ service }, input) => service.adapters.load(input),
  }),
  "POST /v1/lora/unload": command({
    summary: "Unload one adapter or all",
    body: bodies.parseAdapterUnload,
    answer: answers.unloadedAdapter,
    run: ({ service }, input) => service.adapters.unload(input),
  }),
  "POST /v1/lora/toggle": command({
    summary: "Enable or disable one adapter or all",
    body: bodies.parseAdapterToggle,
    answer: answers.toggledAdapter,
    run: ({ service }, input) => service.adapters.toggle(input),
  }),
  "POST /v1/lora/scale": command({
    summary: "Set the scale of an adapter",
    body: bodies.parseAdapterScale,
    answer: answers.scaledAdapter,
    run: ({ service }, input) => service.adapters.scale(input),
  }),
  "GET /v1/lora/status": createGetEndpoint({
    summary: "List loaded adapters",
    answer: answers.adapterStatus,
    run: ({ service }) => service.adapters.status(),
  }),
  "GET /v1/lora/available": createGetEndpoint({
    summary: "List adapters in the training root",
    answer: answers.availableAdapters,
    run: async ({ service }) => {
      const styles = await savedStyles(service.trainingRoot.directory);
      return { adapters: styles.map(({ path }) => path), styles };
    },
  }),
});

const TRAINING = withTag("Training", {
  "POST /v1/training/start": command({
    summary: "Train a LoRA in the background",
    body: bodies.parseLoraTraining,
    answer: answers.startedTraining,
    run: ({ service }, input) => service.local.training.startLora(input),
  }),
  "POST /v1/training/start_lokr": command({
    summary: "Train a LoKr in the background",
    body: bodies.parseLokrTraining,
    answer: answers.startedTraining,
    run: ({ service }, input) => service.local.training.startLokr(input),
  }),
  "POST /v1/training/stop": command({
    summary: "Stop training after the current step",
    answer: answers.stoppedTraining,
    run: ({ service }) => service.local.training.stop(),
  }),
  "GET /v1/training/status": createGetEndpoint({
    summary: "Status of the current or latest training run",
    answer: answers.trainingStatus,
    run: ({ service }) => service.local.training.status(),
  }),
  "POST /v1/training/load_tensor_info": command({
    summary: "Describe a directory of prepared samples",
    body: bodies.parseTensorInfo,
    answer: answers.tensorInfo,
    run: ({ service }, { tensorDir }) => tensorInfo(service.trainingRoot, tensorDir),
  }),
  "POST /v1/training/export": command({
    summary: "Export a trained adapter",
    body: bodies.parseAdapterExport,
    answer: answers.exportedAdapter,
    errors: [507],
    run: ({ service }, input) => exportAdapter(service.trainingRoot, input),
  }),
});

const DATA_SETS = withTag("Data sets", {
  "PUT /v1/dataset/audio/:folder/:file": {
    summary: "Store a recording for a data set; the body is the file",
    answer: answers.storedRecording,
    errors: [507],
    route:
      ({ config, service, authenticator }) =>
      async (request, response) => {
        try {
          authenticator.authorize(request);
          const { folder, file } = request.params as { folder: string; file: string };
          sendEnvelope(
            response,
            await storeRecording(service.trainingRoot, { folder, file }, request, config.uploadMaxBytes),
          );
        } finally {
          request.resume();
        }
      },
  },
  "POST /v1/dataset/scan": command({
    summary: "Create a data set from a folder of audio",
    body: bodies.parseDataSetScan,
    answer: answers.scannedDataSet,
    run: scan,
  }),
  "POST /v1/dataset/load": command({
    summary: "Load a saved data set",
    body: bodies.parseDataSetLoad,
    answer: answers.dataSetContent,
    run: load,
  }),
  "POST /v1/dataset/save": command({
    summary: "Save the data set",
    body: bodies.parseDataSetSave,
    answer: answers.savedDataSet,
    errors: [507],
    run: async ({ service }, { path, ...change }) => {
      await service.local.dataSet.save(path, change);
      return { message: `✅ Dataset saved to ${path}`, save_path: path };
    },
  }),
  "GET /v1/dataset/samples": createGetEndpoint({
    summary: "List the samples of the data set",
    answer: answers.dataSetContent,
    run: ({ service }) => contentOf(service.local.dataSet.current),
  }),
  "GET /v1/dataset/sample/:index": createGetEndpoint({
    summary: "Get a sample",
    answer: answers.dataSetSample,
    errors: [404],
    run: ({ service }, request) => {
      const index = indexOf(request);
      return { index, ...service.local.dataSet.sample(index) };
    },
  }),
  "PUT /v1/dataset/sample/:index": command({
    summary: "Edit a sample",
    body: bodies.parseSampleChange,
    answer: answers.updatedSample,
    errors: [404],
    run: ({ service }, change, request) => {
      const index = indexOf(request);
      const updated = service.local.dataSet.update(index, change);
      return {
        message: `✅ Updated sample ${index}: ${updated.filename}`,
        sample: { index, ...updated },
      };
    },
  }),
  "POST /v1/dataset/auto_label": command({
    summary: "Label all samples and wait for the result",
    body: bodies.parseLabeling,
    answer: answers.labeledDataSet,
    run: async ({ service }, input) => (await service.local.label(input)).finished,
  }),
  "POST /v1/dataset/auto_label_async": command({
    summary: "Start labeling all samples",
    body: bodies.parseLabeling,
    answer: answers.startedDataSetTask,
    run: async ({ service }, input) => started(await service.local.label(input), "Auto-labeling started"),
  }),
  "GET /v1/dataset/auto_label_status{/:taskId}": createGetEndpoint({
    summary: "Progress of labeling",
    answer: answers.dataSetTaskStatus,
    errors: [404],
    run: ({ service }, request) => taskStatus(service.local.labeling, taskIdOf(request)),
  }),
  "POST /v1/dataset/preprocess": command({
    summary: "Prepare all samples for training and wait for the result",
    body: bodies.parsePreparation,
    answer: answers.preparedDataSet,
    errors: [507],
    run: async ({ service }, input) => (await service.local.preprocess(input)).finished,
  }),
  "POST /v1/dataset/preprocess_async": command({
    summary: "Start preparing all samples for training",
    body: bodies.parsePreparation,
    answer: answers.startedDataSetTask,
    run: async ({ service }, input) =>
      started(await service.local.preprocess(input), "Preprocessing started"),
  }),
  "GET /v1/dataset/preprocess_status{/:taskId}": createGetEndpoint({
    summary: "Progress of preparing",
    answer: answers.dataSetTaskStatus,
    errors: [404],
    run: ({ service }, request) => taskStatus(service.local.preprocessing, taskIdOf(request)),
  }),
});

export const TRAINING_ENDPOINTS = { ...TRAINING, ...DATA_SETS };

async function scan({ service }: RouteContext, input: bodies.ScanRequest) {
  const warnings = await service.local.dataSet.scan(input);
  const { samples } = service.local.dataSet.current;
  const found = `✅ Found ${samples.length} audio files in ${input.directory}`;
  return {
    message: withWarnings(found, warnings),
    num_samples: samples.length,
    samples: samples.map(sampleSummary),
  };
}

async function load({ service }: RouteContext, { path }: { path: string }) {
  const warnings = await service.local.dataSet.load(path);
  const dataSet = service.local.dataSet.current;
  const loaded = `✅ Loaded dataset '${dataSet.name}' with ${dataSet.samples.length} samples`;
  return { message: withWarnings(loaded, warnings), ...contentOf(dataSet) };
}

function started({ id, progress }: Run<SampleProgress, unknown>, message: string) {
  return { task_id: id, message, total: progress.total };
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
