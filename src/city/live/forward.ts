/**
 * Forwards requests to the bridge of a running game. Responses are passed on byte for byte, because parsing JSON would
 * round their 64-bit integers. Nothing is retried, because a command might then build twice.
 */
import { request as httpRequest, type OutgoingHttpHeaders } from "node:http";
import { request as httpsRequest } from "node:https";
import { buffer } from "node:stream/consumers";
import { type Request, type Response, Router } from "express";
import { HttpError } from "../../http/http-error.js";
import { responseTo } from "../../http/response-to.js";
import { withTimeLimit } from "../../system/time-limit.js";
import { BRIDGE_NAME } from "../embedded-routes.js";
import { sendBytes, sendJson } from "../wire/answers.js";

const CONNECT_TIMEOUT_MS = 2000;
/** Timeout of /health, shorter than those of clients, so that they learn that the game hangs. */
const HEALTH_TIMEOUT_MS = 1500;
/** Timeout of most requests. A bridge may answer only after 20 seconds: twice its own time limit of 10 seconds. */
const ANSWER_TIMEOUT_MS = 25_000;
const CAPTURE_TIMEOUT_MS = 35_000;
/** Timeout of commands that build many segments or buildings, or whole transit lines. */
const COMPOSITE_TIMEOUT_MS = 130_000;
const COMPOSITE = /^\/commands\/(build-grid|build-neighborhood|.*transit)/;

const HTML = /^\s*(text\/html|application\/xhtml)/i;

/** @param game address of the bridge to forward to */
export function forwardingRoutes(game: URL): Router {
  const router = Router({ caseSensitive: true, strict: true });
  router.get("/health", async (request, response) => {
    try {
      await forward(game, request, response);
    } catch (error) {
      if (!(error instanceof HttpError)) throw error;
      sendJson(response, 200, {
        ok: true,
        mod: BRIDGE_NAME,
        levelLoaded: false,
        port: request.socket.localPort ?? 0,
        mode: "proxy",
        reason: error.message,
      });
    }
  });
  router.use((request, response) => forward(game, request, response));
  return router;
}

/** @throws HttpError 502 if the game does not answer, or if the answer is not from a bridge */
async function forward(game: URL, request: Request, response: Response): Promise<void> {
  const body: unknown = request.body;
  try {
    const hungUp = new AbortController();
    response.on("close", () => hungUp.abort(new Error("the client hung up")));
    const ms = timeoutOf(request.originalUrl);
    const limit = { ms, signal: hungUp.signal, error: () => new Error(`no complete answer within ${ms} ms`) };
    const { answer, contentType, bytes } = await withTimeLimit(limit, (signal) =>
      ask(game, request, Buffer.isBuffer(body) ? body : Buffer.alloc(0), signal),
    );
    for (const [name, value] of Object.entries(answer.headers)) {
      if (name.startsWith("x-bridge-") && value !== undefined) response.setHeader(name, value);
    }
    sendBytes(response, answer.statusCode ?? 502, contentType, bytes);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new HttpError(502, `The game at ${game.origin} does not answer: ${reason}`);
  }
}

/** Leaves out the client's headers: some bridges refuse an Origin, and none reads chunked bodies. */
async function ask(game: URL, { method, originalUrl }: Request, body: Buffer, signal: AbortSignal) {
  const headers: OutgoingHttpHeaders =
    method === "POST" ? { "Content-Type": "application/json", "Content-Length": body.length } : {};
  const path = game.pathname.replace(/\/$/, "") + originalUrl;
  const send = game.protocol === "https:" ? httpsRequest : httpRequest;
  const outgoing = send(game, { method, path, headers, signal, agent: false });
  const connecting = setTimeout(
    () => outgoing.destroy(new Error(`no connection within ${CONNECT_TIMEOUT_MS} ms`)),
    CONNECT_TIMEOUT_MS,
  );
  outgoing.on("socket", (socket) => socket.on("connect", () => clearTimeout(connecting)));
  const answer = await responseTo(outgoing.end(body)).finally(() => clearTimeout(connecting));
  const contentType = answer.headers["content-type"] ?? "application/octet-stream";
  if (HTML.test(contentType)) {
    answer.destroy();
    throw new Error("the response is a web page, so this is not a bridge; check CITY_GAME_URL");
  }
  return { answer, contentType, bytes: await buffer(answer) };
}

function timeoutOf(url: string): number {
  const path = url.split("?", 1)[0] as string;
  if (path === "/health") return HEALTH_TIMEOUT_MS;
  if (path === "/capture") return CAPTURE_TIMEOUT_MS;
  return COMPOSITE.test(path) ? COMPOSITE_TIMEOUT_MS : ANSWER_TIMEOUT_MS;
}
