/**
 * The endpoints that tell of the interface itself, which need no key as they hold nothing of this server's, and the
 * metrics of the server.
 */
import { openApiDocument } from "../openapi/document.js";
import { openApiPage } from "../openapi/page.js";
import { API_VERSION } from "./model-endpoints.js";
import type { Endpoints, Route } from "./route.js";

/** Made when it is first asked for. */
function fixed(type: string, make: () => string): Route {
  let text: string | undefined;
  return () => (_request, response) => {
    text ??= make();
    response.type(type).send(text);
  };
}

/** In the text format of Prometheus. */
const metrics: Route =
  ({ authenticator, service }) =>
  async (request, response) => {
    authenticator.authorize(request);
    const { type, text } = await service.telemetry.metrics();
    response.set("Content-Type", type).send(text);
  };

export const DESCRIPTION_ENDPOINTS: Endpoints = {
  "GET /openapi.json": fixed("application/json", () => JSON.stringify(openApiDocument(API_VERSION))),
  "GET /metrics": metrics,
  "GET /docs": fixed("text/html", () => openApiPage(openApiDocument(API_VERSION))),
};
