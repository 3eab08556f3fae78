/** A song of the library: cover, waveform, versions and actions. */
import { useState } from "preact/hooks";
import type { Parameters, Song, Task } from "./api.js";
import { SongPlan } from "./codes.js";
import { CoverPicture, WaveformBars } from "./cover.js";
import { Description } from "./description.js";
import { Icon, RoundButton } from "./icons.js";
import { t } from "./language.js";
import { controls, usePlayback } from "./playback.js";
import { expiryText, useRetention } from "./retention.js";
import { SaveSettings } from "./settings-file.js";
import { Download, LyricsFile, songName, songUrl, type Track, versionLetter } from "./song.js";
import { recordingTasks } from "./source.js";
import { formatTime, timeAgo } from "./words.js";

export interface SongActions {
  again: (task: Task) => void;
  vary: (task: Task) => void;
  reuse: (task: Task) => void;
  fill: (parameters: Parameters, done: string) => void;
  edit: (task: Task, song: Song) => void;
  remove: (task: Task) => void;
  describe: (task: Task, song: Song) => void;
  useDescription: (values: Parameters) => void;
  /** Copies a link to the song. */
  share: (task: Task) => void;
  /** Uses the song as the reference recording of the next song. */
  reference: (task: Task, song: Song) => void;
  change: (task: Task, change: { title?: string; favorite?: boolean }) => void;
}

interface CardProps {
  task: Task;
  track: Track | null;
  onPlay: (track: Track) => void;
  on: SongActions;
}

export function Card({ task, track, onPlay, on }: CardProps) {
  const [isRenaming, setRenaming] = useState(false);
  const [isOpen, setOpen] = useState(false);
  const name = songName(task);
  const isCurrent = track?.task.task_id === task.task_id;
  const { isPlaying, failure } = usePlayback(isCurrent);
  const isHeard = isCurrent && isPlaying;
  const song = task.songs[isCurrent ? (track?.index ?? 0) : 0];
  return (
    <div class={isCurrent ? "card current" : "card"}>
      <button
        type="button"
        class="play cover"
        disabled={song === undefined}
        aria-label={isHeard ? t("Pause {name}", { name }) : t("Play {name}", { name })}
        onClick={() => (isCurrent ? controls.toggle() : onPlay({ task, index: 0 }))}
      >
        {song && <CoverPicture song={song} />}
        <Icon name={isHeard ? "pause" : "play"} />
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
          <span class="name" dir="auto" title={task.prompt}>
            {name}
          </span>
        )}
        <span class="faint facts">
          {isCurrent && failure !== "" && <span class="failed">{t("Not loaded")} · </span>}
          <Badges task={task} />
          {song && factsOf(song)} · {timeAgo(task.create_time)}
        </span>
      </div>
      {song && <Position name={name} task={task} song={song} isCurrent={isCurrent} onPlay={onPlay} />}
      <div class="row">
        {task.songs.length > 1 &&
          task.songs.map((version, index) => (
            <button
              type="button"
              class="tag"
              key={version.file}
              aria-pressed={isCurrent && track?.index === index}
              aria-label={t("Play version {letter} of {song}", { letter: versionLetter(index), song: name })}
              onClick={() => onPlay({ task, index })}
            >
              {versionLetter(index)}
            </button>
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
      {isOpen && <More task={task} on={on} onRename={() => setRenaming(true)} />}
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
  const kind = recordingTasks()[task.task_type]?.name;
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
        dir="auto"
        aria-label={t("Title")}
        maxLength={200}
        defaultValue={task.title}
        ref={(input) => input?.focus()}
        onKeyDown={(event) => event.key === "Escape" && onDone()}
      />
      <button type="submit">{t("Save")}</button>
    </form>
  );
}

interface MoreProps extends Pick<CardProps, "task" | "on"> {
  onRename: () => void;
}

function More({ task, on, onRename }: MoreProps) {
  const [isSure, setSure] = useState(false);
  const retention = useRetention(task.task_id, task.favorite ? 1 : 2);
  const expiry = retention === null ? "" : expiryText(task, retention);
  const { songs } = task;
  return (
    <div class="details">
      <div class="row">
        <button type="button" onClick={() => on.again(task)} title={t("The same settings and seeds")}>
          {t("Make again")}
        </button>
        <button type="button" onClick={() => on.vary(task)} title={t("The same settings, new seeds")}>
          {t("Vary")}
        </button>
        <button type="button" onClick={() => on.reuse(task)} title={t("Fills the form with the settings")}>
          {t("Use settings")}
        </button>
        <SaveSettings task={task} />
        <a
          class="button"
          href={songUrl(task)}
          onClick={(event) => {
            // Pages without TLS cannot use the clipboard, so the browser opens the link instead.
            if (navigator.clipboard === undefined) return;
            event.preventDefault();
            on.share(task);
          }}
        >
          {t("Copy link")}
        </a>
        <button type="button" onClick={onRename}>
          {t("Rename")}
        </button>
        <button
          type="button"
          class={isSure ? "danger" : ""}
          onClick={() => (isSure ? on.remove(task) : setSure(true))}
        >
          {isSure ? t("Delete for good") : t("Delete")}
        </button>
      </div>
      {songs.map((song, index) => (
        <div class="row" key={song.file}>
          {songs.length > 1 && <strong>{versionLetter(index)}</strong>}
          <button type="button" onClick={() => on.edit(task, song)}>
            {t("Edit")}
          </button>
          <button
            type="button"
            onClick={() => on.reference(task, song)}
            title={t("The next song sounds like this one")}
          >
            {t("Use as reference")}
          </button>
          <button
            type="button"
            onClick={() => on.describe(task, song)}
            title={t("Tempo, key, language and style")}
          >
            {t("Describe")}
          </button>
          <Download name={songName(task)} song={song} />
          {song.lrc && <LyricsFile name={songName(task)} lrc={song.lrc} />}
          <span class="faint">
            {t("seed {seed}", { seed: String(song.seed) })} · {song.dit_model}
          </span>
          <SongPlan
            task={task}
            index={index}
            onReuse={(parameters) =>
              on.fill(parameters, t("The codes and their settings are in the form now."))
            }
          />
        </div>
      ))}
      {expiry !== "" && <p class="faint stay">{expiry}</p>}
      {task.warnings.map((warning) => (
        <p class="faint" key={warning}>
          {warning}
        </p>
      ))}
      {songs[0] && songs[0].caption !== "" && <p dir="auto">{songs[0].caption}</p>}
      {songs[0] && songs[0].lyrics !== "" && <pre dir="auto">{songs[0].lyrics}</pre>}
      <details>
        <summary class="faint">{t("Settings")}</summary>
        <pre>{JSON.stringify(task.parameters, null, 2)}</pre>
      </details>
    </div>
  );
}

function factsOf({ metas }: Song): string {
  const { duration, bpm, keyscale } = metas;
  return [duration && formatTime(duration), bpm && `${bpm} BPM`, keyscale].filter(Boolean).join(" · ");
}
