/** The endpoints of adapter training. */
import { sendEnvelope } from "../envelope.js";
import { BODY_RULES } from "../request/body.js";
import {
  parseAdapterExport,
  parseLokrTraining,
  parseLoraTraining,
  parseTensorDirectory,
} from "../request/training.js";
import { exportAdapter } from "../training/export.js";
import { tensorInfo } from "../training/tensor-info.js";
import type { Route } from "./route.js";

/** POST /v1/training/start: trains a LoRA in the background. */
export const start: Route =
  ({ service, bodies }) =>
  async (request, response) => {
    const { fields } = await bodies.read(request, BODY_RULES.command);
    sendEnvelope(response, await service.training.startLora(parseLoraTraining(fields)));
  };

/** POST /v1/training/start_lokr: trains a LoKr in the background. */
export const startLokr: Route =
  ({ service, bodies }) =>
  async (request, response) => {
    const { fields } = await bodies.read(request, BODY_RULES.command);
    sendEnvelope(response, await service.training.startLokr(parseLokrTraining(fields)));
  };

/** POST /v1/training/stop: ends the run under way within a step. */
export const stop: Route =
  ({ service, bodies }) =>
  async (request, response) => {
    await bodies.read(request, BODY_RULES.command);
    sendEnvelope(response, service.training.stop());
  };

/** GET /v1/training/status: of the run under way, else of the latest one. */
export const status: Route =
  ({ authenticator, service }) =>
  (request, response) => {
    authenticator.authorize(request);
    sendEnvelope(response, service.training.status());
  };

/** POST /v1/training/load_tensor_info: what a directory of sample files holds. */
export const loadTensorInfo: Route =
  ({ service, bodies }) =>
  async (request, response) => {
    const { fields } = await bodies.read(request, BODY_RULES.command);
    sendEnvelope(response, await tensorInfo(service.trainingRoot, parseTensorDirectory(fields)));
  };

/** POST /v1/training/export: copies a trained adapter to where it is wanted. */
export const exportTrained: Route =
  ({ service, bodies }) =>
  async (request, response) => {
    const { fields } = await bodies.read(request, BODY_RULES.command);
    sendEnvelope(response, await exportAdapter(service.trainingRoot, parseAdapterExport(fields)));
  };
