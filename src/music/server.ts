/** HTTP servers: one for the music service, and one for the health and metrics of a fleet worker. */
import { randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { constants } from "node:zlib";
import compression from "compression";
import express, { type Express, type RequestHandler } from "express";
import type { Config } from "../config.js";
import { CONNECTION_TIMEOUTS, connectionLimits, limitConnections } from "../http/connections.js";
import { methodNotAllowed, notFound, requireOneHost } from "../http/guards.js";
import { type Listener, listen, logRequests } from "../http/listener.js";
import { DOCS, type Page, pageRoutes } from "../http/page.js";
import { mcpRoute } from "../mcp/http.js";
import { ConfigError } from "../system/config-error.js";
import type { Logger } from "../system/log.js";
import { Authenticator, checkHost, checkOrigin, requireKeyIfReachable } from "./access/access.js";
import { keyFromBaseAddress } from "./acestep-cpp/base-address.js";
import { answerErrors, detailFilter } from "./errors.js";
import { BodyReader } from "./request/body.js";
import { endpointRouter, musicDocument } from "./routes/endpoints.js";
import { healthRoute, metricsRoute } from "./routes/model-endpoints.js";
import { MusicService, type ServiceParts } from "./service.js";
import { sharedPages, studioTags } from "./shared-pages.js";
import { Telemetry } from "./telemetry.js";
import { RandomSamples } from "./words/random-samples.js";

/** The studio page. Its waveform library needs inline styles, and it plays local recordings from blob: URLs. */
const STUDIO: Page = {
  folder: "studio",
  path: "/studio",
  policy: {
    "style-src": "'self' 'unsafe-inline'",
    "img-src": "'self' data:",
    "connect-src": "'self' blob:",
    "media-src": "'self' blob:",
  },
  tags: studioTags,
};

/** Addresses of reverse proxies whose X-Forwarded headers are trusted: of this machine and of private networks. */
const TRUSTED_PROXIES = ["loopback", "linklocal", "uniquelocal"];

/** Size limit of an MCP request. It needs no room for recordings: clients upload them to the HTTP endpoints. */
const MAX_MCP_BYTES = 4 * 2 ** 20;

export interface MusicServer {
  /** Base URL, for example http://127.0.0.1:8001 */
  url: string;
  service: MusicService;
  /**
   * Stops accepting connections and gives running jobs `graceSeconds` to finish (default: SVC_GRACE_SECONDS).
   * Then requeues the remaining jobs, without waiting for their native calls. The caller must close engine
   * and store.
   */
  close(graceSeconds?: number): Promise<void>;
}

/**
 * Listens, then opens the stored tasks and loads the models. Resolves when jobs can run; /health responds
 * earlier. If a second server is started by mistake, listening fails before that server touches stored tasks.
 */
export async function startMusicServer(options: ServiceParts): Promise<MusicServer> {
  const { config, log } = options;
  requireKeyIfReachable(config);
  const service = new MusicService(options);
  const app = buildApp(service, config, log);
  let listener: Listener | undefined;
  try {
    listener = await listenAt(config, log);
    const opened = service.open();
    listener.server.on("request", (request, response) => {
      if (!readTarget(request)) {
        response.writeHead(400, { "Content-Type": "application/json", Connection: "close" });
        response.end(JSON.stringify({ detail: "The request target must be a path or a URL" }));
        return;
      }
      opened.then(
        () => app(request, response),
        () => response.destroy(),
      );
    });
    await opened;
    await service.start();
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

/** The music service as a request handler. Another HTTP server can mount it under a path. */
export interface MusicApplication extends Pick<MusicServer, "service" | "close"> {
  handle(request: IncomingMessage, response: ServerResponse): void;
  /** Resolves when the models are loaded and jobs run. Requests are accepted earlier. */
  started: Promise<void>;
}

/** Like startMusicServer, but does not listen. The host server manages connections and their limits. */
export async function startMusicApplication(options: ServiceParts): Promise<MusicApplication> {
  const { config, log } = options;
  requireKeyIfReachable(config);
  const service = new MusicService(options);
  const app = buildApp(service, config, log);
  await service.open().catch(async (error) => {
    await service.stop(0);
    throw error;
  });
  return {
    service,
    started: service.start(),
    handle: (request, response) => app(request, response),
    close: (graceSeconds = config.graceSeconds) => service.stop(graceSeconds),
  };
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

  const app = express().disable("x-powered-by").set("trust proxy", TRUSTED_PROXIES);
  app.use(identifyRequest);
  app.use(mergeSlashes);
  app.use(keyFromBaseAddress);
  app.use(
    logRequests(log, (line, response) => {
      const identified = { id: response.get("X-Request-Id"), ...line };
      if (line.status >= 400) log.info(identified, "request refused");
      else log.debug(identified, "request");
    }),
  );
  app.use(requireOneHost);
  app.use(checkHost(config));
  app.use(checkOrigin(config.allowedOrigins));
  app.use(
    compression({ filter: isCompressible, brotli: { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } } }),
  );
  app.use(pageRoutes(STUDIO));
  app.use(sharedPages(service, authenticator, STUDIO));
  app.use(pageRoutes(DOCS));
  app.post(
    "/mcp",
    (request, _response, next) => {
      authenticator.authorize(request);
      next();
    },
    express.raw({ type: () => true, limit: MAX_MCP_BYTES }),
    mcpRoute("music", musicDocument),
  );
  app.all("/mcp", methodNotAllowed("POST"));
  app.use(endpointRouter({ config, service, authenticator, bodies, samples: RandomSamples.load() }));
  app.use(notFound("Not Found"));
  app.use(answerErrors((message, err) => log.error({ err }, message), detailFilter(config)));
  return app;
}

/**
 * Converts an absolute request target (RFC 9112), such as http://host/path, to a path. The host of the target
 * replaces the Host header.
 * @returns false for an invalid target; express would answer it in HTML or throw an uncaught error
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

/** Types that are compressed. Audio hardly shrinks, and compression would delay event streams. */
const COMPRESSIBLE = /^(application\/(json|javascript)|text\/(html|css|javascript|plain)|image\/svg)/;

/** Answers to POST may contain audio in base64, which is streamed with its length. */
function isCompressible({ method }: IncomingMessage, response: ServerResponse): boolean {
  return method === "GET" && COMPRESSIBLE.test(String(response.getHeader("Content-Type")));
}

const identifyRequest: RequestHandler = (_request, response, next) => {
  response.set("X-Request-Id", randomUUID());
  next();
};

/** Merges repeated slashes, because clients may join a base URL and a path with two slashes. */
const mergeSlashes: RequestHandler = (request, _response, next) => {
  const query = request.url.indexOf("?");
  const end = query < 0 ? request.url.length : query;
  request.url = request.url.slice(0, end).replace(/\/{2,}/g, "/") + request.url.slice(end);
  next();
};

/** @throws ConfigError naming the setting if the address is not available */
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
      `SVC_API_PORT: port ${apiPort} on ${apiHost} is in use. Set another port (also with --port), or 0 for any free port`,
    );
  }
  throw new ConfigError("SVC_API_HOST", `SVC_API_HOST, SVC_API_PORT: ${message}`);
}

/**
 * Starts a fleet worker: it listens for /health and /metrics, loads the models, and then takes tasks from the
 * queue.
 */
export async function startWorkerServer(options: ServiceParts): Promise<Pick<MusicServer, "url" | "close">> {
  const { config, queue, runner, log } = options;
  requireKeyIfReachable(config);
  if (runner === null) throw new Error("A fleet worker needs an engine");
  const { engine } = runner;
  const telemetry = new Telemetry(queue, engine.catalog, log);
  const authenticator = new Authenticator(config.apiKey, config.apiKeys);
  const app = express().disable("x-powered-by");
  app.use(logRequests(log, (line) => log.debug(line, "request")));
  app.use(requireOneHost);
  app.use(checkHost(config));
  const context = { config, authenticator, service: { catalog: engine.catalog, telemetry } };
  app.get("/health", healthRoute(context));
  app.get("/metrics", metricsRoute(context));
  app.use(notFound("Not Found"));
  app.use(answerErrors((message, err) => log.error({ err }, message), detailFilter(config)));

  const listener = await listenAt(config, log);
  listener.server.on("request", app);
  try {
    await runner.prepare();
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
