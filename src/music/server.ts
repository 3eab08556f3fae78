/** The music service over HTTP: builds the application and listens. */
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdir } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import express, { type Express, type RequestHandler, type Router } from "express";
import { type Config, ConfigError } from "../config.js";
import type { MusicEngine } from "../engine/types.js";
import type { Logger } from "../log.js";
import { Authenticator } from "./auth.js";
import { CONNECTION_TIMEOUTS, connectionLimits, limitConnections } from "./connections.js";
import { detailFor, errorHandler, methodNotAllowed, notFound } from "./errors.js";
import { checkHost, checkOrigin } from "./origin.js";
import { RandomSamples } from "./random-samples.js";
import { BodyReader } from "./request/body.js";
import { audio } from "./routes/audio.js";
import { cancelTask } from "./routes/cancel-task.js";
import { chatCompletions } from "./routes/chat-completions.js";
import { createRandomSample } from "./routes/create-random-sample.js";
import { createSample } from "./routes/create-sample.js";
import * as dataset from "./routes/dataset.js";
import { formatInput } from "./routes/format-input.js";
import { health } from "./routes/health.js";
import { init, reinitialize } from "./routes/init.js";
import * as lora from "./routes/lora.js";
import { chatModels, inventory, models } from "./routes/models.js";
import { queryResult } from "./routes/query-result.js";
import { releaseTask } from "./routes/release-task.js";
import type { Route, RouteContext } from "./routes/route.js";
import { stats } from "./routes/stats.js";
import * as training from "./routes/training.js";
import { MusicService } from "./service.js";
import type { TaskStore } from "./store.js";

/** How long a running job may go on once the server is told to stop. */
const SHUTDOWN_GRACE_SECONDS = 4;

type Method = "get" | "post" | "put";

const ROUTES: readonly [method: Method, path: string, route: Route][] = [
  ["post", "/release_task", releaseTask],
  ["post", "/query_result", queryResult],
  ["post", "/cancel_task", cancelTask],
  ["post", "/format_input", formatInput],
  ["post", "/create_random_sample", createRandomSample],
  ["post", "/v1/create_sample", createSample],
  ["post", "/v1/chat/completions", chatCompletions],
  ["get", "/v1/models", models],
  ["get", "/v1/model_inventory", inventory],
  ["post", "/v1/init", init],
  ["post", "/v1/reinitialize", reinitialize],
  ["post", "/v1/lora/load", lora.load],
  ["post", "/v1/lora/unload", lora.unload],
  ["post", "/v1/lora/toggle", lora.toggle],
  ["post", "/v1/lora/scale", lora.scale],
  ["get", "/v1/lora/status", lora.status],
  ["post", "/v1/training/start", training.start],
  ["post", "/v1/training/start_lokr", training.startLokr],
  ["post", "/v1/training/stop", training.stop],
  ["get", "/v1/training/status", training.status],
  ["post", "/v1/training/load_tensor_info", training.loadTensorInfo],
  ["post", "/v1/training/export", training.exportTrained],
  ["post", "/v1/dataset/scan", dataset.scan],
  ["post", "/v1/dataset/load", dataset.load],
  ["post", "/v1/dataset/save", dataset.save],
  ["get", "/v1/dataset/samples", dataset.samples],
  ["get", "/v1/dataset/sample/:index", dataset.sample],
  ["put", "/v1/dataset/sample/:index", dataset.updateSample],
  ["post", "/v1/dataset/auto_label", dataset.autoLabel],
  ["post", "/v1/dataset/auto_label_async", dataset.autoLabelAsync],
  ["get", "/v1/dataset/auto_label_status", dataset.autoLabelStatus],
  ["get", "/v1/dataset/auto_label_status/:taskId", dataset.autoLabelStatus],
  ["post", "/v1/dataset/preprocess", dataset.preprocess],
  ["post", "/v1/dataset/preprocess_async", dataset.preprocessAsync],
  ["get", "/v1/dataset/preprocess_status", dataset.preprocessStatus],
  ["get", "/v1/dataset/preprocess_status/:taskId", dataset.preprocessStatus],
  ["get", "/v1/stats", stats],
  ["get", "/v1/audio", audio],
  ["get", "/health", health],
];

/**
 * Clients of chat models read another list at the path of ours. Those that are given this base address find it there,
 * beside everything else.
 */
const OPENROUTER_BASE = "/openrouter";
const OPENROUTER_ROUTES = ROUTES.map((entry): (typeof ROUTES)[number] =>
  entry[1] === "/v1/models" ? ["get", "/v1/models", chatModels] : entry,
);

export interface MusicServerOptions {
  config: Config;
  engine: MusicEngine;
  store: TaskStore;
  log: Logger;
}

export interface MusicServer {
  /** For example http://127.0.0.1:8001 */
  url: string;
  service: MusicService;
  /**
   * Stops accepting, lets running jobs finish for `graceSeconds` (default: 4), puts the rest back into the queue. A
   * job in a native call is not waited for. The engine and the store stay open: they belong to the caller.
   */
  close(graceSeconds?: number): Promise<void>;
}

/**
 * Listens, takes up stored tasks, and loads the models; resolves once jobs run. /health answers before.
 * The address comes first: a second server started by mistake fails there, before it touches stored tasks.
 */
export async function startMusicServer(options: MusicServerOptions): Promise<MusicServer> {
  const { config, engine, store, log } = options;
  assertProtected(config);
  const service = new MusicService(config, engine, store, log);
  const app = buildApp(service, config, log);
  const server = createServer(CONNECTION_TIMEOUTS);
  limitConnections(server, connectionLimits());
  server.on("error", (err) => log.error({ err }, "a connection could not be accepted"));
  try {
    await listen(server, config.apiPort, config.apiHost);
    const opened = service.open();
    server.on("request", (request, response) => {
      if (!readTarget(request)) {
        response.writeHead(400, { "Content-Type": "application/json", Connection: "close" });
        response.end(JSON.stringify({ detail: "The request's target is neither a path nor a URL" }));
        return;
      }
      opened.then(
        () => app(request, response),
        () => response.destroy(),
      );
    });
    await opened;
    await mkdir(config.trainingRoot, { recursive: true }).catch((err: unknown) =>
      log.warn({ err }, "SVC_TRAINING_ROOT cannot be made, so nothing can be trained"),
    );
    await service.start();
  } catch (error) {
    server.close();
    await service.stop(0);
    throw error;
  }
  const { port } = server.address() as AddressInfo;
  const host = config.apiHost.includes(":") ? `[${config.apiHost}]` : config.apiHost;
  return {
    url: `http://${host}:${port}`,
    service,
    close: async (graceSeconds = SHUTDOWN_GRACE_SECONDS) => {
      const closed = closeServer(server);
      await service.stop(graceSeconds);
      server.closeAllConnections();
      await closed;
    },
  };
}

function buildApp(service: MusicService, config: Config, log: Logger): Express {
  const authenticator = new Authenticator(config.apiKey);
  const bodies = new BodyReader(authenticator, {
    maxBytes: config.bodyMaxBytes,
    uploads: {
      directory: service.uploadsDirectory,
      maxBytes: config.uploadMaxBytes,
      maxFiles: config.uploadMaxFiles,
    },
  });
  const context: RouteContext = { config, service, authenticator, bodies, samples: RandomSamples.load() };

  const app = express().disable("x-powered-by");
  app.use(logRequest(log));
  if (config.isLocal) app.use(checkHost(config.allowedHosts));
  app.use(checkOrigin(config.allowedOrigins));
  app.use(OPENROUTER_BASE, endpoints(OPENROUTER_ROUTES, context));
  app.use(endpoints(ROUTES, context));
  app.use(notFound);
  app.use(errorHandler((message, err) => log.error({ err }, message), detailFor(config)));
  return app;
}

function endpoints(routes: typeof ROUTES, context: RouteContext): Router {
  const router = express.Router();
  for (const [method, path, route] of routes) router[method](path, route(context));
  for (const path of new Set(routes.map(([, path]) => path))) {
    router.all(path, methodNotAllowed(...allowedMethods(path)));
  }
  return router;
}

function allowedMethods(path: string): string[] {
  const methods = ROUTES.filter((route) => route[1] === path).map(([method]) => method.toUpperCase());
  return methods.includes("GET") ? [...methods, "HEAD"] : methods;
}

/**
 * The target of a request may be a whole URL, whose host then counts.
 * @returns false where it is neither a path nor a URL: express would answer in HTML, or throw where nobody catches it
 */
function readTarget(request: IncomingMessage): boolean {
  const { url = "" } = request;
  if (url.startsWith("/") || url === "*") return true;
  if (!URL.canParse(url)) return false;
  const { host, pathname, search } = new URL(url);
  request.url = pathname + search;
  request.headers.host = host;
  return true;
}

/** Gives every request an id. The query is left out of the log: it may hold a key. */
function logRequest(log: Logger): RequestHandler {
  return (request, response, next) => {
    const id = randomUUID();
    const startedMs = performance.now();
    const { method, path } = request;
    response.set("X-Request-Id", id);
    response.on("close", () => {
      const milliseconds = Math.round(performance.now() - startedMs);
      const line = { id, method, path, status: response.statusCode, milliseconds };
      if (response.statusCode >= 400) log.info(line, "request refused");
      else log.debug(line, "request");
    });
    next();
  };
}

/** @throws ConfigError where other machines would reach a service that asks nobody for a key */
function assertProtected({ apiHost, apiKey, isLocal, allowsNoKey }: Config): void {
  if (isLocal || apiKey !== "" || allowsNoKey) return;
  throw new ConfigError(
    "SVC_API_KEY",
    `SVC_API_KEY is empty, and on ${apiHost} other machines reach the service: set a key, or SVC_ALLOW_NO_KEY=true`,
  );
}

/** @throws ConfigError naming the setting that asks for an address that cannot be had */
async function listen(server: Server, port: number, host: string): Promise<void> {
  server.listen(port, host);
  try {
    await once(server, "listening");
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "EADDRINUSE") {
      throw new ConfigError(
        "SVC_API_PORT",
        `SVC_API_PORT: port ${port} of ${host} is taken. Set another, or 0 for any free one, as --port does`,
      );
    }
    throw new ConfigError("SVC_API_HOST", `SVC_API_HOST, SVC_API_PORT: ${message}`);
  }
}

/** Accepts no more connections and cuts idle ones; resolves once the others have ended. */
function closeServer(server: Server): Promise<void> {
  return new Promise((resolve, reject) => {
    server.close((error) => (error ? reject(error) : resolve()));
  });
}
