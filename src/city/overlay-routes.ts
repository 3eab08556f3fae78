/**
 * The overlay for whoever shows it. These endpoints are Carillon's own, work without a city and leave no line of their
 * own: GET /overlay is what shows now, GET /overlay/events streams every new line as a server-sent event.
 */
import type { RequestHandler } from "express";
import type { Overlay, OverlayLine } from "./overlay.js";
import { writeJson } from "./wire/json.js";
import { sendJson } from "./wire/reply.js";

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
  return (_request, response) => {
    response.writeHead(200, { "Content-Type": "text/event-stream", "Cache-Control": "no-store" });
    const send = ({ text, shownAtMs }: OverlayLine) => {
      response.write(`data: ${writeJson({ text, shownAtMs })}\n\n`);
    };
    for (const line of [...overlay.visible()].reverse()) send(line);
    const unsubscribe = overlay.onLine(send);
    const end = () => response.end();
    closing.addEventListener("abort", end);
    response.flushHeaders();
    response.on("close", () => {
      unsubscribe();
      closing.removeEventListener("abort", end);
    });
  };
}
