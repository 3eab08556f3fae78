/** The endpoints of the service's health and of its models. */
import type { MusicEngine } from "../../engine/types.js";
import { listModels, modelInventory, openRouterModels, reloadModels, switchModels } from "../models.js";
import { parseModelPull, parseModelSwitch } from "../request/service-bodies.js";
import { command, type Endpoints, type Route, reading, sendEnvelope } from "./route.js";

/** The version of the interface, not of the package. */
export const API_VERSION = "1.0";

/** Needs no key unless configured so, because readiness probes have none; a wrong key is refused. */
const health: Route =
  ({ config, authenticator, service }) =>
  (request, response) => {
    if (config.healthRequiresKey) authenticator.authorize(request);
    else authenticator.authorizeIfPresented(request);
    sendEnvelope(response, healthOf(service.engine));
  };

export function healthOf(engine: MusicEngine) {
  const loadedModel = engine.slots()[0]?.model ?? null;
  return {
    status: "ok",
    service: "Carillon",
    version: API_VERSION,
    models_initialized: loadedModel !== null,
    llm_initialized: engine.loadedLanguageModel() !== null,
    loaded_model: loadedModel,
    loaded_lm_model: engine.loadedLanguageModel(),
  };
}

/** The list of models in the shape of chat model servers. */
export const chatModels: Route =
  ({ authenticator, service }) =>
  (request, response) => {
    authenticator.authorize(request);
    response.json(openRouterModels(service.engine));
  };

export const MODEL_ENDPOINTS: Endpoints = {
  "GET /health": health,
  /** The models that a task can name. */
  "GET /v1/models": reading(({ service }) => listModels(service.engine)),
  /** All that is installed, and what of it is loaded. */
  "GET /v1/model_inventory": reading(({ service }) => modelInventory(service.engine)),
  /** Loads or switches models. */
  "POST /v1/init": command(({ service }, fields) => switchModels(service.engine, parseModelSwitch(fields))),
  /** The download of a model that is under way, else the latest one. */
  "GET /v1/models/pull": reading(({ service }) => service.modelPulls.status()),
  /** Downloads a model, which goes on where the client hangs up. */
  "POST /v1/models/pull": command(({ service }, fields) =>
    service.modelPulls.start(parseModelPull(fields).model),
  ),
  "DELETE /v1/models/pull": command(({ service }) => service.modelPulls.cancel()),
  /** Loads what should be loaded and is not. */
  "POST /v1/reinitialize": command(({ service }) => reloadModels(service.engine)),
};
