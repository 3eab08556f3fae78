/** Live state of running tasks and of the library. */
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { CarillonError, type TaskEvent, type TaskFilter } from "../../client/index.js";
import { carillon, type Task } from "./api.js";

/** Polling interval. Polling detects changes made by other programs. */
const POLL_MS = 5000;
export const PAGE_SIZE = 40;
/** Number of songs per request: the page in view, and the pages before and after it. */
const READ_SONGS = 3 * PAGE_SIZE;
const FAILURES_SHOWN = 5;
/** Maximum number of simultaneous event streams. Browsers open only six connections to a server. */
const STREAMS = 2;
const RECONNECT_MS = 3000;

type Connection = "connecting" | "online" | "offline" | "locked";

interface SongList {
  name: string;
  ids: readonly string[];
}

export interface LibraryQuery {
  search: string;
  favorite: boolean;
  order: "newest" | "oldest" | "title";
  /** If set, only these songs are shown, in this order: a playlist, or the song of a link. */
  list: SongList | null;
  /** Index of the first song to request. */
  offset: number;
}

export interface LiveData {
  connection: Connection;
  /** Running and waiting tasks in queue order. */
  active: Task[];
  failed: Task[];
  /** Matching songs from index `offset` on; `total` is the number of all matching songs. */
  library: Task[];
  offset: number;
  total: number;
  refresh: () => Promise<void>;
}

/** Broadcast channel on which each tab announces its changes to all tabs. */
const CHANNEL = "carillon";
const tabs = new BroadcastChannel(CHANNEL);

export function notifyTabs(): void {
  tabs.postMessage("changed");
}

/** Calls `onChange` after changes in any tab. @returns a function that unsubscribes */
export function watchChanges(onChange: () => void): () => void {
  const channel = new BroadcastChannel(CHANNEL);
  channel.addEventListener("message", onChange);
  return () => channel.close();
}

export function useLive(query: LibraryQuery): LiveData {
  const [connection, setConnection] = useState<Connection>("connecting");
  const [active, setActive] = useState<Task[]>([]);
  const [failed, setFailed] = useState<Task[]>([]);
  const [library, setLibrary] = useState<Task[]>([]);
  const [total, setTotal] = useState(0);
  const [offset, setOffset] = useState(0);
  const latest = useRef(0);

  const refresh = useCallback(async () => {
    const turn = ++latest.current;
    const filter: TaskFilter = {
      state: "succeeded",
      offset: query.offset,
      limit: READ_SONGS,
      sort: query.order,
    };
    if (query.list !== null) filter.task_ids = query.list.ids.join(",");
    if (query.search !== "") filter.search = query.search;
    if (query.favorite) filter.favorite = true;
    try {
      const [running, queued, failures, songs] = await Promise.all([
        carillon.list({ state: "running", limit: 20 }),
        carillon.list({ state: "queued", limit: 100 }),
        carillon.list({ state: "failed", limit: FAILURES_SHOWN }),
        carillon.list(filter),
      ]);
      if (turn !== latest.current) return;
      setActive([...running.tasks.toReversed(), ...queued.tasks.toReversed()]);
      setFailed(failures.tasks);
      setLibrary(query.list === null ? songs.tasks : ordered(songs.tasks, query.list.ids));
      setTotal(songs.total);
      setOffset(query.offset);
      setConnection("online");
    } catch (error) {
      if (turn !== latest.current) return;
      const isLocked = error instanceof CarillonError && error.status === 401;
      setConnection(isLocked ? "locked" : "offline");
      if (!isLocked) return;
      setActive([]);
      setFailed([]);
      setLibrary([]);
      setTotal(0);
    }
  }, [query]);

  useEffect(() => {
    void refresh();
  }, [refresh]);
  useEffect(() => {
    const look = () => document.hidden || void refresh();
    const timer = connection === "locked" ? undefined : setInterval(look, POLL_MS);
    document.addEventListener("visibilitychange", look);
    tabs.addEventListener("message", look);
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", look);
      tabs.removeEventListener("message", look);
    };
  }, [refresh, connection]);

  const followed = active.slice(0, STREAMS).map((task) => task.task_id);
  useFollow(followed, refresh, (id, change) =>
    setActive((tasks) => tasks.map((task) => (task.task_id === id ? { ...task, ...change } : task))),
  );

  return { connection, active, failed, library, offset, total, refresh };
}

function ordered(tasks: readonly Task[], ids: readonly string[]): Task[] {
  return tasks.toSorted((one, other) => ids.indexOf(one.task_id) - ids.indexOf(other.task_id));
}

interface EventHandlers {
  refresh: () => Promise<void>;
  change: (id: string, change: Partial<Task>) => void;
}

/** Streams the events of tasks. */
function useFollow(
  ids: readonly string[],
  refresh: EventHandlers["refresh"],
  change: EventHandlers["change"],
): void {
  const handlers = useRef({ refresh, change });
  handlers.current = { refresh, change };
  useEffect(() => {
    const stop = new AbortController();
    for (const id of ids) void follow(id, (event) => take(id, event, handlers.current), stop.signal);
    return () => stop.abort();
  }, [ids.join(" ")]);
}

/** Calls `onEvent` for each event of a task until its last one. Reconnects after a restart of the server. */
async function follow(id: string, onEvent: (event: TaskEvent) => void, signal: AbortSignal): Promise<void> {
  let lastEventId = "";
  while (!signal.aborted) {
    try {
      for await (const event of carillon.events(id, { signal, lastEventId })) {
        lastEventId = event.id;
        onEvent(event);
        if (event.event === "done" || event.event === "failed") return;
      }
    } catch (error) {
      if (error instanceof CarillonError && error.status < 500) return;
    }
    await new Promise((resolve) => setTimeout(resolve, RECONNECT_MS));
  }
}

function take(id: string, { event, data }: TaskEvent, { refresh, change }: EventHandlers): void {
  if (event === "position") change(id, { queue_position: data.position });
  else if (event === "progress") {
    const { progress, stage, text, preview_seconds } = data;
    change(id, { progress, stage, progress_text: text, preview_seconds, state: "running" });
  } else {
    if (event === "stage") change(id, { stage: data.stage, state: "running", start_time: Date.now() / 1000 });
    if (event !== "queued") void refresh();
  }
}
