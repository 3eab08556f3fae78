/**
 * The overlay for whoever shows it. These endpoints are Carillon's own, work without a city and leave no line of their
 * own: GET /overlay is what shows now, GET /overlay/events streams every new line as a server-sent event.
 */
import type { RequestHandler } from "express";
import { BridgeError } from "./errors.js";
import type { Overlay, OverlayLine } from "./overlay.js";
import { writeJson } from "./wire/json.js";
import { sendJson } from "./wire/reply.js";

/** Pages and programs that follow the overlay at a time. */
const MAX_READERS = 64;
/** What a reader may be behind, in this process; it is cut off beyond, and finds the latest lines when it returns. */
const MAX_WAITING_BYTES = 256 * 2 ** 10;

export function showOverlay(overlay: Overlay): RequestHandler {
  return (_request, response) => {
    sendJson(response, 200, {
      ok: true,
      messages: overlay.visible().map(({ text }) => text),
      console: overlay.console(),
    });
  };
}

/** @param closing ends the streams */
export function streamOverlay(overlay: Overlay, closing: AbortSignal): RequestHandler {
  /** What ends the stream of each reader. */
  const readers = new Set<() => void>();
  closing.addEventListener("abort", () => {
    for (const end of readers) end();
  });
  return (_request, response) => {
    if (readers.size >= MAX_READERS) {
      throw new BridgeError(503, `The overlay has ${MAX_READERS} readers already: try again later`);
    }
    response.writeHead(200, { "Content-Type": "text/event-stream", "Cache-Control": "no-store" });
    const send = ({ text, shownAtMs }: OverlayLine) => {
      response.write(`data: ${writeJson({ text, shownAtMs })}\n\n`);
      if (response.writableLength > MAX_WAITING_BYTES) response.destroy();
    };
    for (const line of [...overlay.visible()].reverse()) send(line);
    const unsubscribe = overlay.onLine(send);
    const end = () => {
      unsubscribe();
      response.end();
    };
    readers.add(end);
    response.flushHeaders();
    response.on("close", () => {
      readers.delete(end);
      unsubscribe();
    });
  };
}
