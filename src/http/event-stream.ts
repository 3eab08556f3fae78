/** Server-sent events. */
import type { ServerResponse } from "node:http";

/** Sets the headers of an event stream. The headers forbid proxies to store, compress or buffer the stream. */
export function setEventStreamHeaders(response: ServerResponse): void {
  response.setHeader("Content-Type", "text/event-stream");
  response.setHeader("Cache-Control", "no-cache, no-transform");
  response.setHeader("X-Accel-Buffering", "no");
}

/** Text of one event. `data` must not contain line breaks. */
export function eventText(data: string, { id, event }: { id?: string; event?: string } = {}): string {
  const fields = [id && `id: ${id}`, event && `event: ${event}`, `data: ${data}`];
  return `${fields.filter(Boolean).join("\n")}\n\n`;
}

/**
 * Writes `text` every `intervalMs` until the response closes. Writes nothing while the client reads too slowly.
 * @returns a function that stops the heartbeat
 */
export function startHeartbeat(response: ServerResponse, text: string, intervalMs: number): () => void {
  const timer = setInterval(() => {
    if (!response.writableNeedDrain) response.write(text);
  }, intervalMs);
  const stop = () => clearInterval(timer);
  response.on("close", stop);
  return stop;
}
