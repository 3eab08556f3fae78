/** A song of the library: cover, waveform, versions and actions. */
import { useState } from "preact/hooks";
import type { Song, Task } from "./api.js";
import { Button, RoundButton } from "./button.js";
import { CardMenu, renameId, type SongActions } from "./card-menu.js";
import { CoverPicture, WaveformBars } from "./cover.js";
import { Description } from "./description.js";
import { Icon } from "./icons.js";
import { t } from "./language.js";
import { search } from "./live.js";
import { kindInWords, madeFrom, useOriginal } from "./originals.js";
import { controls, usePlayback } from "./playback.js";
import { recordingTasks } from "./recording-tasks.js";
import { RenameForm } from "./rename-form.js";
import { songName, songUrl, type Track, versionLetter } from "./song.js";
import { songs } from "./songs.js";
import { Store, useStore } from "./store.js";
import { formatTime, timeAgo } from "./words.js";

const AGES_MS = 15_000;

interface CardProps {
  task: Task;
  track: Track | null;
  onPlay: (track: Track) => void;
  on: SongActions;
}

export function Card({ task, track, onPlay, on }: CardProps) {
  const [isRenaming, setRenaming] = useState(false);
  const [isOpen, setOpen] = useState(false);
  // The name says how the song was made from its original.
  const original = useOriginal(task);
  const name = songName(task);
  const isCurrent = track?.task.task_id === task.task_id;
  const { isPlaying, failure } = usePlayback(isCurrent);
  const isHeard = isCurrent && isPlaying;
  const song = task.songs[isCurrent ? (track?.index ?? 0) : 0];
  return (
    <div id={`song-${task.task_id}`} class={isCurrent ? "card current" : "card"}>
      <Button
        class="play cover"
        disabled={song === undefined}
        aria-label={isHeard ? t("Pause {name}", { name }) : t("Play {name}", { name })}
        onClick={() => (isCurrent ? controls.toggle() : onPlay({ task, index: 0 }))}
      >
        {song && <CoverPicture song={song} />}
        <Icon name={isHeard ? "pause" : "play"} />
      </Button>
      <div class="about">
        {isRenaming ? (
          <RenameForm
            label={t("Title")}
            maxLength={200}
            name={task.title}
            opener={renameId(task)}
            onDone={async (title) => {
              if (title === undefined || (await on.change(task, { title }))) setRenaming(false);
            }}
          />
        ) : (
          <span class="name" dir="auto" title={task.prompt}>
            {name}
          </span>
        )}
        {original && <Origin task={task} original={original} />}
        <span class="faint facts">
          {isCurrent && failure !== "" && <span class="failed">{t("Not loaded")} · </span>}
          <Badges task={task} />
          {song && factsOf(song)} · <Age of={task} />
        </span>
      </div>
      {song && <Position name={name} task={task} song={song} isCurrent={isCurrent} onPlay={onPlay} />}
      <div class="row">
        {task.songs.length > 1 &&
          task.songs.map((version, index) => (
            <Button
              class="tag"
              key={version.file}
              aria-pressed={isCurrent && track?.index === index}
              aria-label={t("Play version {letter} of {song}", { letter: versionLetter(index), song: name })}
              onClick={() => onPlay({ task, index })}
            >
              {versionLetter(index)}
            </Button>
          ))}
        <RoundButton
          class="star"
          icon="star"
          aria-pressed={task.favorite}
          label={t("Favourite {song}", { song: name })}
          onClick={() => on.change(task, { favorite: !task.favorite })}
        />
        <RoundButton
          icon="more"
          aria-expanded={isOpen}
          label={t("More of {song}", { song: name })}
          onClick={() => setOpen(!isOpen)}
        />
      </div>
      {task.songs.map(({ file }) => (
        <Description key={file} recording={file} name={name} onUse={on.useDescription} />
      ))}
      {isOpen && (
        <CardMenu task={task} on={on} onRename={() => setRenaming(true)} onClose={() => setOpen(false)} />
      )}
    </div>
  );
}

interface PositionProps {
  name: string;
  task: Task;
  song: Song;
  isCurrent: boolean;
  onPlay: (track: Track) => void;
}

/** The waveform of a song. A click plays the song from the clicked position. */
function Position({ name, task, song, isCurrent, onPlay }: PositionProps) {
  const { seconds, length } = usePlayback(isCurrent);
  const played = isCurrent && length > 0 ? seconds / length : 0;
  const total = song.metas.duration ?? 0;
  return (
    <div
      class="outline"
      role="slider"
      tabIndex={isCurrent ? 0 : -1}
      aria-label={t("Position in {song}", { song: name })}
      aria-valuemin={0}
      aria-valuemax={Math.round(total)}
      aria-valuenow={Math.round(played * total)}
      aria-valuetext={formatTime(played * total)}
      onClick={(event) => {
        const { left, width } = event.currentTarget.getBoundingClientRect();
        const part = (event.clientX - left) / width;
        if (isCurrent) controls.seek(part);
        else onPlay({ task, index: 0, start: part });
      }}
      onKeyDown={(event) => {
        const step = { ArrowRight: 5, ArrowUp: 5, ArrowLeft: -5, ArrowDown: -5 }[event.key];
        if (step === undefined || !isCurrent || total === 0) return;
        event.preventDefault();
        event.stopPropagation();
        controls.seek(Math.min(1, Math.max(0, played + step / total)));
      }}
    >
      <WaveformBars song={song} played={played} />
    </div>
  );
}

/** Badges of songs made from a recording: task type and stems. */
function Badges({ task }: { task: Task }) {
  const kind = kindInWords(task) === "" ? recordingTasks()[task.task_type]?.name : undefined;
  const stems = task.songs.flatMap(({ track_name: stem }) => stem ?? []);
  const { track_name = "", track_classes = [] } = task.parameters;
  const named = stems.length > 0 ? stems : [track_name, track_classes].flat().filter(Boolean).map(String);
  if (kind === undefined) return null;
  return (
    <>
      <span class="badge">{kind}</span>
      {[...new Set(named)].map((stem) => (
        <span class="badge" key={stem}>
          {stem.replaceAll("_", " ")}
        </span>
      ))}{" "}
    </>
  );
}

/** Says what a variation or an edit was made from; a press shows the original. */
function Origin({ task, original }: { task: Task; original: Task }) {
  return (
    <a
      class="faint origin"
      href={songUrl(original)}
      onClick={(event) => {
        event.preventDefault();
        search({
          ...songs.value.query,
          search: "",
          favorite: false,
          list: { name: "", ids: [original.task_id] },
        });
      }}
    >
      {madeFrom(task, songName(original))}
    </a>
  );
}

/** The time by which all cards state their age, so that ages of neighbours agree. */
const clock = new Store(Date.now());
setInterval(() => clock.set(Date.now()), AGES_MS);

function Age({ of: { create_time } }: { of: Task }) {
  return <>{timeAgo(create_time, useStore(clock))}</>;
}

function factsOf({ metas }: Song): string {
  const { duration, bpm, keyscale } = metas;
  return [duration && formatTime(duration), bpm && `${bpm} BPM`, keyscale].filter(Boolean).join(" · ");
}
