/** Keeps tasks and songs of the page up to date: reads lists, and follows the server's stream of changes. */
import { CarillonError, type ChangeEvent, type TaskPage } from "../../client/index.js";
import { carillon, type Task } from "./api.js";
import { BackOff, readList } from "./reading.js";
import {
  clearSongs,
  dropSong,
  type LibraryQuery,
  readMissing,
  rereadSongs,
  setQuery,
  setView,
  takeSong,
} from "./songs.js";
import { Store } from "./store.js";

/** Polling interval while the stream does not reach the page, for example because a proxy holds it back. */
const POLL_MS = 15_000;
const MAX_SHOWN = { running: 20, queued: 100, failed: 5 };

export type Connection = "connecting" | "online" | "offline" | "locked";

export interface Queue {
  /** Running and waiting tasks in queue order. */
  active: readonly Task[];
  failed: readonly Task[];
}

export const connection = new Store<Connection>("connecting");
export const queue = new Store<Queue>({ active: [], failed: [] });

/** Tabs announce their changes to models, adapters and keys here. Changes of tasks come from the server. */
const CHANNEL = "carillon";
const tabs = new BroadcastChannel(CHANNEL);
const HIDDEN = "hidden";
const CHANGED = "changed";

export function notifyTabs(): void {
  tabs.postMessage(CHANGED);
}

/** Calls `onChange` after changes in any tab. @returns a function that unsubscribes */
export function watchChanges(onChange: () => void): () => void {
  const channel = new BroadcastChannel(CHANNEL);
  channel.addEventListener("message", ({ data }) => data === CHANGED && onChange());
  return () => channel.close();
}

const reconnects = new Set<() => void>();

/** Calls `onReconnect` whenever the server is reached again, because it may have restarted. */
export function watchReconnects(onReconnect: () => void): void {
  reconnects.add(onReconnect);
}

const watchers = new Set<(event: ChangeEvent) => void>();

/** Calls `onEvent` for each change of a task on the server. @returns a function that unsubscribes */
export function watchTasks(onEvent: (event: ChangeEvent) => void): () => void {
  watchers.add(onEvent);
  return () => void watchers.delete(onEvent);
}

type Progress = Extract<ChangeEvent, { event: "progress" }>["data"];
type List = "queue" | "songs" | "view";
/** Lists to read next. One round of requests runs at a time, however slow the server is. */
const wanted = new Set<List>();
/** Tasks of radios, whose players show their progress. */
const temporary = new Set<string>();
const retries = new BackOff();
let round: Promise<void> | null = null;

/** Reads lists as soon as the requests in progress are answered. Resolves when they were read or could not be read. */
export function request(...lists: List[]): Promise<void> {
  for (const list of lists) wanted.add(list);
  round ??= readWanted().finally(() => {
    round = null;
  });
  retries.wake();
  return round;
}

/** Reads the lists again that an action of this tab or a change of the key may have changed. */
export function refresh(): Promise<void> {
  if (connection.value === "locked") connection.set("connecting");
  streamRetries.wake();
  return request("queue", "songs");
}

/** Shows other songs. The last ones stay until they are read. */
export function search(query: LibraryQuery): void {
  setQuery(query);
  void request("songs");
}

/** Shows the songs at these positions. */
export function view(first: number, last: number): void {
  if (setView(first, last)) void request("view");
}

async function readWanted(): Promise<void> {
  while (wanted.size > 0 && connection.value !== "locked") {
    const lists = [...wanted];
    wanted.clear();
    try {
      await Promise.all(lists.map((list) => READERS[list]()));
      const wasOffline = connection.value === "offline";
      connection.set("online");
      if (wasOffline) for (const onReconnect of reconnects) onReconnect();
      retries.reset();
    } catch (error) {
      if (isRefused(error)) {
        lock();
        return;
      }
      // The last lists stay in view.
      connection.set("offline");
      for (const list of lists) wanted.add(list);
      void retries.wait().then(() => request());
      return;
    }
  }
}

const READERS: Record<List, () => Promise<unknown>> = {
  queue: readQueue,
  songs: rereadSongs,
  async view() {
    if (await readMissing()) wanted.add("view");
  },
};

async function readQueue(): Promise<void> {
  const [running, queued, failed] = await Promise.all(
    (["running", "queued", "failed"] as const).map((state) => readList({ state, limit: MAX_SHOWN[state] })),
  );
  const listed = (page: TaskPage | undefined) => {
    for (const task of page?.tasks ?? []) if (task.temporary) temporary.add(task.task_id);
    return page?.tasks.filter((task) => !task.temporary) ?? [];
  };
  queue.set({
    active: [...listed(running).toReversed(), ...listed(queued).toReversed()],
    failed: listed(failed),
  });
}

function isRefused(error: unknown): boolean {
  return error instanceof CarillonError && error.status === 401;
}

function lock(): void {
  wanted.clear();
  stream.abort();
  connection.set("locked");
  queue.set({ active: [], failed: [] });
  clearSongs();
}

const streamRetries = new BackOff();
let stream = new AbortController();
let isStreaming = false;
let hasStreamed = false;
/** Whether another tab was hidden after this one. Browsers open only six connections, so only one hidden tab streams. */
let isResting = false;

document.addEventListener("visibilitychange", () => {
  isResting = false;
  if (document.hidden) tabs.postMessage(HIDDEN);
});
tabs.addEventListener("message", ({ data }) => {
  // The other tab may have forgotten the key.
  if (data === CHANGED) void request("queue");
  if (data !== HIDDEN || !document.hidden) return;
  isResting = true;
  stream.abort();
});

/** Keeps the page up to date for as long as it is open. */
export async function startLive(): Promise<void> {
  void request("queue", "songs");
  setInterval(() => {
    if (!isStreaming && !document.hidden) void request("queue", "songs");
  }, POLL_MS);
  for (;;) {
    if (connection.value !== "locked" && !isResting) await follow();
    await streamRetries.wait();
  }
}

/** Takes changes from the stream until it ends. */
async function follow(): Promise<void> {
  stream = new AbortController();
  const { signal } = stream;
  try {
    for await (const event of carillon.changes({ signal })) {
      streamRetries.reset();
      take(event);
    }
  } catch (error) {
    if (isRefused(error)) lock();
  }
  isStreaming = false;
  // The server may be gone.
  if (!signal.aborted) void request("queue", "songs");
}

function take(event: ChangeEvent): void {
  switch (event.event) {
    case "ready":
      isStreaming = true;
      if (hasStreamed) for (const onReconnect of reconnects) onReconnect();
      hasStreamed = true;
      // Changes since the last read were not streamed.
      void request("queue", "songs");
      break;
    case "progress":
      takeProgress(event.data);
      break;
    case "task":
      takeTask(event.data);
      break;
    case "removed":
      drop(event.data.task_id);
      break;
  }
  for (const watcher of watchers) watcher(event);
}

function takeProgress({ task_id: id, progress, stage, text, preview_seconds }: Progress): void {
  const { active, failed } = queue.value;
  const task = active.find(({ task_id }) => task_id === id);
  if (task === undefined) {
    if (active.length < MAX_SHOWN.running && !temporary.has(id)) void request("queue");
    return;
  }
  const state = "running";
  const change = { progress, stage, progress_text: text, preview_seconds, state } as const;
  const start_time = task.start_time ?? Date.now() / 1000;
  queue.set({
    active: active.map((other) => (other === task ? { ...task, ...change, start_time } : other)),
    failed,
  });
  // The places of the others have changed.
  if (task.state === "queued") void request("queue");
}

function takeTask(task: Task): void {
  const { active, failed } = queue.value;
  const others = active.filter(({ task_id }) => task_id !== task.task_id);
  const isOver = task.state === "succeeded" || task.state === "failed";
  const wasActive = others.length < active.length;
  if (isOver && wasActive) queue.set({ active: others, failed });
  if (!isOver || wasActive || task.state === "failed") void request("queue");
  if (task.state === "succeeded" && !takeSong(task)) void request("songs");
}

function drop(id: string): void {
  const { active, failed } = queue.value;
  const others = (tasks: readonly Task[]) => tasks.filter(({ task_id }) => task_id !== id);
  queue.set({ active: others(active), failed: others(failed) });
  if (!dropSong(id)) void request("songs");
}
