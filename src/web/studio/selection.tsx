/** Actions on several songs at once. */
import { useEffect, useRef, useState } from "preact/hooks";
import { CarillonError } from "../../client/index.js";
import { carillon, type Task } from "./api.js";
import { Button, DeleteButton } from "./button.js";
import { t } from "./language.js";
import { watchTasks } from "./live.js";
import type { Attempt } from "./part.js";
import { addToPlaylist, MAX_PLAYLIST_SONGS, usePlaylists } from "./playlists.js";
import { songName, versionLetter } from "./song.js";
import { songs, songsIn } from "./songs.js";
import { useStore } from "./store.js";

interface Choice {
  /** Selected songs by id; null while not selecting. */
  chosen: ReadonlyMap<string, Task> | null;
  begin: () => void;
  end: () => void;
  /** Selects all songs that the library shows. */
  chooseAll: () => void;
  /** @param isRange whether the songs from the last one to this one are selected too */
  choose: (task: Task, index: number, isChosen: boolean, isRange: boolean) => void;
}

export function useChoice(attempt: Attempt): Choice {
  const [chosen, setChosen] = useState<ReadonlyMap<string, Task> | null>(null);
  const last = useRef(0);
  const add = (tasks: readonly Task[]) =>
    setChosen((now) => new Map([...(now ?? []), ...tasks.map((task) => [task.task_id, task] as const)]));
  const addRange = (from: number, to: number) =>
    attempt(async () => {
      const { query } = songs.value;
      const tasks = await songsIn(from, to);
      if (songs.value.query === query) add(tasks);
    });
  const drop = (id: string) => setChosen((now) => now && new Map([...now].filter(([other]) => other !== id)));
  const { query, isRead } = useStore(songs);
  // Actions must not concern songs that the list no longer shows.
  useEffect(() => {
    last.current = 0;
    setChosen((now) => now && new Map());
  }, [query, isRead]);
  // Other tabs and programs change songs too.
  useEffect(
    () =>
      watchTasks(({ event, data }) => {
        const isHidden = event === "task" && songs.value.query.favorite && !data.favorite;
        if (event === "removed" || isHidden) drop(data.task_id);
        else if (event === "task")
          setChosen((now) => (now?.has(data.task_id) ? new Map([...now, [data.task_id, data]]) : now));
      }),
    [],
  );
  return {
    chosen,
    begin: () => setChosen(new Map()),
    end: () => setChosen(null),
    chooseAll: () => void addRange(0, songs.value.rows.length),
    choose: (task, index, isChosen, isRange) => {
      const [from, to] = [last.current, index].toSorted((a, b) => a - b) as [number, number];
      last.current = index;
      if (isRange && isChosen) void addRange(from, to + 1);
      else if (isChosen) add([task]);
      else drop(task.task_id);
    },
  };
}

/** Checkbox of a song. */
export function ChoiceBox({ task, index, choice }: { task: Task; index: number; choice: Choice }) {
  return (
    <input
      type="checkbox"
      aria-label={t("Select {song}", { song: songName(task) })}
      title={t("Shift selects all songs from the last one to this one")}
      checked={choice.chosen?.has(task.task_id) ?? false}
      onClick={({ currentTarget, shiftKey }) => choice.choose(task, index, currentTarget.checked, shiftKey)}
    />
  );
}

interface SelectionProps {
  chosen: readonly Task[];
  onAll: () => void;
  onEnd: () => void;
  attempt: Attempt;
}

export function Selection({ chosen, onAll, onEnd, attempt }: SelectionProps) {
  const [isBusy, setBusy] = useState(false);
  const each = (change: (task: Task) => Promise<unknown>, done: string) =>
    attempt(async () => {
      for (const task of chosen) await change(task).catch(unlessGone);
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
      <Button onClick={onAll}>{t("Select all")}</Button>
      <Button disabled={chosen.length === 0 || isBusy} onClick={() => void save()}>
        {isBusy ? t("Packing…") : t("Download zip")}
      </Button>
      <Button
        disabled={chosen.length === 0}
        onClick={() =>
          void each(
            ({ task_id }) => carillon.mark(task_id, { favorite: !isAllStarred }),
            isAllStarred ? t("Removed from favourites.") : t("Added to favourites."),
          )
        }
      >
        {isAllStarred ? t("Unstar") : t("Star")}
      </Button>
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
      <span class="row end">
        <DeleteButton
          label={t("Delete selected")}
          sure={t("Delete {count} for good", { count: chosen.length })}
          disabled={chosen.length === 0}
          onDelete={() => void each(({ task_id, state }) => carillon.delete(task_id, state), t("Removed."))}
        />
        <Button class="plain" onClick={onEnd}>
          {t("Done")}
        </Button>
      </span>
    </div>
  );
}

/** A song that was deleted meanwhile does not keep the others from being changed. */
function unlessGone(error: unknown): void {
  if (!(error instanceof CarillonError && error.status === 404)) throw error;
}

/** Value of the menu for a playlist that does not exist yet. */
const NEW = " ";

function AddToPlaylist({ isReady, onAdd }: { isReady: boolean; onAdd: (name: string) => void }) {
  const [chosen, setChosen] = useState("");
  const [name, setName] = useState("");
  const names = Object.keys(usePlaylists());
  const isNew = names.length === 0 || chosen === NEW;
  const playlist = isNew ? name.trim() : chosen;
  return (
    <form
      class="row"
      onSubmit={(event) => {
        event.preventDefault();
        onAdd(playlist);
      }}
    >
      {names.length > 0 && (
        <select
          aria-label={t("Playlist")}
          value={chosen}
          onChange={(event) => setChosen(event.currentTarget.value)}
        >
          <option value="">{t("Choose a playlist")}</option>
          {names.map((each) => (
            <option key={each}>{each}</option>
          ))}
          <option value={NEW}>{t("New playlist")}</option>
        </select>
      )}
      {isNew && (
        <input
          dir="auto"
          maxLength={60}
          aria-label={t("Name of the playlist")}
          placeholder={t("Name of the playlist")}
          value={name}
          onInput={(event) => setName(event.currentTarget.value)}
        />
      )}
      <button type="submit" disabled={!isReady || playlist === ""}>
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
