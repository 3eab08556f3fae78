import type { Response } from "express";
import { LAST_EVENT_ID, type TaskLog } from "../queue/task-events.js";
import { callerOf, type Route } from "./route.js";

/** How often a stream without events shows that it lives, for proxies that cut what is silent. */
const HEARTBEAT_MS = 5_000;
/** What a browser waits before it comes back. */
const RETRY_MS = 1_000;

/**
 * Events until the task has ended. A client that comes back with `Last-Event-ID` gets what it missed; with that of the
 * last event 204, upon which browsers come no more.
 */
const route: Route =
  ({ authenticator, service }) =>
  async (request, response) => {
    authenticator.authorize(request, request.query.ai_token);
    const { signal } = callerOf(request, response);
    const lastEventId = request.get("Last-Event-ID") ?? "";
    const { log, number } = await service.follow(String(request.params.id), lastEventId);
    if (log.hasEnded && lastEventId === LAST_EVENT_ID) {
      response.status(204).end();
      return;
    }
    response.set({
      "Content-Type": "text/event-stream",
      "Cache-Control": "no-cache, no-transform",
      "X-Accel-Buffering": "no",
    });
    if (request.method === "HEAD") response.end();
    else stream(response, log, number, signal);
  };

export const taskEvents = {
  summary: "What happens to a task, as it happens",
  headers: { "Last-Event-ID": "id of the last event that arrived" },
  answer: {
    media: "text/event-stream",
    description:
      "Events queued, position, stage, progress, and at last done or failed with the Task. Last-Event-ID goes on behind that event; a finished task answers at once.",
  },
  errors: [404],
  takesKeyInQuery: true,
  route,
};

/** A client that reads slowly gets what is then the latest: the log drops what is superseded. */
function stream(response: Response, log: TaskLog, lastNumber: number, signal: AbortSignal): void {
  let told = lastNumber;
  let isScheduled = false;
  const flush = () => {
    isScheduled = false;
    if (response.writableEnded || response.writableNeedDrain) return;
    for (const { number, event } of log.after(told)) {
      response.write(`id: ${event.id}\nevent: ${event.event}\ndata: ${JSON.stringify(event.data)}\n\n`);
      told = number;
    }
    if (log.hasEnded) response.end();
  };
  const schedule = () => {
    // Several events of one turn go in one piece.
    if (!isScheduled) setImmediate(flush);
    isScheduled = true;
  };
  response.write(`retry: ${RETRY_MS}\n\n`);
  response.on("drain", flush);
  log.onEvent(schedule, signal);
  const heartbeat = setInterval(() => {
    if (!response.writableNeedDrain) response.write(": alive\n\n");
  }, HEARTBEAT_MS);
  response.on("close", () => clearInterval(heartbeat));
  flush();
}
