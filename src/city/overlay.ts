/**
 * What the bridge shows beside the city: one line per request that reaches it. The overlay holds the latest few for
 * some seconds, newest first; the console keeps many, with the local time. Its endpoints are Carillon's own, work
 * without a city and leave no line of their own: GET /overlay is what shows now, GET /overlay/events streams every new
 * line as a server-sent event.
 */
import type { RequestHandler } from "express";
import { BridgeError, sendJson, writeJson } from "./wire/answers.js";

const OVERLAY_LINES = 5;
const OVERLAY_LIFETIME_MS = 6000;
const CONSOLE_LINES = 120;
const CONSOLE_WIDTH = 78;
const MAX_LINE_CHARACTERS = 240;

export interface OverlayLine {
  readonly text: string;
  /** Milliseconds since 1970. */
  readonly shownAtMs: number;
}

export class Overlay {
  #lines: OverlayLine[] = [];
  readonly #now: () => number;
  readonly #listeners = new Set<(line: OverlayLine) => void>();

  /** @param now milliseconds since 1970 */
  constructor(now: () => number = Date.now) {
    this.#now = now;
  }

  notify(text: string): void {
    const line = { text: copyOfStart(text), shownAtMs: this.#now() };
    this.#lines = [line, ...this.#lines.slice(0, CONSOLE_LINES - 1)];
    for (const listener of this.#listeners) listener(line);
  }

  clear(): void {
    this.#lines = [];
  }

  /** The lines that still show, newest first. */
  visible(): readonly OverlayLine[] {
    const oldestMs = this.#now() - OVERLAY_LIFETIME_MS;
    return this.#lines.slice(0, OVERLAY_LINES).filter(({ shownAtMs }) => shownAtMs > oldestMs);
  }

  /** The latest lines as `[HH:mm:ss] text`, newest first. */
  console(): string[] {
    return this.#lines.map(({ text, shownAtMs }) => cut(`[${localTime(shownAtMs)}] ${text}`, CONSOLE_WIDTH));
  }

  /** Calls back with every new line. Returns the unsubscriber. */
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

/** A piece of a string keeps the whole of it in memory, and a line may come from a request of megabytes: hence a copy. */
function copyOfStart(text: string): string {
  return Buffer.from(cut(text, MAX_LINE_CHARACTERS)).toString();
}

function cut(text: string, maxCharacters: number): string {
  return text.length > maxCharacters ? `${text.slice(0, maxCharacters - 3)}...` : text;
}

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
