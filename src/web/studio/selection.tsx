/** Actions on several songs at once. */
import { useState } from "preact/hooks";
import { carillon, type Task } from "./api.js";
import { t } from "./language.js";
import type { Attempt } from "./part.js";
import { addToPlaylist, MAX_PLAYLIST_SONGS, usePlaylists } from "./playlists.js";
import { songName, versionLetter } from "./song.js";

interface SelectionProps {
  chosen: readonly Task[];
  onEnd: () => void;
  attempt: Attempt;
}

export function Selection({ chosen, onEnd, attempt }: SelectionProps) {
  const [isSure, setSure] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const each = (change: (task: Task) => Promise<unknown>, done: string) =>
    attempt(async () => {
      for (const task of chosen) await change(task);
      onEnd();
    }, done);
  const save = () =>
    attempt(async () => {
      setBusy(true);
      try {
        await saveZip(chosen);
      } finally {
        setBusy(false);
      }
    });
  const isAllStarred = chosen.length > 0 && chosen.every(({ favorite }) => favorite);
  return (
    <div class="row selection" role="toolbar" aria-label={t("Selected songs")}>
      <span role="status">{t("{count} selected", { count: chosen.length })}</span>
      <button type="button" disabled={chosen.length === 0 || isBusy} onClick={() => void save()}>
        {isBusy ? t("Packing…") : t("Download zip")}
      </button>
      <button
        type="button"
        disabled={chosen.length === 0}
        onClick={() =>
          void each(
            ({ task_id }) => carillon.mark(task_id, { favorite: !isAllStarred }),
            isAllStarred ? t("Removed from favourites.") : t("Added to favourites."),
          )
        }
      >
        {isAllStarred ? t("Unstar") : t("Star")}
      </button>
      <AddToPlaylist
        isReady={chosen.length > 0}
        onAdd={(name) =>
          void attempt(
            async () => {
              const isWhole = addToPlaylist(
                name,
                chosen.map(({ task_id }) => task_id),
              );
              if (!isWhole)
                throw new Error(
                  t("A playlist can hold at most {count} songs.", { count: MAX_PLAYLIST_SONGS }),
                );
              onEnd();
            },
            t("Added to {name}.", { name }),
          )
        }
      />
      <button
        type="button"
        class={isSure ? "danger" : ""}
        disabled={chosen.length === 0}
        onClick={() =>
          isSure
            ? void each(({ task_id, state }) => carillon.delete(task_id, state), t("Removed."))
            : setSure(true)
        }
      >
        {isSure ? t("Delete {count} for good", { count: chosen.length }) : t("Delete selected")}
      </button>
      <button type="button" class="plain end" onClick={onEnd}>
        {t("Done")}
      </button>
    </div>
  );
}

function AddToPlaylist({ isReady, onAdd }: { isReady: boolean; onAdd: (name: string) => void }) {
  const [name, setName] = useState("");
  const playlists = usePlaylists();
  return (
    <form
      class="row"
      onSubmit={(event) => {
        event.preventDefault();
        onAdd(name.trim());
      }}
    >
      <input
        dir="auto"
        list="playlists"
        maxLength={60}
        aria-label={t("Playlist")}
        placeholder={t("Playlist")}
        value={name}
        onInput={(event) => setName(event.currentTarget.value)}
      />
      <datalist id="playlists">
        {Object.keys(playlists).map((each) => (
          <option key={each} value={each} />
        ))}
      </datalist>
      <button type="submit" disabled={!isReady || name.trim() === ""}>
        {t("Add to playlist")}
      </button>
    </form>
  );
}

/** Packs the songs into a zip in the browser, uncompressed, because audio files hardly shrink. */
async function saveZip(tasks: readonly Task[]): Promise<void> {
  const { downloadZip } = await import("client-zip");
  const names = new Map<string, number>();
  async function* files() {
    for (const task of tasks) {
      for (const [index, song] of task.songs.entries()) {
        const version = task.songs.length > 1 ? ` - ${versionLetter(index)}` : "";
        const base = `${songName(task).replace(/[\\/:*?"<>|]/g, "_")}${version}`;
        const count = (names.get(base) ?? 0) + 1;
        names.set(base, count);
        const extension = /\.(\w+)(?:$|&)/.exec(song.file)?.[1] ?? "mp3";
        const response = await fetch(song.file);
        if (!response.ok) throw new Error(t("{song} cannot be downloaded.", { song: songName(task) }));
        yield { name: `${base}${count > 1 ? ` (${count})` : ""}.${extension}`, input: response };
      }
    }
  }
  const url = URL.createObjectURL(await downloadZip(files()).blob());
  const link = document.createElement("a");
  link.href = url;
  link.download = "Carillon.zip";
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
