/**
 * HTTP server of the bridge, for the embedded city and for a running game. The server has no authentication,
 * so it listens only on loopback. Of all web pages, only its own pages and those of CITY_ALLOWED_ORIGINS may
 * send commands. The host name of a request must be a loopback name: otherwise another site could point its
 * own DNS name at the bridge.
 */
import type { Server } from "node:http";
import type { Duplex } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import express, { type Express, type RequestHandler, type Router } from "express";
import {
  CONNECTION_TIMEOUTS,
  limitConnections,
  loopbackLimits,
  type OpenConnections,
} from "../http/connections.js";
import { errorHandler, notFound, requireOneHost } from "../http/guards.js";
import { HttpError } from "../http/http-error.js";
import { type Listener, listen, logRequests, respondAndClose } from "../http/listener.js";
import {
  hostName,
  isLoopbackName,
  isLoopbackOrigin,
  isOwnPage,
  pagesOf,
  SAFE_METHODS,
} from "../http/origins.js";
import { pageRoutes } from "../http/page.js";
import { ConfigError } from "../system/config-error.js";
import type { Logger } from "../system/log.js";
import { sendJson, toHttpError, writeJson } from "./wire/answers.js";

const MAX_BODY_BYTES = 4 * 2 ** 20;
const MAX_HEADER_BYTES = 65_536;
/** Time limit for a whole request. Bodies are small, and clients run on this machine. */
const REQUEST_MS = 60_000;
/** Maximum number of pending connections (listen backlog). The system may allow fewer. */
const BACKLOG = 16_384;
/** When the bridge closes, running requests have this time to finish. Their connections are then cut. */
const CLOSING_GRACE_MS = 2000;
const LOOPBACK = "127.0.0.1";
const LOOPBACK_6 = "::1";
/** Error codes of a system without IPv6 loopback. */
const NO_LOOPBACK_6 = ["EADDRNOTAVAIL", "EAFNOSUPPORT", "EINVAL"];
const CORS_HEADERS = {
  "Access-Control-Allow-Methods": "GET, POST, OPTIONS",
  "Access-Control-Allow-Headers": "Content-Type",
};

export interface BridgeServerOptions {
  /** Port to listen on; 0: any free port. */
  readonly port: number;
  /** Web origins that may send commands, besides the bridge's own; "*" for all. */
  readonly allowedOrigins: readonly string[];
  readonly log: Logger;
}

export interface BridgeServer {
  /** Base URL, for example http://127.0.0.1:32123 */
  readonly url: string;
  /** Stops listening, gives running requests a short time to finish, then cuts their connections. */
  close(): Promise<void>;
}

/**
 * @param routes endpoints; every other path returns 404
 * @throws ConfigError when the port is taken
 */
export async function startServer(routes: Router, options: BridgeServerOptions): Promise<BridgeServer> {
  const app = buildApp(routes, options);
  const limits = loopbackLimits();
  const open: OpenConnections = new Map();
  const prepare = (server: Server) => limitConnections(server, limits, open);
  const main = await listenOn(LOOPBACK, options.port, app, options, prepare).catch(explainTakenPort);
  const { url, port } = main;
  const listeners = [main, await listenOnLoopback6(port, app, options, prepare)].filter(
    (listener) => listener !== null,
  );
  return {
    url,
    close: async () => {
      const grace = delay(CLOSING_GRACE_MS, undefined, { ref: false });
      await Promise.all(listeners.map((listener) => listener.close(grace)));
    },
  };
}

function buildApp(routes: Router, { allowedOrigins, log }: BridgeServerOptions): Express {
  const app = express().disable("x-powered-by").disable("etag").set("query parser", false);
  app.use(logRequests(log, (line) => log.debug(line, "city request")));
  app.use(closeConnection);
  app.use(requireOneHost);
  app.use(checkOrigin(allowedOrigins));
  app.use(requireLoopbackHost);
  app.use(refuseExpectations);
  app.use(express.raw({ type: () => true, limit: MAX_BODY_BYTES }));
  app.use(onlyGetAndPost);
  app.use(pageRoutes({ folder: "", path: "/page" }));
  app.use(routes);
  app.use(notFound("Not found"));
  app.use(
    errorHandler(
      toHttpError,
      ({ cause }, { method, path }) => cause !== undefined && log.error({ err: cause }, `${method} ${path}`),
      (response, { status, message }) => sendJson(response, status, { ok: false, error: message }),
    ),
  );
  return app;
}

/** One request per connection, like the game's bridge. */
const closeConnection: RequestHandler = (_request, response, next) => {
  response.set("Connection", "close");
  next();
};

const requireLoopbackHost: RequestHandler = (request, _response, next) => {
  const { host } = request.headers;
  if (host !== undefined && isLoopbackName(hostName(host))) next();
  else throw new HttpError(403, `Host ${host ?? "(none)"} is not a name of this machine`);
};

/** Node answers `Expect: 100-continue` itself; any other Expect header is rejected. */
const refuseExpectations: RequestHandler = (request, _response, next) => {
  const { expect } = request.headers;
  if (expect === undefined || expect.toLowerCase() === "100-continue") next();
  else throw new HttpError(417, `Unsupported header "Expect: ${expect}": use 100-continue or none`);
};

/** Whether web pages of any origin may read: true if CITY_ALLOWED_ORIGINS is empty or contains `*`. */
function isReadByAll(allowedOrigins: readonly string[]): boolean {
  return allowedOrigins.length === 0 || allowedOrigins.includes("*");
}

/**
 * Applies the rules for web pages (CORS). Only the bridge's own page and pages of listed origins may send
 * commands; "*" lists all origins. If no origin is listed, every page may read, as with the game's bridge.
 * Otherwise only pages of listed origins and pages of this machine may read.
 */
function checkOrigin(allowedOrigins: readonly string[]): RequestHandler {
  const allowsAll = allowedOrigins.includes("*");
  const isOpen = isReadByAll(allowedOrigins);
  return (request, response, next) => {
    const { origin } = request.headers;
    const isListed = (page: string) =>
      allowsAll || allowedOrigins.includes(page) || (page.startsWith("http:") && isOwnPage(request, page));
    response.set(CORS_HEADERS);
    if (isOpen) {
      response.set("Access-Control-Allow-Origin", "*");
    } else if (origin !== undefined) {
      response.vary("Origin");
      if (isListed(origin) || isLoopbackOrigin(origin)) response.set("Access-Control-Allow-Origin", origin);
      else throw originRefused(origin, "read");
    }
    if (origin !== undefined && !SAFE_METHODS.has(request.method) && !isListed(origin)) {
      throw originRefused(origin, "change");
    }
    next();
  };
}

function originRefused(origin: string, what: "read" | "change"): HttpError {
  const advice = `add ${origin} to CITY_ALLOWED_ORIGINS`;
  return new HttpError(403, `${pagesOf(origin)} may not ${what} the city: ${advice}`);
}

/** Answers OPTIONS on every path. Rejects all methods but GET and POST with 404, even HEAD. */
const onlyGetAndPost: RequestHandler = (request, response, next) => {
  if (request.method === "OPTIONS") sendJson(response, 200, { ok: true });
  else if (request.method === "GET" || request.method === "POST") next();
  else throw new HttpError(404, "Not found");
};

function listenOn(
  host: string,
  port: number,
  app: Express,
  options: BridgeServerOptions,
  prepare: (server: Server) => void,
): Promise<Listener> {
  const timeouts = { ...CONNECTION_TIMEOUTS, requestTimeout: REQUEST_MS };
  const limits = { maxHeaderSize: MAX_HEADER_BYTES, requireHostHeader: false, ...timeouts };
  const refuse = refuseUnreadable(isReadByAll(options.allowedOrigins));
  return listen({ host, port, backlog: BACKLOG }, limits, options.log, (server) => {
    prepare(server);
    server.on("request", app).on("checkExpectation", app).on("clientError", refuse);
  });
}

function explainTakenPort(error: NodeJS.ErrnoException & { port?: number }): never {
  if (error.code !== "EADDRINUSE") throw error;
  const advice = "set another port; to use a game whose bridge listens there, set CITY_GAME_URL";
  throw new ConfigError("CITY_BRIDGE_PORT", `CITY_BRIDGE_PORT: port ${error.port} is taken, ${advice}`);
}

/**
 * Listens on the IPv6 loopback address too, because some systems resolve `localhost` to it first. Returns
 * null if the system has no IPv6 or the port is taken there.
 */
async function listenOnLoopback6(
  port: number,
  app: Express,
  options: BridgeServerOptions,
  prepare: (server: Server) => void,
): Promise<Listener | null> {
  try {
    return await listenOn(LOOPBACK_6, port, app, options, prepare);
  } catch (error) {
    const { code = "", message } = error as NodeJS.ErrnoException;
    if (!NO_LOOPBACK_6.includes(code)) options.log.warn(`the city listens only on ${LOOPBACK}: ${message}`);
    return null;
  }
}

/**
 * Answers 400 to a request that is not HTTP, and 500 to a request whose headers are too large, like the
 * game's bridge. The origin of such a request is unknown, so web pages may read the answer only if
 * every page may read.
 */
function refuseUnreadable(isOpen: boolean): (error: NodeJS.ErrnoException, socket: Duplex) => void {
  const headers = { ...CORS_HEADERS, ...(isOpen ? { "Access-Control-Allow-Origin": "*" } : {}) };
  return (error, socket) => {
    if (!socket.writable) return;
    const message = `The request could not be read: ${error.message}`;
    const status = error.code === "HPE_HEADER_OVERFLOW" ? 500 : 400;
    respondAndClose(socket, status, writeJson({ ok: false, error: message }), headers);
  };
}
