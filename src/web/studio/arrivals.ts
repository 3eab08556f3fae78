/** Says that a new song has arrived that the user does not see. */
import { useEffect } from "preact/hooks";
import { t } from "./language.js";
import { watchTasks } from "./live.js";
import { songName } from "./song.js";

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
    return watchTasks(({ event, data }) => {
      if (event === "progress") unfinished.add(data.task_id);
      if (event !== "task" || data.temporary) return;
      if (data.end_time === null) unfinished.add(data.task_id);
      else if (unfinished.delete(data.task_id) && data.songs.length > 0) {
        // The list shows the song in the next frame.
        setTimeout(() => {
          const isSeen = !document.hidden && isInView(data.task_id);
          const name = songName(data);
          if (!isSeen) announceInTitle(name);
          if (!isSeen) onHidden(t("New song: {song}", { song: name }));
        }, 100);
      }
    });
  }, []);
}

/** Scrolls to the newest song. */
export function showNewest(): void {
  document.getElementById("library-title")?.scrollIntoView({ block: "start" });
}
