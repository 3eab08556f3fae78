import type { Response } from "express";
import { eventText, setEventStreamHeaders, startHeartbeat } from "../../http/event-stream.js";
import { LAST_EVENT_ID, type TaskEventLog } from "../queue/task-events.js";
import { callerOf, type Route } from "./route.js";

/** Interval of keep-alive comments, for proxies that close idle streams. */
export const HEARTBEAT_MS = 5_000;
/** Reconnect delay of browsers. */
export const RETRY_MS = 1_000;

/**
 * Streams task events until the task has ended. On reconnect, `Last-Event-ID` replays missed events. If the client
 * already has the last event, the response is 204, which stops browsers from reconnecting.
 */
const route: Route =
  ({ authenticator, service }) =>
  async (request, response) => {
    authenticator.authorize(request, request.query.ai_token);
    const { signal } = callerOf(request, response);
    const lastEventId = request.get("Last-Event-ID") ?? "";
    const { log, number } = await service.tasks.follow(String(request.params.id), lastEventId);
    if (log.hasEnded && lastEventId === LAST_EVENT_ID) {
      response.status(204).end();
      return;
    }
    setEventStreamHeaders(response);
    if (request.method === "HEAD") response.end();
    else stream(response, log, number, signal);
  };

export const taskEventsEndpoint = {
  summary: "Stream the events of a task",
  headers: { "Last-Event-ID": "Id of the last received event." },
  answer: {
    media: "text/event-stream",
    description:
      "Starts with the current state, or after the event Last-Event-ID. `queued` and `position`: task_id, position (1 is the next to start). `stage`: task_id, stage. `progress`: task_id, progress (0 to 1), stage, text, preview_seconds (available length of the preview). `done` or `failed`: the Task; the stream ends.",
  },
  errors: [404],
  takesKeyInQuery: true,
  route,
};

/** Writes events to the response. A slow client skips obsolete events, because the log drops them. */
function stream(response: Response, log: TaskEventLog, lastNumber: number, signal: AbortSignal): void {
  let sentNumber = lastNumber;
  let isScheduled = false;
  const flush = () => {
    isScheduled = false;
    if (response.writableEnded || response.writableNeedDrain) return;
    for (const { number, event } of log.after(sentNumber)) {
      response.write(eventText(JSON.stringify(event.data), event));
      sentNumber = number;
    }
    if (log.hasEnded) response.end();
  };
  const schedule = () => {
    // Write all events of one event loop turn together.
    if (!isScheduled) setImmediate(flush);
    isScheduled = true;
  };
  response.write(`retry: ${RETRY_MS}\n\n`);
  response.on("drain", flush);
  log.onEvent(schedule, signal);
  startHeartbeat(response, ": alive\n\n", HEARTBEAT_MS);
  flush();
}
