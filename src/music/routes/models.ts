import { sendEnvelope } from "../envelope.js";
import { listModels, modelInventory, openRouterModels } from "../models.js";
import type { Route } from "./route.js";

/** GET /v1/models: the models that a task can name. */
export const models: Route =
  ({ authenticator, service }) =>
  (request, response) => {
    authenticator.authorize(request);
    sendEnvelope(response, listModels(service.engine));
  };

/** GET /v1/model_inventory: all that is installed, and what of it is loaded. */
export const inventory: Route =
  ({ authenticator, service }) =>
  (request, response) => {
    authenticator.authorize(request);
    sendEnvelope(response, modelInventory(service.engine));
  };

/** GET /openrouter/v1/models: as `models`, in the shape of chat model servers. */
export const chatModels: Route =
  ({ authenticator, service }) =>
  (request, response) => {
    authenticator.authorize(request);
    response.json(openRouterModels(service.engine));
  };
