/**
 * Limits the idle time of connections and their number, per address and in total: clients without a key can
 * connect too. Above a limit the oldest idle connection is closed; if all are busy, the new one is rejected.
 */
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { respondAndClose } from "./listener.js";

/** File descriptors reserved for models, the store, songs, uploads, ffmpeg pipes and the city. */
const RESERVED_DESCRIPTORS = 256;
/** File descriptors reserved in a city's process: for its modules, its saves and their folder. */
const RESERVED_DESCRIPTORS_LOOPBACK = 64;
const MIN_CONNECTIONS = 16;
const MAX_CONNECTIONS = 1024;

/** Time limit for the headers of a request. For the first request it starts when the connection opens. */
const HEADERS_MS = 20_000;
const HEADERS_CHECK_MS = 5_000;
/** Closes a connection after this time without traffic, unless its client waits for a response. */
const STALL_MS = 60_000;
/** Time to read the rest of the body after an early response: closing immediately could lose the response. */
const LINGER_MS = 30_000;

export interface ConnectionLimits {
  total: number;
  perAddress: number;
}

/** Allows one connection per two available file descriptors, because each request may also open a file. */
export function connectionLimits(openFiles = openFileLimit()): ConnectionLimits {
  const total = Math.min(affordable(openFiles, RESERVED_DESCRIPTORS), MAX_CONNECTIONS);
  return { total, perAddress: Math.ceil(total / 2) };
}

/** Limits of a server on loopback, whose clients all have the same address. It shares no process with models. */
export function loopbackLimits(openFiles = openFileLimit()): ConnectionLimits {
  const total = affordable(openFiles, RESERVED_DESCRIPTORS_LOOPBACK);
  return { total, perAddress: total };
}

function affordable(openFiles: number, reserved: number): number {
  return Math.max(Math.floor((openFiles - reserved) / 2), MIN_CONNECTIONS);
}

/** The process's RLIMIT_NOFILE; infinity if it is unlimited. */
function openFileLimit(): number {
  const { userLimits } = process.report.getReport() as { userLimits: { open_files: { soft: unknown } } };
  const limit = Number(userLimits.open_files.soft);
  return Number.isNaN(limit) ? Number.POSITIVE_INFINITY : limit;
}

/** Options of createServer. Bodies have no time limit while data arrives: uploads are large and networks slow. */
export const CONNECTION_TIMEOUTS = {
  headersTimeout: HEADERS_MS,
  requestTimeout: 0,
  connectionsCheckingInterval: HEADERS_CHECK_MS,
};

/** Open connections, oldest first, with their requests in progress. */
export type OpenConnections = Map<Socket, Set<{ request: IncomingMessage; response: ServerResponse }>>;

/** @param open shared by servers that share the limits */
export function limitConnections(
  server: Server,
  limits: ConnectionLimits,
  open: OpenConnections = new Map(),
): void {
  server.on("connection", (socket) => {
    open.set(socket, new Set());
    socket.once("close", () => open.delete(socket));
    if (open.size <= limits.perAddress) return;
    const all = [...open.keys()];
    const neighbours = all.filter(({ remoteAddress }) => remoteAddress === socket.remoteAddress);
    if (neighbours.length > limits.perAddress) makeRoom(neighbours, socket);
    else if (all.length > limits.total) makeRoom(all, socket);
  });

  function makeRoom(sockets: readonly Socket[], latest: Socket): void {
    const idle = sockets.find((socket) => socket !== latest && open.get(socket)?.size === 0);
    if (idle === undefined) refuse(latest);
    else idle.destroy();
  }

  server.on("request", (request, response) => {
    const exchanges = open.get(request.socket);
    const exchange = { request, response };
    exchanges?.add(exchange);
    response.once("close", () => exchanges?.delete(exchange));
    response.once("finish", () => linger(request));
  });

  server.setTimeout(STALL_MS, (socket: Socket) => {
    const exchanges = [...(open.get(socket) ?? [])];
    const isWaitingForUs = exchanges.some(({ request }) => request.complete) && socket.writableLength === 0;
    if (!isWaitingForUs) socket.destroy();
  });
}

function linger(request: IncomingMessage): void {
  if (request.complete) return;
  const timer = setTimeout(() => request.socket.destroy(), LINGER_MS).unref();
  request.once("close", () => clearTimeout(timer));
}

function refuse(socket: Socket): void {
  const message = "Too many connections: close some, or try again later";
  const body = JSON.stringify({ ok: false, error: message, detail: message });
  socket.on("error", () => {
    // Ignored: the client disconnected before it got the response.
  });
  respondAndClose(socket, 503, body, { "Retry-After": 5 });
  socket.destroySoon();
}
