/** The bridge over HTTP: what holds for every request, whichever city answers it, and the listening itself. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import express, { type ErrorRequestHandler, type Express, type RequestHandler, type Router } from "express";
import { ConfigError } from "../config.js";
import type { Logger } from "../log.js";
import { checkOrigin, requireLoopbackHost } from "./access.js";
import { BridgeError, toBridgeError } from "./errors.js";
import { pageRoutes } from "./page.js";
import { writeJson } from "./wire/json.js";
import { JSON_TYPE, sendJson } from "./wire/reply.js";

const MAX_BODY_BYTES = 4 * 2 ** 20;
const MAX_HEADER_BYTES = 65_536;
/** Connections that may wait while the city is busy; the system may allow fewer. */
const BACKLOG = 16_384;
const LOOPBACK = "127.0.0.1";
const LOOPBACK_6 = "::1";
/** What the system says where it has no IPv6 loopback. */
const NO_LOOPBACK_6 = ["EADDRNOTAVAIL", "EAFNOSUPPORT", "EINVAL"];

export interface BridgeServerOptions {
  /** 0 takes any free one. */
  readonly port: number;
  /** Web origins beside those of this machine; "*" for all. */
  readonly allowedOrigins: readonly string[];
  readonly log: Logger;
}

export interface BridgeServer {
  /** For example http://127.0.0.1:32123 */
  readonly url: string;
  /** Stops listening and lets the requests under way finish. */
  close(): Promise<void>;
}

/**
 * @param routes the endpoints; what they leave is not found
 * @throws ConfigError when the port is taken
 */
export async function startServer(routes: Router, options: BridgeServerOptions): Promise<BridgeServer> {
  const app = buildApp(routes, options);
  const main = await listen(app, options.port, LOOPBACK).catch(explainTakenPort);
  const { port } = main.address() as AddressInfo;
  const servers = [main, await listenOnLoopback6(app, port, options.log)].filter((server) => server !== null);
  return {
    url: `http://${LOOPBACK}:${port}`,
    close: async () => {
      await Promise.all(servers.map(closeServer));
    },
  };
}

function buildApp(routes: Router, { allowedOrigins, log }: BridgeServerOptions): Express {
  const app = express().disable("x-powered-by").disable("etag").set("query parser", false);
  app.use(logRequest(log));
  app.use(closeConnection);
  app.use(checkOrigin(allowedOrigins));
  app.use(requireLoopbackHost);
  app.use(express.raw({ type: () => true, limit: MAX_BODY_BYTES }));
  app.use(onlyGetAndPost);
  app.use(pageRoutes());
  app.use(routes);
  app.use(notFound);
  app.use(errorHandler(log));
  return app;
}

function logRequest(log: Logger): RequestHandler {
  return (request, response, next) => {
    const startedMs = performance.now();
    response.on("close", () => {
      const milliseconds = Math.round(performance.now() - startedMs);
      const { method, path } = request;
      log.debug({ method, path, status: response.statusCode, milliseconds }, "city request");
    });
    next();
  };
}

/** One request per connection, as the bridge of the game has it. */
const closeConnection: RequestHandler = (_request, response, next) => {
  response.set("Connection", "close");
  next();
};

/** OPTIONS is answered for every path; HEAD and the rest exist nowhere. */
const onlyGetAndPost: RequestHandler = (request, response, next) => {
  if (request.method === "OPTIONS") sendJson(response, 200, { ok: true });
  else if (request.method === "GET" || request.method === "POST") next();
  else throw new BridgeError(404, "Not found");
};

const notFound: RequestHandler = () => {
  throw new BridgeError(404, "Not found");
};

function errorHandler(log: Logger): ErrorRequestHandler {
  return (error, request, response, next) => {
    const failure = toBridgeError(error);
    if (failure.cause !== undefined) log.error({ err: failure.cause }, `${request.method} ${request.path}`);
    if (response.headersSent) next(error);
    else sendJson(response, failure.status, { ok: false, error: failure.message });
  };
}

function listen(app: Express, port: number, host: string): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer({ maxHeaderSize: MAX_HEADER_BYTES, requireHostHeader: false }, app);
    server.on("clientError", refuseUnreadable);
    server.once("error", reject);
    server.listen({ port, host, backlog: BACKLOG }, () => {
      server.off("error", reject);
      resolve(server);
    });
  });
}

function explainTakenPort(error: NodeJS.ErrnoException & { port?: number }): never {
  if (error.code !== "EADDRINUSE") throw error;
  const advice = "set it to another; a game whose bridge listens there is reached with CITY_GAME_URL";
  throw new ConfigError("CITY_BRIDGE_PORT", `CITY_BRIDGE_PORT: port ${error.port} is taken, ${advice}`);
}

/** `localhost` is IPv6 first on some systems. Where there is no IPv6, or its port is taken, IPv4 alone must do. */
async function listenOnLoopback6(app: Express, port: number, log: Logger): Promise<Server | null> {
  try {
    return await listen(app, port, LOOPBACK_6);
  } catch (error) {
    const { code = "", message } = error as NodeJS.ErrnoException;
    if (!NO_LOOPBACK_6.includes(code)) log.warn(`the city answers on ${LOOPBACK} only: ${message}`);
    return null;
  }
}

/** A request that is no HTTP, or whose headers are too large. */
function refuseUnreadable(error: Error, socket: Duplex): void {
  if (!socket.writable) return;
  const body = writeJson({ ok: false, error: `The request could not be read: ${error.message}` });
  const head = [
    "HTTP/1.1 500 Internal Server Error",
    `Content-Type: ${JSON_TYPE}`,
    `Content-Length: ${Buffer.byteLength(body)}`,
    "Connection: close",
  ];
  socket.end(`${head.join("\r\n")}\r\n\r\n${body}`);
}

function closeServer(server: Server): Promise<void> {
  return new Promise((resolve, reject) => {
    server.close((error) => (error ? reject(error) : resolve()));
    server.closeIdleConnections();
  });
}
