import { sendEnvelope } from "../envelope.js";
import { reloadModels, switchModels } from "../models.js";
import { BODY_RULES } from "../request/body.js";
import { parseModelSwitch } from "../request/service.js";
import type { Route } from "./route.js";

/** POST /v1/init: loads or switches models. */
export const init: Route =
  ({ service, bodies }) =>
  async (request, response) => {
    const { fields } = await bodies.read(request, BODY_RULES.command);
    sendEnvelope(response, await switchModels(service.engine, parseModelSwitch(fields)));
  };

/** POST /v1/reinitialize: loads what should be loaded and is not. */
export const reinitialize: Route =
  ({ service, bodies }) =>
  async (request, response) => {
    await bodies.read(request, BODY_RULES.command);
    sendEnvelope(response, await reloadModels(service.engine));
  };
