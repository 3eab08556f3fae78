/** The endpoints of the adapters of slot 1. */
import { sendEnvelope } from "../envelope.js";
import { BODY_RULES } from "../request/body.js";
import { parseAdapterLoad, parseAdapterScale, parseAdapterToggle } from "../request/lora.js";
import type { Route } from "./route.js";

/** POST /v1/lora/load: reads an adapter and makes it the active one. */
export const load: Route =
  ({ service, bodies }) =>
  async (request, response) => {
    const { fields } = await bodies.read(request, BODY_RULES.command);
    sendEnvelope(response, await service.adapters.load(parseAdapterLoad(fields)));
  };

/** POST /v1/lora/unload: lets all adapters go. */
export const unload: Route =
  ({ service, bodies }) =>
  async (request, response) => {
    await bodies.read(request, BODY_RULES.command);
    sendEnvelope(response, await service.adapters.unload());
  };

/** POST /v1/lora/toggle: lets the active adapter act or rest. */
export const toggle: Route =
  ({ service, bodies }) =>
  async (request, response) => {
    const { fields } = await bodies.read(request, BODY_RULES.command);
    sendEnvelope(response, await service.adapters.toggle(parseAdapterToggle(fields)));
  };

/** POST /v1/lora/scale: how strongly an adapter acts. */
export const scale: Route =
  ({ service, bodies }) =>
  async (request, response) => {
    const { fields } = await bodies.read(request, BODY_RULES.command);
    sendEnvelope(response, await service.adapters.scale(parseAdapterScale(fields)));
  };

/** GET /v1/lora/status: what is loaded, and what of it acts. */
export const status: Route =
  ({ authenticator, service }) =>
  (request, response) => {
    authenticator.authorize(request);
    sendEnvelope(response, service.adapters.status());
  };
