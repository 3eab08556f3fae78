/** Actions on the playlist that the library shows. */
import { useState } from "preact/hooks";
import type { Task } from "./api.js";
import { Button, DeleteButton } from "./button.js";
import { t } from "./language.js";
import { search } from "./live.js";
import type { Attempt } from "./part.js";
import { renamePlaylist, setPlaylist } from "./playlists.js";
import { RenameForm } from "./rename-form.js";
import type { Track } from "./song.js";
import { songs } from "./songs.js";

/** Id of the button that renames the playlist. */
const RENAME = "rename-playlist";

interface PlaylistBarProps {
  name: string;
  onPlay: (track: Track) => void;
  attempt: Attempt;
}

export function PlaylistBar({ name, onPlay, attempt }: PlaylistBarProps) {
  const [isRenaming, setRenaming] = useState(false);
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
      const isChanged = next !== "" && next !== name;
      if (isChanged && !renamePlaylist(name, next))
        throw new Error(t("There is a playlist {name} already.", { name: next }));
      setRenaming(false);
      if (isChanged && query.list !== null) show({ ...query.list, name: next });
    });
  if (isRenaming) {
    return (
      <RenameForm
        class="row playlist"
        label={t("Name of the playlist")}
        maxLength={60}
        name={name}
        opener={RENAME}
        onDone={(next = name) => void rename(next)}
      />
    );
  }
  return (
    <div class="row playlist" role="toolbar" aria-label={t("Playlist {name}", { name })}>
      <Button icon="play" disabled={tasks.length === 0} onClick={() => playFirst(tasks)}>
        {t("Play all")}
      </Button>
      <Button icon="shuffle" disabled={tasks.length === 0} onClick={shuffle}>
        {t("Shuffle")}
      </Button>
      <Button id={RENAME} icon="pencil" onClick={() => setRenaming(true)}>
        {t("Rename")}
      </Button>
      <DeleteButton
        class="plain end"
        icon="trash"
        sure={t("Delete the playlist {name}", { name })}
        title={t("The songs stay in the library.")}
        onDelete={() => {
          document.getElementById("library-title")?.focus();
          setPlaylist(name, []);
          show(null);
        }}
      />
    </div>
  );
}
