import { sendEnvelope } from "../envelope.js";
import type { Route } from "./route.js";

/** Of the interface, not of the package. */
const API_VERSION = "1.0";

/** GET /health: needs no key unless configured so, because readiness probes have none; a wrong key is refused. */
export const health: Route =
  ({ config, authenticator, service }) =>
  (request, response) => {
    if (config.healthRequiresKey) authenticator.authorize(request);
    else authenticator.authorizeIfPresented(request);
    const { engine } = service;
    const loadedModel = engine.slots()[0]?.model ?? null;
    sendEnvelope(response, {
      status: "ok",
      service: "Carillon",
      version: API_VERSION,
      models_initialized: loadedModel !== null,
      llm_initialized: engine.loadedLanguageModel() !== null,
      loaded_model: loadedModel,
      loaded_lm_model: engine.loadedLanguageModel(),
    });
  };
