/** Common parts of the HTTP servers: listen, log requests, close gracefully. */
import { once } from "node:events";
import {
  createServer,
  type OutgoingHttpHeaders,
  type Server,
  type ServerOptions,
  STATUS_CODES,
} from "node:http";
import { type AddressInfo, isIPv6, type ListenOptions, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { RequestHandler, Response } from "express";
import type { Logger } from "../system/log.js";

/**
 * Idle time limit of connections. It exceeds the usual 60 s of proxies, because a request is lost if the server
 * closes the connection while the proxy sends it.
 */
const KEEP_ALIVE_MS = 75_000;

export interface Listener {
  /** Base URL, for example http://127.0.0.1:8001 */
  readonly url: string;
  readonly port: number;
  readonly server: Server;
  /**
   * Stops accepting connections. Waits until `work` settles or all connections have ended, then closes the
   * rest.
   */
  close(work: Promise<unknown>): Promise<void>;
}

/** `prepare` is called with the server before it listens. @throws the system error if the address is unavailable */
export async function listen(
  address: ListenOptions & { host: string },
  options: ServerOptions,
  log: Logger,
  prepare: (server: Server) => void,
): Promise<Listener> {
  const server = createServer({ keepAliveTimeout: KEEP_ALIVE_MS, ...options });
  prepare(server);
  const sockets = new Set<Socket>();
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  server.listen(address);
  await once(server, "listening");
  server.on("error", (err) => log.error({ err }, "connection could not be accepted"));
  const { port } = server.address() as AddressInfo;
  const host = isIPv6(address.host) ? `[${address.host}]` : address.host;
  return {
    url: `http://${host}:${port}`,
    port,
    server,
    close: async (work) => {
      const closed = new Promise<void>((resolve, reject) => {
        server.close((error) => (error ? reject(error) : resolve()));
      });
      await Promise.race([closed, work]);
      // `server.closeAllConnections` is not enough: it misses connections whose request the server rejected.
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

export interface RequestLine {
  method: string;
  path: string;
  status: number;
  milliseconds: number;
}

/** Calls `write` for every finished request. Omits the query, which may contain a key. */
export function logRequests(
  log: Logger,
  write: (line: RequestLine, response: Response) => void,
): RequestHandler {
  return (request, response, next) => {
    const startedMs = performance.now();
    const { method, path } = request;
    response.on("close", () => {
      const milliseconds = Math.round(performance.now() - startedMs);
      write({ method, path, status: response.statusCode, milliseconds }, response);
    });
    const onError = (err: Error) => log.debug({ err }, "connection broke");
    request.on("error", onError);
    response.on("error", onError);
    next();
  };
}

/** Responds without reading the request, and closes the connection. */
export function respondAndClose(
  socket: Duplex,
  status: number,
  body: string,
  headers: OutgoingHttpHeaders = {},
): void {
  const all = {
    Connection: "close",
    "Content-Type": "application/json; charset=utf-8",
    "Content-Length": Buffer.byteLength(body),
    ...headers,
  };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join("")}\r\n${body}`);
}
