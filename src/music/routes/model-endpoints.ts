/** Endpoints for health, metrics and models. */
import type { RequestHandler } from "express";
import type { ModelCatalog } from "../../engine/types.js";
import {
  listModels,
  modelInventory,
  openRouterModels,
  reloadModels,
  switchModels,
} from "../models/models.js";
import * as answers from "../openapi/answers.js";
import { parseModelPull, parseModelSwitch } from "../request/service-bodies.js";
import type { MusicService } from "../service.js";
import { command, createGetEndpoint, envelope, type Route, type RouteContext, withTag } from "./route.js";

/** Version of the API, not of the package. */
const API_VERSION = "1.0";

/** Context of the endpoints /health and /metrics. Fleet workers serve only these two endpoints. */
type ProcessContext = Pick<RouteContext, "config" | "authenticator"> & {
  service: Pick<MusicService, "catalog" | "telemetry">;
};

/** Health check. By default it needs no key, because readiness probes send none. A wrong key is refused. */
export const healthRoute =
  ({ config, authenticator, service }: ProcessContext): RequestHandler =>
  (request, response) => {
    if (config.healthRequiresKey) authenticator.authorize(request);
    else authenticator.authorizeIfPresented(request);
    const health = healthOf(service.catalog);
    // Clients of acestep.cpp read the status beside the envelope.
    response.json({ status: health.status, ...envelope(health) });
  };

export const metricsRoute =
  ({ authenticator, service }: ProcessContext): RequestHandler =>
  async (request, response) => {
    authenticator.authorize(request);
    const { type, text } = await service.telemetry.metrics();
    response.set("Content-Type", type).send(text);
  };

function healthOf(catalog: ModelCatalog) {
  const loadedModel = catalog.slots()[0]?.model ?? null;
  return {
    status: "ok",
    service: "Carillon",
    version: API_VERSION,
    models_initialized: loadedModel !== null,
    llm_initialized: catalog.loadedLanguageModel() !== null,
    loaded_model: loadedModel,
    loaded_lm_model: catalog.loadedLanguageModel(),
  };
}

/** Model list in OpenRouter format. */
export const chatModels: Route =
  ({ authenticator, service }) =>
  (request, response) => {
    authenticator.authorize(request);
    response.json(openRouterModels(service.catalog));
  };

export const MODEL_ENDPOINTS = {
  ...withTag("Service", {
    "GET /health": {
      summary: "Health check",
      answer: answers.health,
      isOpen: true,
      route: healthRoute,
    },
  }),
  ...withTag("Models", {
    "GET /v1/models": createGetEndpoint({
      summary: "List models that a task can select",
      answer: answers.modelList,
      run: ({ service }) => listModels(service.catalog),
    }),
    "GET /v1/model_inventory": createGetEndpoint({
      summary: "List installed models and slots",
      answer: answers.modelInventory,
      run: ({ service }) => modelInventory(service.catalog),
    }),
    "POST /v1/init": command({
      summary: "Load or switch models",
      body: parseModelSwitch,
      answer: answers.switchedModels,
      run: ({ service }, input) => switchModels(service.local.engine, input),
    }),
    "GET /v1/models/pull": createGetEndpoint({
      summary: "Progress of a model download",
      answer: answers.modelPullStatus,
      run: ({ service }) => service.local.modelPulls.status(),
    }),
    /** The download continues if the client disconnects. */
    "POST /v1/models/pull": command({
      summary: "Download a model into the checkpoint directory",
      body: parseModelPull,
      answer: answers.modelPullStatus,
      errors: [409],
      example: { model: "acestep-v15-turbo" },
      run: ({ service }, { model }) => service.local.modelPulls.start(model),
    }),
    "DELETE /v1/models/pull": command({
      summary: "Cancel the download; the next one resumes",
      answer: answers.modelPullStatus,
      errors: [404],
      run: ({ service }) => service.local.modelPulls.cancel(),
    }),
    "POST /v1/reinitialize": command({
      summary: "Load configured models that are not loaded",
      answer: answers.reloadedModels,
      run: ({ service }) => reloadModels(service.local.engine),
    }),
  }),
};
