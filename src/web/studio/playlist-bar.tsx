/** Actions on the playlist that the library shows. */
import { useState } from "preact/hooks";
import type { Task } from "./api.js";
import { Icon } from "./icons.js";
import { t } from "./language.js";
import { search } from "./live.js";
import type { Attempt } from "./part.js";
import { renamePlaylist, setPlaylist } from "./playlists.js";
import type { Track } from "./song.js";
import { songs } from "./songs.js";

interface PlaylistBarProps {
  name: string;
  onPlay: (track: Track) => void;
  attempt: Attempt;
}

export function PlaylistBar({ name, onPlay, attempt }: PlaylistBarProps) {
  const [isRenaming, setRenaming] = useState(false);
  const [isSure, setSure] = useState(false);
  const { query, rows } = songs.value;
  const tasks = rows.filter((row) => row !== undefined);
  const show = (list: typeof query.list) => search({ ...query, list });
  const playFirst = ([task]: readonly Task[]) => task && onPlay({ task, index: 0 });
  const shuffle = () => {
    const order = tasks
      .map((task) => ({ task, at: Math.random() }))
      .toSorted((one, other) => one.at - other.at)
      .map(({ task }) => task);
    show({ name, ids: order.map(({ task_id }) => task_id), isShuffled: true });
    playFirst(order);
  };
  const rename = (next: string) =>
    attempt(async () => {
      setRenaming(false);
      if (next === "" || next === name) return;
      if (!renamePlaylist(name, next))
        throw new Error(t("There is a playlist {name} already.", { name: next }));
      if (query.list !== null) show({ ...query.list, name: next });
    });
  if (isRenaming) {
    return (
      <form
        class="row playlist"
        onSubmit={(event) => {
          event.preventDefault();
          void rename(String(new FormData(event.currentTarget).get("name") ?? "").trim());
        }}
      >
        <input
          name="name"
          dir="auto"
          maxLength={60}
          aria-label={t("Name of the playlist")}
          defaultValue={name}
          ref={(input) => input?.focus()}
          onKeyDown={(event) => event.key === "Escape" && setRenaming(false)}
        />
        <button type="submit">{t("Save")}</button>
      </form>
    );
  }
  return (
    <div class="row playlist" role="toolbar" aria-label={t("Playlist {name}", { name })}>
      <button type="button" disabled={tasks.length === 0} onClick={() => playFirst(tasks)}>
        <Icon name="play" />
        {t("Play all")}
      </button>
      <button type="button" disabled={tasks.length === 0} onClick={shuffle}>
        <Icon name="shuffle" />
        {t("Shuffle")}
      </button>
      <button type="button" onClick={() => setRenaming(true)}>
        <Icon name="pencil" />
        {t("Rename")}
      </button>
      <button
        type="button"
        class={isSure ? "danger end" : "plain end"}
        title={t("The songs stay in the library.")}
        onClick={() => {
          if (!isSure) {
            setSure(true);
            return;
          }
          document.getElementById("library-title")?.focus();
          setPlaylist(name, []);
          show(null);
        }}
      >
        <Icon name="trash" />
        {isSure ? t("Delete the playlist {name}", { name }) : t("Delete")}
      </button>
    </div>
  );
}
