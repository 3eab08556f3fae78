/**
 * Log of the requests to the bridge, one line per request. The overlay shows the latest few lines for some seconds.
 * The console keeps many lines. GET /overlay returns overlay and console, newest line first. GET /overlay/events
 * streams new lines as server-sent events. Both endpoints work without a city, and their requests are not logged.
 */

import type { RequestHandler } from "express";
import { eventText, setEventStreamHeaders } from "../http/event-stream.js";
import { HttpError } from "../http/http-error.js";
import type { GroundPoint } from "./geometry.js";
import { sendJson, writeJson } from "./wire/answers.js";
import { shorten } from "./wire/requests.js";

const OVERLAY_LINES = 5;
const OVERLAY_LIFETIME_MS = 6000;
const CONSOLE_LINES = 120;
const CONSOLE_WIDTH = 78;
const MAX_LINE_CHARACTERS = 240;

export interface OverlayLine {
  readonly text: string;
  /** Time of the line, in milliseconds since 1970. */
  readonly shownAtMs: number;
  /** Place where the command acted. */
  readonly place?: GroundPoint;
}

export class Overlay {
  #lines: OverlayLine[] = [];
  readonly #listeners = new Set<(line: OverlayLine) => void>();

  /** @param now milliseconds since 1970 */
  constructor(private readonly now: () => number = Date.now) {}

  notify(text: string, place?: GroundPoint): void {
    const line = { text: copyOfStart(text), shownAtMs: this.now(), ...(place && { place }) };
    this.#lines = [line, ...this.#lines.slice(0, CONSOLE_LINES - 1)];
    for (const listener of this.#listeners) listener(line);
  }

  clear(): void {
    this.#lines = [];
  }

  /** Lines still shown, newest first. */
  visible(): readonly OverlayLine[] {
    const oldestMs = this.now() - OVERLAY_LIFETIME_MS;
    return this.#lines.slice(0, OVERLAY_LINES).filter(({ shownAtMs }) => shownAtMs > oldestMs);
  }

  /** The latest lines as `[HH:mm:ss] text`, newest first. */
  console(): string[] {
    return this.#lines.map(({ text, shownAtMs }) =>
      shorten(`[${localTime(shownAtMs)}] ${text}`, CONSOLE_WIDTH),
    );
  }

  /** Calls `listener` with every new line. Returns a function that unsubscribes. */
  onLine(listener: (line: OverlayLine) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}

function localTime(ms: number): string {
  const date = new Date(ms);
  return [date.getHours(), date.getMinutes(), date.getSeconds()]
    .map((part) => String(part).padStart(2, "0"))
    .join(":");
}

/** Copies the text: a slice would keep the whole request body in memory. */
function copyOfStart(text: string): string {
  return Buffer.from(shorten(text, MAX_LINE_CHARACTERS)).toString();
}

/** Maximum number of event stream readers. */
const MAX_READERS = 64;
/** A reader with more unread bytes than this is disconnected. */
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

/** @param closing signal that ends all streams */
export function streamOverlay(overlay: Overlay, closing: AbortSignal): RequestHandler {
  /** Functions that end the stream of each reader. */
  const readers = new Set<() => void>();
  closing.addEventListener("abort", () => {
    for (const end of readers) end();
  });
  return (_request, response) => {
    if (readers.size >= MAX_READERS) {
      throw new HttpError(503, `The overlay already has ${MAX_READERS} readers: try again later`);
    }
    setEventStreamHeaders(response);
    const send = (line: OverlayLine) => {
      response.write(eventText(writeJson({ ...line })));
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
