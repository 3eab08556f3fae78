/** All endpoints of the music service. */
import { Router } from "express";
import { HttpError, methodNotAllowed } from "../errors.js";
import { FLEET_REFUSAL } from "../fleet/fleet-engine.js";
import { ADAPTER_ENDPOINTS, TRAINING_ENDPOINTS } from "./adapter-endpoints.js";
import { audio } from "./audio.js";
import { chatCompletions } from "./chat-completions.js";
import { DESCRIPTION_ENDPOINTS } from "./description-endpoints.js";
import { chatModels, MODEL_ENDPOINTS } from "./model-endpoints.js";
import { preview } from "./preview.js";
import { command, type Endpoints, type RouteContext, reading } from "./route.js";
import { TASK_ENDPOINTS } from "./task-endpoints.js";
import { taskEvents } from "./task-events.js";

export const ENDPOINTS: Endpoints = {
  ...TASK_ENDPOINTS,
  "GET /v1/tasks/:id/events": taskEvents,
  "GET /v1/tasks/:id/preview": preview,
  "GET /v1/audio": audio,
  "POST /v1/chat/completions": chatCompletions,
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
const OPENROUTER_ENDPOINTS: Endpoints = { ...ENDPOINTS, "GET /v1/models": chatModels };

export function endpoints(context: RouteContext): Router {
  const unserved = context.service.queue.isShared ? UNSERVED_BY_FLEETS : {};
  return Router()
    .use(OPENROUTER_BASE, routerOf({ ...OPENROUTER_ENDPOINTS, ...unserved }, context))
    .use(routerOf({ ...ENDPOINTS, ...unserved }, context));
}

/** What changes one machine's models, or works on its files for hours. */
const UNSERVED_BY_FLEETS: Endpoints = Object.fromEntries(
  [
    ...Object.keys(TRAINING_ENDPOINTS),
    "POST /v1/init",
    "GET /v1/models/pull",
    "POST /v1/models/pull",
    "DELETE /v1/models/pull",
    "POST /v1/reinitialize",
  ].map((endpoint) => [endpoint, endpoint.startsWith("GET") ? reading(refuse) : command(refuse)]),
);

function refuse(): never {
  throw new HttpError(501, FLEET_REFUSAL);
}

/** Answers other methods of its paths with 405. */
function routerOf(endpoints: Endpoints, context: RouteContext): Router {
  const router = Router();
  const allowed = new Map<string, string[]>();
  for (const [endpoint, route] of Object.entries(endpoints)) {
    const [method = "", path = ""] = endpoint.split(" ");
    router[method.toLowerCase() as "get" | "post" | "put" | "patch" | "delete"](path, route(context));
    allowed.set(path, [...(allowed.get(path) ?? []), method]);
  }
  for (const [path, methods] of allowed) {
    router.all(path, methodNotAllowed(...methods, ...(methods.includes("GET") ? ["HEAD"] : [])));
  }
  return router;
}
