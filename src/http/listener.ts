/** What every HTTP server of Carillon shares, whatever it serves: listening, the log of requests, and an orderly end. */
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
import type { Logger } from "../log.js";

/**
 * Longer than the minute for which proxies keep a connection that they may use again: who closes first loses a request that
 * is on its way.
 */
const KEEP_ALIVE_MS = 75_000;

/** An address that is listened on. */
export interface Listener {
  /** For example http://127.0.0.1:8001 */
  readonly url: string;
  readonly port: number;
  readonly server: Server;
  /**
   * Accepts no more connections and ends idle ones; once `work` is settled, cuts those that are left.
   * Resolves when there are none.
   */
  close(work: Promise<unknown>): Promise<void>;
}

/**
 * @param prepare is given the server before it listens
 * @throws the system's error, with its code, where the address cannot be had
 */
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
  server.on("error", (err) => log.error({ err }, "a connection could not be accepted"));
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
      // All of them: the server itself forgets a connection once it has refused what came in by it.
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

/** Has `write` tell every request once it is over. The query is left out: it may hold a key. */
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
    const onError = (err: Error) => log.debug({ err }, "a connection broke");
    request.on("error", onError);
    response.on("error", onError);
    next();
  };
}

/** Answers on a connection whose request was not read, and ends it. */
export function answerUnread(
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
