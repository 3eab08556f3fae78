/** The endpoints of data sets: describe music, and turn it into what adapters train on. */
import type { Request } from "express";
import type { DataSet } from "../dataset/data-set.js";
import { sampleFields, sampleSummary } from "../dataset/data-set-file.js";
import { sendEnvelope } from "../envelope.js";
import { HttpError } from "../errors.js";
import { BODY_RULES } from "../request/body.js";
import {
  parseLabeling,
  parseLoad,
  parsePreparation,
  parseSampleChange,
  parseSave,
  parseScan,
} from "../request/dataset.js";
import type { Route, RouteContext } from "./route.js";

/** POST /v1/dataset/scan: makes a data set of a folder of audio. */
export const scan: Route =
  ({ service, bodies }) =>
  async (request, response) => {
    const { fields } = await bodies.read(request, BODY_RULES.command);
    const wish = parseScan(fields);
    const warnings = await service.dataSet.scan(wish);
    const { samples } = service.dataSet.current;
    const found = `✅ Found ${samples.length} audio files in ${wish.directory}`;
    sendEnvelope(response, {
      message: [found, ...warnings.map((warning) => `⚠️ ${warning}`)].join("\n"),
      num_samples: samples.length,
      samples: samples.map(sampleSummary),
    });
  };

/** POST /v1/dataset/load: takes up a data set that was saved. */
export const load: Route =
  ({ service, bodies }) =>
  async (request, response) => {
    const { fields } = await bodies.read(request, BODY_RULES.command);
    await service.dataSet.load(parseLoad(fields).path);
    const dataSet = service.dataSet.current;
    const message = `✅ Loaded dataset '${dataSet.name}' with ${dataSet.samples.length} samples`;
    sendEnvelope(response, { message, ...contentOf(dataSet) });
  };

/** POST /v1/dataset/save */
export const save: Route =
  ({ service, bodies }) =>
  async (request, response) => {
    const { fields } = await bodies.read(request, BODY_RULES.command);
    const { path, ...change } = parseSave(fields);
    await service.dataSet.save(path, change);
    sendEnvelope(response, { message: `✅ Dataset saved to ${path}`, save_path: path });
  };

/** GET /v1/dataset/samples */
export const samples: Route =
  ({ authenticator, service }) =>
  (request, response) => {
    authenticator.authorize(request);
    sendEnvelope(response, contentOf(service.dataSet.current));
  };

/** GET /v1/dataset/sample/{i} */
export const sample: Route =
  ({ authenticator, service }) =>
  (request, response) => {
    authenticator.authorize(request);
    const index = indexOf(request);
    sendEnvelope(response, { index, ...sampleFields(service.dataSet.sample(index)) });
  };

/** PUT /v1/dataset/sample/{i}: describes one piece of music. */
export const updateSample: Route =
  ({ service, bodies }) =>
  async (request, response) => {
    const { fields } = await bodies.read(request, BODY_RULES.command);
    const index = indexOf(request);
    const updated = service.dataSet.update(index, parseSampleChange(fields));
    sendEnvelope(response, {
      message: `✅ Updated sample ${index}: ${updated.filename}`,
      sample: { index, ...sampleFields(updated) },
    });
  };

/** POST /v1/dataset/preprocess: answers once all is written. It goes on where the client hangs up. */
export const preprocess: Route = (context) => async (request, response) => {
  const { finished } = await startPreparation(context, request);
  sendEnvelope(response, await finished);
};

/** POST /v1/dataset/preprocess_async */
export const preprocessAsync: Route = (context) => async (request, response) => {
  const { taskId, total } = await startPreparation(context, request);
  sendEnvelope(response, { task_id: taskId, message: "Preprocessing started", total });
};

/** GET /v1/dataset/preprocess_status[/{task_id}] */
export const preprocessStatus: Route =
  ({ authenticator, service }) =>
  (request, response) => {
    authenticator.authorize(request);
    sendEnvelope(response, service.preparations.status(taskIdOf(request)));
  };

/** POST /v1/dataset/auto_label: answers once all samples are described. It goes on where the client hangs up. */
export const autoLabel: Route = (context) => async (request, response) => {
  const { finished } = await startLabeling(context, request);
  sendEnvelope(response, await finished);
};

/** POST /v1/dataset/auto_label_async */
export const autoLabelAsync: Route = (context) => async (request, response) => {
  const { taskId, total } = await startLabeling(context, request);
  sendEnvelope(response, { task_id: taskId, message: "Auto-labeling started", total });
};

/** GET /v1/dataset/auto_label_status[/{task_id}] */
export const autoLabelStatus: Route =
  ({ authenticator, service }) =>
  (request, response) => {
    authenticator.authorize(request);
    sendEnvelope(response, service.labeling.status(taskIdOf(request)));
  };

async function startLabeling({ service, bodies }: RouteContext, request: Request) {
  const { fields } = await bodies.read(request, BODY_RULES.command);
  return service.labeling.start(parseLabeling(fields));
}

async function startPreparation({ service, bodies }: RouteContext, request: Request) {
  const { fields } = await bodies.read(request, BODY_RULES.command);
  const { outputDir, skipExisting } = parsePreparation(fields);
  return service.preparations.start(service.dataSet.current, outputDir, skipExisting);
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
