/** Server-sent events. */
import type { ServerResponse } from "node:http";

/** Sets the headers of an event stream. Proxies must neither store, compress nor buffer it. */
export function setEventStreamHeaders(response: ServerResponse): void {
  response.setHeader("Content-Type", "text/event-stream");
  response.setHeader("Cache-Control", "no-cache, no-transform");
  response.setHeader("X-Accel-Buffering", "no");
}

/** Text of one event. `data` is one line. */
export function eventText(data: string, { id, event }: { id?: string; event?: string } = {}): string {
  const fields = [id && `id: ${id}`, event && `event: ${event}`, `data: ${data}`];
  return `${fields.filter(Boolean).join("\n")}\n\n`;
}

/** Writes `text` at an interval unless the client reads too slowly. Returns a function that stops it; closing the response stops it, too. */
export function startHeartbeat(response: ServerResponse, text: string, intervalMs: number): () => void {
  const timer = setInterval(() => {
    if (!response.writableNeedDrain) response.write(text);
  }, intervalMs);
  const stop = () => clearInterval(timer);
  response.on("close", stop);
  return stop;
}
