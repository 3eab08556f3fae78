/** Streams the changes of all tasks, so that pages need not poll lists. */
import type { Response } from "express";
import { eventText, setEventStreamHeaders, startHeartbeat } from "../../http/event-stream.js";
import type { ChangeEvent } from "../queue/task-events.js";
import type { TaskProgress } from "../song/progress.js";
import type { Tasks } from "../tasks.js";
import { callerOf, type Route } from "./route.js";
import { HEARTBEAT_MS, RETRY_MS } from "./task-events.js";

/** Minimum time between two writes to a client. Changes of a task within this time are sent once. */
const GATHER_MS = 100;

const route: Route =
  ({ authenticator, service }) =>
  (request, response) => {
    authenticator.authorize(request, request.query.ai_token);
    const { signal } = callerOf(request, response);
    setEventStreamHeaders(response);
    if (request.method === "HEAD") response.end();
    else stream(response, service.tasks, signal);
  };

export const changeEventsEndpoint = {
  summary: "Stream the changes of all tasks",
  answer: {
    media: "text/event-stream",
    description:
      "`ready`: {}; first event, read the lists after it. `task`: the Task, which was queued, requeued, changed or has ended. `progress`: task_id, progress (0 to 1), stage, text, preview_seconds. `removed`: task_id. Missed events are not repeated: read the lists again after a reconnect, with If-None-Match.",
  },
  takesKeyInQuery: true,
  route,
};

/** Writes changes to the response. A slow client gets only the latest state of each task. */
function stream(response: Response, tasks: Tasks, signal: AbortSignal): void {
  /** Changed tasks; null: its row is to be read, else only its progress has changed. */
  const changes = new Map<string, TaskProgress | null>();
  let isFlushing = false;
  const flush = async () => {
    if (isFlushing || response.writableEnded || response.writableNeedDrain) return;
    isFlushing = true;
    const taken = [...changes];
    changes.clear();
    for (const [id, progress] of taken) {
      write(response, progress === null ? await rowEvent(id, tasks) : progressEvent(id, progress));
    }
    isFlushing = false;
    if (changes.size > 0) schedule();
  };
  let timer: NodeJS.Timeout | undefined;
  const schedule = () => {
    timer ??= setTimeout(() => {
      timer = undefined;
      // The client reconnects and reads the lists.
      flush().catch(() => response.destroy());
    }, GATHER_MS);
  };
  tasks.watch((id, progress) => {
    if (progress === null || changes.get(id) !== null) changes.set(id, progress);
    schedule();
  }, signal);
  signal.addEventListener("abort", () => clearTimeout(timer));
  response.on("drain", schedule);
  startHeartbeat(response, ": alive\n\n", HEARTBEAT_MS);
  response.write(`retry: ${RETRY_MS}\n\n`);
  write(response, { event: "ready", data: {} });
}

function progressEvent(id: string, progress: TaskProgress): ChangeEvent {
  const { value, stage, text, previewSeconds } = progress;
  const data = { task_id: id, progress: value, stage, text, preview_seconds: previewSeconds };
  return { event: "progress", data };
}

async function rowEvent(id: string, tasks: Tasks): Promise<ChangeEvent> {
  const row = await tasks.row(id);
  if (row === undefined) return { event: "removed", data: { task_id: id } };
  return { event: "task", data: row };
}

function write(response: Response, { event, data }: ChangeEvent): void {
  response.write(eventText(JSON.stringify(data), { event }));
}
