/** The bridge over HTTP: what holds for every request, whichever city answers it, and the listening itself. */
import { createServer, type Server } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
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
/** What requests under way may take after the bridge was told to close; then their connections are cut. */
const CLOSING_GRACE_MS = 2000;
const LOOPBACK = "127.0.0.1";
const LOOPBACK_6 = "::1";
/** What the system says where it has no IPv6 loopback. */
const NO_LOOPBACK_6 = ["EADDRNOTAVAIL", "EAFNOSUPPORT", "EINVAL"];

export interface BridgeServerOptions {
  /** 0 takes any free one. */
  readonly port: number;
  /** Web origins that may command beside the bridge's own; "*" for all. See access.ts. */
  readonly allowedOrigins: readonly string[];
  readonly log: Logger;
}

export interface BridgeServer {
  /** For example http://127.0.0.1:32123 */
  readonly url: string;
  /** Stops listening, lets the requests under way finish for a short while, and cuts the rest. */
  close(): Promise<void>;
}

/**
 * @param routes the endpoints; what they leave is not found
 * @throws ConfigError when the port is taken
 */
export async function startServer(routes: Router, options: BridgeServerOptions): Promise<BridgeServer> {
  const app = buildApp(routes, options);
  const main = await listen(app, options.port, LOOPBACK, options.log).catch(explainTakenPort);
  const { port } = main.server.address() as AddressInfo;
  const doors = [main, await listenOnLoopback6(app, port, options.log)].filter((door) => door !== null);
  return {
    url: `http://${LOOPBACK}:${port}`,
    close: async () => {
      await Promise.all(doors.map(closeDoor));
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
    const onError = (error: Error) => log.debug({ err: error }, "city connection");
    request.on("error", onError);
    response.on("error", onError);
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

/** What listens on one address, and every connection that came in by it. */
interface Door {
  readonly server: Server;
  readonly sockets: ReadonlySet<Socket>;
}

function listen(app: Express, port: number, host: string, log: Logger): Promise<Door> {
  const sockets = new Set<Socket>();
  return new Promise((resolve, reject) => {
    const server = createServer({ maxHeaderSize: MAX_HEADER_BYTES, requireHostHeader: false }, app);
    server.on("clientError", refuseUnreadable);
    server.on("connection", (socket) => {
      sockets.add(socket);
      socket.on("close", () => sockets.delete(socket));
    });
    server.once("error", reject);
    server.listen({ port, host, backlog: BACKLOG }, () => {
      server.off("error", reject);
      server.on("error", (error) => log.error({ err: error }, "the city cannot take a connection"));
      resolve({ server, sockets });
    });
  });
}

function explainTakenPort(error: NodeJS.ErrnoException & { port?: number }): never {
  if (error.code !== "EADDRINUSE") throw error;
  const advice = "set it to another; a game whose bridge listens there is reached with CITY_GAME_URL";
  throw new ConfigError("CITY_BRIDGE_PORT", `CITY_BRIDGE_PORT: port ${error.port} is taken, ${advice}`);
}

/** `localhost` is IPv6 first on some systems. Where there is no IPv6, or its port is taken, IPv4 alone must do. */
async function listenOnLoopback6(app: Express, port: number, log: Logger): Promise<Door | null> {
  try {
    return await listen(app, port, LOOPBACK_6, log);
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

async function closeDoor({ server, sockets }: Door): Promise<void> {
  const closed = new Promise<void>((resolve, reject) => {
    server.close((error) => (error ? reject(error) : resolve()));
    server.closeIdleConnections();
  });
  await Promise.race([closed, delay(CLOSING_GRACE_MS, undefined, { ref: false })]);
  // Of all of them: the server itself forgets a connection once it has refused what came in by it.
  for (const socket of sockets) socket.destroy();
  await closed;
}
