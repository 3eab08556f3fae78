/** Says that a new song has arrived that the user does not see. */
import { useEffect } from "preact/hooks";
import type { Task } from "./api.js";
import { t } from "./language.js";
import { watchTasks } from "./live.js";
import { songName } from "./song.js";
import { songs } from "./songs.js";

const TITLE = document.title;

/** Names a new song in the title of the window until the user looks at the page. */
function announceInTitle(name: string): void {
  document.title = `♪ ${name} · ${TITLE}`;
  const events = ["visibilitychange", "focus", "pointerdown", "keydown"];
  const onLook = () => {
    if (document.hidden) return;
    document.title = TITLE;
    for (const event of events) removeEventListener(event, onLook, true);
  };
  for (const event of events) addEventListener(event, onLook, true);
}

function isInView(id: string): boolean {
  const card = document.getElementById(`song-${id}`)?.getBoundingClientRect();
  return card !== undefined && card.height > 0 && card.top >= 0 && card.bottom <= innerHeight;
}

/** Calls `onHidden` for songs that were made since the page was opened and that are not in view. */
export function useArrivals(onHidden: (words: string) => void): void {
  useEffect(() => {
    const unfinished = new Set<string>();
    let newestEnd = 0;
    return watchTasks(({ event, data }) => {
      if (event === "progress") unfinished.add(data.task_id);
      if (event !== "task" || data.temporary) return;
      if (data.end_time === null) {
        unfinished.add(data.task_id);
        return;
      }
      // The page may hear of a short song only when it has ended. A song that was renamed ended before others.
      const others = songs.value.rows.filter((song) => song?.task_id !== data.task_id);
      newestEnd = Math.max(newestEnd, ...others.map((song) => song?.end_time ?? 0));
      const isNew = unfinished.delete(data.task_id) || data.end_time > newestEnd;
      newestEnd = Math.max(newestEnd, data.end_time);
      // The list shows the song in the next frame.
      if (isNew && data.songs.length > 0) setTimeout(() => announceHidden(data, onHidden), 100);
    });
  }, []);
}

function announceHidden(task: Task, onHidden: (words: string) => void): void {
  if (!document.hidden && isInView(task.task_id)) return;
  const name = songName(task);
  announceInTitle(name);
  onHidden(t("New song: {song}", { song: name }));
}

/** Scrolls to the newest song. */
export function showNewest(): void {
  document.getElementById("library-title")?.scrollIntoView({ block: "start" });
}
