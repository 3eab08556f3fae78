/** All endpoints of the music service. */
import { createRequire } from "node:module";
import { Router } from "express";
import { methodNotAllowed } from "../../http/guards.js";
import type { OpenApiDocument } from "../../http/openapi.js";
import { ACE_ENDPOINTS } from "../acestep-cpp/routes.js";
import { throwNotAvailableInFleet } from "../errors.js";
import { openApiDocument } from "../openapi/document.js";
import { TASK_STATES } from "../queue/store.js";
import { ADAPTER_ENDPOINTS, TRAINING_ENDPOINTS } from "./adapter-endpoints.js";
import { CHAT_ENDPOINTS } from "./chat-completions.js";
import { chatModels, MODEL_ENDPOINTS, metricsRoute } from "./model-endpoints.js";
import {
  commandRoute,
  createGetRoute,
  type Endpoints,
  type Route,
  type RouteContext,
  withTag,
} from "./route.js";
import { SESSION_ENDPOINTS } from "./session.js";
import { SOUND_ENDPOINTS } from "./sound-generation.js";
import { removalRoute, TASK_ENDPOINTS } from "./task-endpoints.js";

const { version } = createRequire(import.meta.url)("../../../package.json") as { version: string };

let document: OpenApiDocument | undefined;
let documentText: string | undefined;

/** OpenAPI document of all endpoints, built on the first request. */
export function musicDocument(): OpenApiDocument {
  document ??= openApiDocument(version, ENDPOINTS);
  return document;
}

/** Sends the OpenAPI document. It contains no data of this server, so it needs no key. */
const openApi: Route = () => (_request, response) => {
  documentText ??= JSON.stringify(musicDocument());
  response.type("application/json").send(documentText);
};

const DESCRIPTION_ENDPOINTS = withTag("Service", {
  "GET /openapi.json": {
    summary: "OpenAPI document",
    answer: { media: "application/json", description: "OpenAPI 3.1" },
    isOpen: true,
    route: openApi,
  },
  "GET /metrics": {
    summary: "Prometheus metrics",
    answer: { media: "text/plain", description: "Prometheus text format" },
    route: metricsRoute,
  },
});

export const ENDPOINTS: Endpoints = {
  ...TASK_ENDPOINTS,
  ...CHAT_ENDPOINTS,
  ...SOUND_ENDPOINTS,
  ...MODEL_ENDPOINTS,
  ...ADAPTER_ENDPOINTS,
  ...TRAINING_ENDPOINTS,
  ...SESSION_ENDPOINTS,
  ...ACE_ENDPOINTS,
  ...DESCRIPTION_ENDPOINTS,
};

/** Base path for OpenRouter clients, which expect another model list at `/v1/models`. */
const OPENROUTER_BASE = "/openrouter";

/** Additional paths of endpoints, for clients that were written for other server products. */
const ALIASES = {
  "POST /create_sample": "POST /v1/create_sample",
  "GET /server_stats": "GET /v1/stats",
} as const;

type Routes = Readonly<Record<string, Route>>;

export function endpointRouter(context: RouteContext): Router {
  const routes: Routes = Object.fromEntries([
    ...Object.entries(ENDPOINTS).map(([endpoint, { route }]) => [endpoint, route]),
    ...Object.entries(ALIASES).map(([alias, endpoint]) => [alias, ENDPOINTS[endpoint]?.route]),
    // Path for removing a task in any state, for clients that were written for other server products.
    ["DELETE /cleanup/:id", removalRoute(() => TASK_STATES)],
  ]);
  const refused = context.service.queue.isShared ? NOT_IN_FLEETS : {};
  return Router()
    .use(OPENROUTER_BASE, routerOf({ ...routes, "GET /v1/models": chatModels, ...refused }, context))
    .use(routerOf({ ...routes, ...refused }, context));
}

/** Endpoints that a fleet refuses, because they change the models of one machine or work on its files for hours. */
const NOT_IN_FLEETS: Routes = Object.fromEntries(
  [
    ...Object.keys(TRAINING_ENDPOINTS),
    "POST /v1/init",
    "GET /v1/models/pull",
    "POST /v1/models/pull",
    "DELETE /v1/models/pull",
    "POST /v1/reinitialize",
  ].map((endpoint) => [
    endpoint,
    endpoint.startsWith("GET")
      ? createGetRoute(throwNotAvailableInFleet)
      : commandRoute(throwNotAvailableInFleet),
  ]),
);

/** Creates a router that answers 405 to a method that the requested path does not support. */
function routerOf(routes: Routes, context: RouteContext): Router {
  const router = Router();
  const allowed = new Map<string, string[]>();
  for (const [endpoint, route] of Object.entries(routes)) {
    const [method = "", path = ""] = endpoint.split(" ");
    router[method.toLowerCase() as "get" | "post" | "put" | "patch" | "delete"](path, route(context));
    allowed.set(path, [...(allowed.get(path) ?? []), method]);
  }
  for (const [path, methods] of allowed) {
    router.all(path, methodNotAllowed(...methods, ...(methods.includes("GET") ? ["HEAD"] : [])));
  }
  return router;
}
