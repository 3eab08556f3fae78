/** The music service over HTTP: builds the application and listens. */
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdir } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import express, { type Express, type RequestHandler } from "express";
import { type Config, ConfigError } from "../config.js";
import type { MusicEngine } from "../engine/types.js";
import type { Logger } from "../log.js";
import { Authenticator } from "./auth.js";
import { CONNECTION_TIMEOUTS, connectionLimits, limitConnections } from "./connections.js";
import { detailFor, errorHandler, notFound } from "./errors.js";
import { checkHost, checkOrigin } from "./origin.js";
import { RandomSamples } from "./random-samples.js";
import { BodyReader } from "./request/body.js";
import { endpoints } from "./routes/endpoints.js";
import { MusicService } from "./service.js";
import type { TaskStore } from "./store.js";

/** How long a running job may go on once the server is told to stop. */
const SHUTDOWN_GRACE_SECONDS = 4;

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

  const app = express().disable("x-powered-by");
  app.use(logRequest(log));
  if (config.isLocal) app.use(checkHost(config.allowedHosts));
  app.use(checkOrigin(config.allowedOrigins));
  app.use(endpoints({ config, service, authenticator, bodies, samples: RandomSamples.load() }));
  app.use(notFound);
  app.use(errorHandler((message, err) => log.error({ err }, message), detailFor(config)));
  return app;
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
