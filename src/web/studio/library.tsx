/** All songs that were made, newest first. */
import { useEffect, useRef, useState } from "preact/hooks";
import type { Parameters, Song, Task } from "./api.js";
import { Plan } from "./codes.js";
import { type LibraryQuery, type Live, PAGE_SIZE } from "./live.js";
import { Download, LyricsFile, letterOf, nameOf, type Track } from "./song.js";
import { ago, clock } from "./words.js";

const EXAMPLES = [
  "slow bossa nova, nylon guitar, upright bass",
  "upbeat house, driving bass, bright synth chords",
  "music box lullaby, soft strings",
];

export interface SongActions {
  again: (task: Task) => void;
  vary: (task: Task) => void;
  reuse: (task: Task) => void;
  fill: (parameters: Parameters, done: string) => void;
  edit: (task: Task, song: Song) => void;
  remove: (task: Task) => void;
  change: (task: Task, change: { title?: string; favorite?: boolean }) => void;
}

interface LibraryProps {
  live: Live;
  query: LibraryQuery;
  onQuery: (query: LibraryQuery) => void;
  track: Track | null;
  onPlay: (track: Track) => void;
  on: SongActions;
}

export function Library({ live, query, onQuery, track, onPlay, on }: LibraryProps) {
  const { library, total, connection } = live;
  const heading = useRef<HTMLHeadingElement>(null);
  const turn = (offset: number) => {
    onQuery({ ...query, offset });
    heading.current?.scrollIntoView({ block: "start" });
  };
  const isFiltered = query.search !== "" || query.favorite;
  return (
    <section aria-labelledby="library-title">
      <div class="row head">
        <h2 id="library-title" tabIndex={-1} ref={heading}>
          Songs <span class="faint">{total > 0 ? total : ""}</span>
        </h2>
        <input
          type="search"
          aria-label="Search songs"
          placeholder="Search title, sound, lyrics"
          value={query.search}
          onInput={(event) => onQuery({ ...query, search: event.currentTarget.value, offset: 0 })}
        />
        <button
          type="button"
          aria-pressed={query.favorite}
          onClick={() => onQuery({ ...query, favorite: !query.favorite, offset: 0 })}
        >
          ★ Favourites
        </button>
      </div>
      {library.length === 0 && connection === "online" && (
        <div class="empty">
          {isFiltered ? (
            <p>Nothing fits.</p>
          ) : (
            <Beginning onChoose={(prompt) => on.fill({ prompt }, "Press Make.")} />
          )}
        </div>
      )}
      <ul class="library">
        {library.map((task) => (
          <Card key={task.task_id} task={task} track={track} onPlay={onPlay} on={on} />
        ))}
      </ul>
      {library.length < total && (
        <Pages offset={query.offset} length={library.length} total={total} onTurn={turn} />
      )}
    </section>
  );
}

/** For somebody who has made no song yet. */
function Beginning({ onChoose }: { onChoose: (prompt: string) => void }) {
  return (
    <>
      <p>No songs yet. Say what it should sound like, and press Make. Or begin with one of these:</p>
      <div class="tags">
        {EXAMPLES.map((example) => (
          <button type="button" class="tag" key={example} onClick={() => onChoose(example)}>
            {example}
          </button>
        ))}
      </div>
    </>
  );
}

interface PagesProps {
  offset: number;
  length: number;
  total: number;
  onTurn: (offset: number) => void;
}

/** Further songs take the place of those that are shown: a long list makes the page no slower. */
function Pages({ offset, length, total, onTurn }: PagesProps) {
  const end = offset + length;
  const oldest = total - 1 - ((total - 1) % PAGE_SIZE);
  const isGone = length === 0 && offset > 0;
  useEffect(() => {
    if (isGone) onTurn(oldest);
  }, [isGone]);
  return (
    <nav class="row pages" aria-label="Pages of songs">
      <button type="button" disabled={offset === 0} onClick={() => onTurn(0)}>
        Newest
      </button>
      <button type="button" disabled={offset === 0} onClick={() => onTurn(Math.max(0, offset - PAGE_SIZE))}>
        Newer
      </button>
      <span class="faint">
        {offset + 1} to {end} of {total}
      </span>
      <button type="button" disabled={end >= total} onClick={() => onTurn(end)}>
        Older
      </button>
      <button type="button" disabled={end >= total} onClick={() => onTurn(oldest)}>
        Oldest
      </button>
    </nav>
  );
}

interface CardProps {
  task: Task;
  track: Track | null;
  onPlay: (track: Track) => void;
  on: SongActions;
}

function Card({ task, track, onPlay, on }: CardProps) {
  const [isRenaming, setRenaming] = useState(false);
  const [isOpen, setOpen] = useState(false);
  const name = nameOf(task);
  const isCurrent = track?.task.task_id === task.task_id;
  const [first] = task.songs;
  return (
    <li class={isCurrent ? "card current" : "card"}>
      <button
        type="button"
        class="play"
        disabled={first === undefined}
        aria-label={`Play ${name}`}
        onClick={() => onPlay({ task, index: 0 })}
      >
        ▶
      </button>
      <div class="about">
        {isRenaming ? (
          <Rename
            task={task}
            onDone={(title) => {
              setRenaming(false);
              if (title !== undefined) on.change(task, { title });
            }}
          />
        ) : (
          <span class="name">{name}</span>
        )}
        <span class="faint facts">
          {first ? factsOf(task, first) : "analysis"} · {ago(task.create_time)}
        </span>
      </div>
      <div class="row">
        {task.songs.length > 1 &&
          task.songs.map((song, index) => (
            <button
              type="button"
              class="tag"
              key={song.file}
              aria-pressed={isCurrent && track?.index === index}
              aria-label={`Play version ${letterOf(index)} of ${name}`}
              onClick={() => onPlay({ task, index })}
            >
              {letterOf(index)}
            </button>
          ))}
        <button
          type="button"
          class="plain star"
          aria-pressed={task.favorite}
          aria-label={`Favourite ${name}`}
          onClick={() => on.change(task, { favorite: !task.favorite })}
        >
          {task.favorite ? "★" : "☆"}
        </button>
        <button
          type="button"
          class="plain"
          aria-expanded={isOpen}
          aria-label={`More of ${name}`}
          onClick={() => setOpen(!isOpen)}
        >
          ⋯
        </button>
      </div>
      {isOpen && <More task={task} on={on} onRename={() => setRenaming(true)} />}
    </li>
  );
}

function Rename({ task, onDone }: { task: Task; onDone: (title?: string) => void }) {
  return (
    <form
      class="row"
      onSubmit={(event) => {
        event.preventDefault();
        onDone(String(new FormData(event.currentTarget).get("title") ?? "").trim());
      }}
    >
      <input
        name="title"
        aria-label="Title"
        maxLength={200}
        defaultValue={task.title}
        ref={(input) => input?.focus()}
        onKeyDown={(event) => event.key === "Escape" && onDone()}
      />
      <button type="submit">Save</button>
    </form>
  );
}

function More({ task, on, onRename }: { task: Task; on: SongActions; onRename: () => void }) {
  const [isSure, setSure] = useState(false);
  const { songs } = task;
  return (
    <div class="details">
      <div class="row">
        <button type="button" onClick={() => on.again(task)} title="The same settings and seeds">
          Make again
        </button>
        <button type="button" onClick={() => on.vary(task)} title="The same settings, new seeds">
          Vary
        </button>
        <button type="button" onClick={() => on.reuse(task)} title="Fills the form with the settings">
          Use settings
        </button>
        <button type="button" onClick={onRename}>
          Rename
        </button>
        <button
          type="button"
          class={isSure ? "danger" : ""}
          onClick={() => (isSure ? on.remove(task) : setSure(true))}
        >
          {isSure ? "Delete for good" : "Delete"}
        </button>
      </div>
      {songs.map((song, index) => (
        <div class="row" key={song.file}>
          {songs.length > 1 && <strong>{letterOf(index)}</strong>}
          <button type="button" onClick={() => on.edit(task, song)}>
            Edit
          </button>
          <Download name={nameOf(task)} song={song} />
          {song.lrc && <LyricsFile name={nameOf(task)} lrc={song.lrc} />}
          <span class="faint">
            seed {song.seed} · {song.dit_model}
          </span>
          <Plan
            task={task}
            index={index}
            onReuse={(parameters) => on.fill(parameters, "The codes and their settings are here.")}
          />
        </div>
      ))}
      {task.warnings.map((warning) => (
        <p class="faint" key={warning}>
          {warning}
        </p>
      ))}
      {songs[0] && songs[0].caption !== "" && <p>{songs[0].caption}</p>}
      {songs[0] && songs[0].lyrics !== "" && <pre>{songs[0].lyrics}</pre>}
      {task.analysis && <pre>{JSON.stringify(task.analysis, null, 2)}</pre>}
      <details>
        <summary class="faint">Settings</summary>
        <pre>{JSON.stringify(task.parameters, null, 2)}</pre>
      </details>
    </div>
  );
}

function factsOf(task: Task, { metas }: Song): string {
  const { duration, bpm, keyscale } = metas;
  const kind = task.task_type === "text2music" ? "" : task.task_type;
  return [kind, duration && clock(duration), bpm && `${bpm} BPM`, keyscale].filter(Boolean).join(" · ");
}
