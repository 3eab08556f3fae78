/** All endpoints of the music service. */
import { Router } from "express";
import { methodNotAllowed, refuseInFleet } from "../errors.js";
import { openApiDocument } from "../openapi/document.js";
import { openApiPage } from "../openapi/page.js";
import { ADAPTER_ENDPOINTS, TRAINING_ENDPOINTS } from "./adapter-endpoints.js";
import { CHAT_ENDPOINTS } from "./chat-completions.js";
import { API_VERSION, chatModels, MODEL_ENDPOINTS, metrics } from "./model-endpoints.js";
import {
  commandRoute,
  type Endpoints,
  type Route,
  type RouteContext,
  readingRoute,
  section,
} from "./route.js";
import { TASK_ENDPOINTS } from "./task-endpoints.js";

/** Made when it is first asked for. It holds nothing of this server's, so it needs no key. */
function fixed(type: string, make: () => string): Route {
  let text: string | undefined;
  return () => (_request, response) => {
    text ??= make();
    response.type(type).send(text);
  };
}

const DESCRIPTION_ENDPOINTS = section("Service", {
  "GET /openapi.json": {
    summary: "This description",
    answer: { media: "application/json", description: "OpenAPI 3.1" },
    isOpen: true,
    route: fixed("application/json", () => JSON.stringify(openApiDocument(API_VERSION, ENDPOINTS))),
  },
  "GET /metrics": {
    summary: "Counters and times for Prometheus",
    answer: { media: "text/plain", description: "Prometheus' text format" },
    route: metrics,
  },
  "GET /docs": {
    summary: "This description, for people",
    answer: { media: "text/html", description: "A page" },
    isOpen: true,
    route: fixed("text/html", () => openApiPage(openApiDocument(API_VERSION, ENDPOINTS))),
  },
});

export const ENDPOINTS: Endpoints = {
  ...TASK_ENDPOINTS,
  ...CHAT_ENDPOINTS,
  ...MODEL_ENDPOINTS,
  ...ADAPTER_ENDPOINTS,
  ...TRAINING_ENDPOINTS,
  ...DESCRIPTION_ENDPOINTS,
};

/**
 * Clients of chat models read another list at the path of ours. Those that are given this base address find it there,
 * beside everything else.
 */
const OPENROUTER_BASE = "/openrouter";

type Routes = Readonly<Record<string, Route>>;

export function endpoints(context: RouteContext): Router {
  const routes: Routes = Object.fromEntries(
    Object.entries(ENDPOINTS).map(([endpoint, { route }]) => [endpoint, route]),
  );
  const unserved = context.service.queue.isShared ? UNSERVED_BY_FLEETS : {};
  return Router()
    .use(OPENROUTER_BASE, routerOf({ ...routes, "GET /v1/models": chatModels, ...unserved }, context))
    .use(routerOf({ ...routes, ...unserved }, context));
}

/** What changes one machine's models, or works on its files for hours. */
const UNSERVED_BY_FLEETS: Routes = Object.fromEntries(
  [
    ...Object.keys(TRAINING_ENDPOINTS),
    "POST /v1/init",
    "GET /v1/models/pull",
    "POST /v1/models/pull",
    "DELETE /v1/models/pull",
    "POST /v1/reinitialize",
  ].map((endpoint) => [
    endpoint,
    endpoint.startsWith("GET") ? readingRoute(refuseInFleet) : commandRoute(refuseInFleet),
  ]),
);

/** Answers other methods of its paths with 405. */
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
