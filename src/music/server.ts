/** The music service over HTTP, and what a worker of a fleet serves: builds the application and listens. */
import { randomUUID } from "node:crypto";
import { mkdir } from "node:fs/promises";
import type { IncomingMessage, ServerResponse } from "node:http";
import express, { type Express, type RequestHandler } from "express";
import { type Config, ConfigError } from "../config.js";
import type { MusicEngine } from "../engine/types.js";
import { CONNECTION_TIMEOUTS, connectionLimits, limitConnections } from "../http/connections.js";
import { type Listener, listen, logRequests } from "../http/listener.js";
import { type Page, pageRoutes } from "../http/page.js";
import type { Logger } from "../log.js";
import { Authenticator, checkHost, checkOrigin, requireProtection } from "./access.js";
import { detailFor, errorHandler, notFound } from "./errors.js";
import type { JobQueue } from "./queue/job-queue.js";
import { BodyReader } from "./request/body.js";
import { endpoints } from "./routes/endpoints.js";
import { health, metrics } from "./routes/model-endpoints.js";
import { MusicService } from "./service.js";
import type { SongJobs } from "./song-jobs.js";
import { Telemetry } from "./telemetry.js";
import { RandomSamples } from "./words/random-samples.js";

/** Waveforms are styled from within their library, and recordings of this machine are played before they are sent. */
const STUDIO: Page = {
  folder: "studio",
  path: "/studio",
  policy: {
    "style-src": "'self' 'unsafe-inline'",
    "img-src": "'self' data:",
    "connect-src": "'self' blob:",
    "media-src": "'self' blob:",
  },
};

export interface MusicServerOptions {
  config: Config;
  /** See MusicService. */
  engine: MusicEngine;
  queue: JobQueue;
  jobs: SongJobs;
  log: Logger;
}

export interface MusicServer {
  /** For example http://127.0.0.1:8001 */
  url: string;
  service: MusicService;
  /**
   * Stops accepting, lets running jobs finish for `graceSeconds` (default: SVC_GRACE_SECONDS), puts the rest back into the queue. A
   * job in a native call is not waited for. The engine and the store stay open: they belong to the caller.
   */
  close(graceSeconds?: number): Promise<void>;
}

/**
 * Listens, takes up stored tasks, and loads the models; resolves once jobs run. /health answers before.
 * The address comes first: a second server started by mistake fails there, before it touches stored tasks.
 */
export async function startMusicServer(options: MusicServerOptions): Promise<MusicServer> {
  const { config, engine, queue, jobs, log } = options;
  requireProtection(config);
  const service = new MusicService(config, engine, queue, jobs, log);
  const app = buildApp(service, config, log);
  let listener: Listener | undefined;
  try {
    listener = await listenAt(config, log);
    const opened = service.open();
    listener.server.on("request", (request, response) => {
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
    await start(service, opened, options);
  } catch (error) {
    const stopped = service.stop(0);
    void listener?.close(stopped);
    await stopped;
    throw error;
  }
  const { url, close } = listener;
  return {
    url,
    service,
    close: async (graceSeconds = config.graceSeconds) => {
      const stopped = service.stop(graceSeconds);
      await Promise.all([close(stopped), stopped]);
    },
  };
}

/** The service as a part of another's HTTP server: a handler of what the host leaves of the path. */
export interface MusicApplication extends Pick<MusicServer, "service" | "close"> {
  handle(request: IncomingMessage, response: ServerResponse): void;
  /** Resolves once the models are loaded and jobs run; requests may come before. */
  started: Promise<void>;
}

/** As startMusicServer, without an address of its own. The connections and their limits are the host's. */
export async function startMusicApplication(options: MusicServerOptions): Promise<MusicApplication> {
  const { config, engine, queue, jobs, log } = options;
  requireProtection(config);
  const service = new MusicService(config, engine, queue, jobs, log);
  const app = buildApp(service, config, log);
  const opened = service.open();
  await opened.catch(async (error) => {
    await service.stop(0);
    throw error;
  });
  return {
    service,
    started: start(service, opened, options),
    handle: (request, response) => app(request, response),
    close: (graceSeconds = config.graceSeconds) => service.stop(graceSeconds),
  };
}

async function start(service: MusicService, opened: Promise<void>, { config, log }: MusicServerOptions) {
  await opened;
  await mkdir(config.trainingRoot, { recursive: true }).catch((err: unknown) =>
    log.warn({ err }, "SVC_TRAINING_ROOT cannot be made, so nothing can be trained"),
  );
  await service.start();
}

function buildApp(service: MusicService, config: Config, log: Logger): Express {
  const authenticator = new Authenticator(config.apiKey, config.apiKeys);
  const bodies = new BodyReader(authenticator, {
    maxBytes: config.bodyMaxBytes,
    uploads: {
      directory: service.uploadsDirectory,
      maxBytes: config.uploadMaxBytes,
      maxFiles: config.uploadMaxFiles,
    },
  });

  const app = express().disable("x-powered-by");
  app.use(identifyRequest);
  app.use(
    logRequests(log, (line, response) => {
      const identified = { id: response.get("X-Request-Id"), ...line };
      if (line.status >= 400) log.info(identified, "request refused");
      else log.debug(identified, "request");
    }),
  );
  if (config.isLocal) app.use(checkHost(config.allowedHosts));
  app.use(checkOrigin(config.allowedOrigins));
  app.use(pageRoutes(STUDIO));
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

const identifyRequest: RequestHandler = (_request, response, next) => {
  response.set("X-Request-Id", randomUUID());
  next();
};

/** @throws ConfigError naming the setting that asks for an address that cannot be had */
function listenAt(config: Config, log: Logger): Promise<Listener> {
  const address = { port: config.apiPort, host: config.apiHost };
  return listen(address, CONNECTION_TIMEOUTS, log, (server) =>
    limitConnections(server, connectionLimits()),
  ).catch((error) => explainAddress(error, config));
}

function explainAddress({ code, message }: NodeJS.ErrnoException, { apiPort, apiHost }: Config): never {
  if (code === "EADDRINUSE") {
    throw new ConfigError(
      "SVC_API_PORT",
      `SVC_API_PORT: port ${apiPort} of ${apiHost} is taken. Set another, or 0 for any free one, as --port does`,
    );
  }
  throw new ConfigError("SVC_API_HOST", `SVC_API_HOST, SVC_API_PORT: ${message}`);
}

/**
 * A worker of a fleet serves whether it lives, and its metrics: clients ask a gateway. Listens, loads the models, and takes
 * tasks from then on.
 */
export async function startWorkerServer(
  options: MusicServerOptions,
): Promise<Pick<MusicServer, "url" | "close">> {
  const { config, queue, jobs, log } = options;
  requireProtection(config);
  const { engine } = jobs;
  if (engine === null) throw new Error("a worker needs an engine");
  const telemetry = new Telemetry({ queue, engine }, log);
  const authenticator = new Authenticator(config.apiKey, config.apiKeys);
  const app = express().disable("x-powered-by");
  app.use(logRequests(log, (line) => log.debug(line, "request")));
  if (config.isLocal) app.use(checkHost(config.allowedHosts));
  const context = { config, authenticator, service: { engine, telemetry } };
  app.get("/health", health(context));
  app.get("/metrics", metrics(context));
  app.use(notFound);
  app.use(errorHandler((message, err) => log.error({ err }, message), detailFor(config)));

  const listener = await listenAt(config, log);
  listener.server.on("request", app);
  try {
    await jobs.prepare();
    await queue.open(() => {});
    queue.start();
  } catch (error) {
    await listener.close(Promise.resolve());
    throw error;
  }
  return {
    url: listener.url,
    close: async (graceSeconds = config.graceSeconds) => {
      const stopped = queue.stop(graceSeconds);
      await Promise.all([listener.close(stopped), stopped]);
    },
  };
}
