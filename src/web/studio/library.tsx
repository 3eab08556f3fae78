/** The library: all songs, newest first. */
import type { ComponentChildren } from "preact";
import { useMemo, useRef } from "preact/hooks";
import type { Task } from "./api.js";
import { Button } from "./button.js";
import { Card } from "./card.js";
import type { SongActions } from "./card-menu.js";
import { SelectField } from "./fields.js";
import { language, t } from "./language.js";
import { lazy } from "./lazy.js";
import { queue, search, view } from "./live.js";
import { PlaylistOrdering } from "./ordering.js";
import type { Attempt } from "./part.js";
import { PlaylistBar } from "./playlist-bar.js";
import { setPlaylist, usePlaylists } from "./playlists.js";
import { retentionText, useRetention } from "./retention.js";
import { ChoiceBox, Selection, useChoice } from "./selection.js";
import type { Track } from "./song.js";
import { type LibraryQuery, type Songs, songs } from "./songs.js";
import { useStore } from "./store.js";
import { VirtualList } from "./virtual-list.js";

const FirstMinute = lazy(() => import("./lazy-parts.js").then((module) => module.FirstMinute));

/** Outside of the component: a closure that outlives a render would keep all cards of that render, and those before. */
const keysOf = (rows: Songs["rows"]) => (index: number) => rows[index]?.task_id ?? `row ${index}`;

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
  const choice = useChoice(attempt);
  const { chosen } = choice;
  const isMaking = useStore(queue).active.length > 0;
  const retention = useRetention(null, total);
  const playlists = usePlaylists();
  const { list } = query;
  const isPlaylist = list !== null && Object.hasOwn(playlists, list.name);
  const isFiltered = query.search !== "" || query.favorite || list !== null;
  const find = (change: Partial<LibraryQuery>) => search({ ...query, ...change });
  const keyOf = useMemo(() => keysOf(rows), [rows]);
  // New rows of the list, and scrolling, do not render the cards again.
  const drawn = useMemo(
    () => new WeakMap<Task, ComponentChildren>(),
    // The position of a song matters only to a selection.
    [track, onPlay, on, list, playlists, chosen, chosen !== null && rows, language()],
  );
  const row = (index: number) => {
    const task = rows[index];
    if (task === undefined) return <div class="card waiting" />;
    if (!drawn.has(task)) drawn.set(task, draw(task, index));
    return drawn.get(task);
  };
  const draw = (task: Task, index: number) => {
    const card = <Card task={task} track={track} onPlay={onPlay} on={on} />;
    return (
      <>
        {chosen !== null && <ChoiceBox task={task} index={index} choice={choice} />}
        {list !== null && isPlaylist && !list.isShuffled ? (
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
        <Button aria-pressed={query.favorite} onClick={() => find({ favorite: !query.favorite })}>
          ★ {t("Favourites")}
        </Button>
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
        {total > 0 && chosen === null && <Button onClick={choice.begin}>{t("Select")}</Button>}
      </div>
      {isPlaylist && <PlaylistBar key={list.name} name={list.name} onPlay={onPlay} attempt={attempt} />}
      {chosen !== null && (
        <Selection
          chosen={[...chosen.values()]}
          attempt={attempt}
          onAll={choice.chooseAll}
          onEnd={() => {
            choice.end();
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
              isMaking={isMaking}
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
