/** The library: all songs, newest first. */
import { useCallback, useRef, useState } from "preact/hooks";
import type { Task } from "./api.js";
import { Card, type SongActions } from "./card.js";
import { SelectField } from "./fields.js";
import { t } from "./language.js";
import { lazy } from "./lazy.js";
import { search, view } from "./live.js";
import { PlaylistOrdering } from "./ordering.js";
import type { Attempt } from "./part.js";
import { setPlaylist, usePlaylists } from "./playlists.js";
import { retentionText, useRetention } from "./retention.js";
import { Selection } from "./selection.js";
import { songName, type Track } from "./song.js";
import { type LibraryQuery, songs } from "./songs.js";
import { useStore } from "./store.js";
import { VirtualList } from "./virtual-list.js";

const FirstMinute = lazy(() => import("./first-minute.js").then((module) => module.FirstMinute));

interface LibraryProps {
  track: Track | null;
  onPlay: (track: Track) => void;
  on: SongActions;
  attempt: Attempt;
}

export function Library({ track, onPlay, on, attempt }: LibraryProps) {
  const { query, rows, isRead } = useStore(songs);
  const total = rows.length;
  const heading = useRef<HTMLHeadingElement>(null);
  /** Selected songs; null while not selecting. */
  const [chosen, setChosen] = useState<ReadonlyMap<string, Task> | null>(null);
  const retention = useRetention(null, total);
  const playlists = usePlaylists();
  const { list } = query;
  const isFiltered = query.search !== "" || query.favorite || list !== null;
  const find = (change: Partial<LibraryQuery>) => search({ ...query, ...change });
  const keyOf = useCallback((index: number) => rows[index]?.task_id ?? `row ${index}`, [rows]);
  const row = (index: number) => {
    const task = rows[index];
    if (task === undefined) return <div class="card waiting" />;
    const card = <Card task={task} track={track} onPlay={onPlay} on={on} />;
    return (
      <>
        {chosen !== null && <Choice task={task} chosen={chosen} onChoose={setChosen} />}
        {list !== null && list.name in playlists ? (
          <PlaylistOrdering
            task={task}
            ids={list.ids}
            onOrder={(ids) => {
              setPlaylist(list.name, ids);
              find({ list: ids.length > 0 ? { name: list.name, ids } : null });
            }}
          >
            {card}
          </PlaylistOrdering>
        ) : (
          card
        )}
      </>
    );
  };
  return (
    <section aria-labelledby="library-title">
      <div class="row head">
        <h2 id="library-title" tabIndex={-1} ref={heading}>
          {t("Songs")} <span class="faint">{total > 0 ? total : ""}</span>
        </h2>
        {retention && total > 0 && <p class="faint retention">{retentionText(retention)}</p>}
        <input
          type="search"
          dir="auto"
          aria-label={t("Search songs")}
          placeholder={t("Search title, sound, lyrics")}
          value={query.search}
          onInput={(event) => find({ search: event.currentTarget.value })}
        />
        <button
          type="button"
          aria-pressed={query.favorite}
          onClick={() => find({ favorite: !query.favorite })}
        >
          ★ {t("Favourites")}
        </button>
        {list === null ? (
          <SelectField
            label={t("Sort")}
            name="order"
            placeholder=""
            options={[
              ["newest", t("Newest first")],
              ["oldest", t("Oldest first")],
              ["title", t("By title")],
            ]}
            values={{ ...query }}
            set={({ order }) => find({ order: order as LibraryQuery["order"] })}
          />
        ) : null}
        {(list !== null || Object.keys(playlists).length > 0) && (
          <SelectField
            label={t("Playlist")}
            name="list"
            placeholder={t("All songs")}
            options={Object.keys(playlists)}
            values={{ list: list === null ? "" : list.name || t("Shared song") }}
            set={({ list: name }) => {
              const ids = playlists[String(name)];
              find({ list: ids === undefined ? null : { name: String(name), ids } });
            }}
          />
        )}
        {total > 0 && chosen === null && (
          <button type="button" onClick={() => setChosen(new Map())}>
            {t("Select")}
          </button>
        )}
      </div>
      {chosen !== null && (
        <Selection
          chosen={[...chosen.values()]}
          attempt={attempt}
          onEnd={() => {
            setChosen(null);
            heading.current?.focus();
          }}
        />
      )}
      {total === 0 && isRead && (
        <div class="empty">
          {isFiltered ? (
            <p>{t("No songs match.")}</p>
          ) : (
            <FirstMinute
              track={track}
              onPlay={onPlay}
              onDescribe={(prompt) => on.fill({ prompt }, t("The radio's description is in the form."))}
            />
          )}
        </div>
      )}
      {total > 0 && <VirtualList count={total} keyOf={keyOf} row={row} onView={view} />}
    </section>
  );
}

interface ChoiceProps {
  task: Task;
  chosen: ReadonlyMap<string, Task>;
  onChoose: (chosen: ReadonlyMap<string, Task>) => void;
}

function Choice({ task, chosen, onChoose }: ChoiceProps) {
  return (
    <input
      type="checkbox"
      aria-label={t("Select {song}", { song: songName(task) })}
      checked={chosen.has(task.task_id)}
      onChange={(event) => {
        const others = [...chosen].filter(([id]) => id !== task.task_id);
        onChoose(new Map(event.currentTarget.checked ? [...others, [task.task_id, task]] : others));
      }}
    />
  );
}
