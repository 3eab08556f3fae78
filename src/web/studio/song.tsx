/** Titles, links and downloads of songs, shared by queue, library and player. */
import { useEffect, useRef, useState } from "preact/hooks";
import { CarillonError } from "../../client/index.js";
import { carillon, type Song, type Task } from "./api.js";
import { extensionOf, FORMATS } from "./formats.js";
import { Icon } from "./icons.js";
import { t } from "./language.js";
import { watchTasks } from "./live.js";
import { kindInWords } from "./originals.js";

export interface Track {
  task: Task;
  /** Index among the task's songs. */
  index: number;
  /**
   * Start position as a fraction, 0 to 1. By default, keeps the position if another version of this task is
   * playing, else 0.
   */
  start?: number;
}

/**
 * Refreshes the playing song, which may be finished, renamed or removed elsewhere.
 * @param onGone called when the song is removed while it is in the player
 */
export function useTrack(onGone: (task: Task) => void): [Track | null, (track: Track | null) => void] {
  const [track, setTrack] = useState<Track | null>(null);
  const latest = useRef({ track, onGone });
  latest.current = { track, onGone };
  useEffect(() => {
    // The user may have chosen another song meanwhile.
    const take = (task: Task) =>
      setTrack((now) => (now?.task.task_id === task.task_id ? { ...now, task } : now));
    const drop = (id: string) => {
      const { track: now, onGone: tell } = latest.current;
      // A song of the radio that expires while it is paused can still be heard.
      if (now?.task.task_id !== id || now.task.temporary) return;
      setTrack(null);
      tell(now.task);
    };
    return watchTasks(({ event, data }) => {
      const { track: now } = latest.current;
      const id = now?.task.temporary ? undefined : now?.task.task_id;
      if (event === "task") take(data);
      else if (event === "removed") drop(data.task_id);
      else if (event === "ready" && id !== undefined) {
        // Changes while the page was not connected were not streamed.
        carillon.task(id).then(take, (error: unknown) => {
          if (error instanceof CarillonError && error.status === 404) drop(id);
        });
      }
    });
  }, []);
  return [track, setTrack];
}

const MAX_NAME = 60;

/** Name of a task in the queue. */
export function taskName(task: Task): string {
  if (task.parameters.full_analysis_only !== true) return songName(task);
  return t("Description of {song}", { song: task.title || t("a recording") });
}

/** The title; if empty, the first phrase of the prompt or of the first sung line, and how the song was made. */
export function songName(task: Task): string {
  if (task.title !== "") return task.title;
  const kind = kindInWords(task);
  return kind === "" ? firstPhrase(task) : `${firstPhrase(task)} (${kind})`;
}

function firstPhrase({ prompt, lyrics, task_type }: Task): string {
  const sung = lyrics.split("\n").find((line) => /^[^[]/.test(line)) ?? "";
  const phrase = /[^\s,.;:!?\n。、，،؛؟][^,.;:!?\n。、，،؛؟]*/.exec(prompt || sung)?.[0].trim() || task_type;
  if (phrase.length <= MAX_NAME) return phrase;
  return `${phrase.slice(0, MAX_NAME).replace(/\s+\S*$/, "")}…`;
}

/** Download of the song, as stored or converted. */
export function Download({ name, song }: { name: string; song: Song }) {
  const stored = /\.(\w+)(?:$|&)/.exec(song.file)?.[1] ?? "mp3";
  const [format, setFormat] = useState("");
  const extension = extensionOf(format || stored);
  return (
    <span class="row download">
      <a
        class="button"
        href={format === "" ? song.file : `${song.file}&format=${format}`}
        download={`${name.slice(0, 60)}.${extension}`}
      >
        <Icon name="download" />
        {t("Download")}
      </a>
      <select
        aria-label={t("Format")}
        value={format}
        onChange={(event) => setFormat(event.currentTarget.value)}
      >
        <option value="">{stored}</option>
        {FORMATS.filter((other) => other !== stored).map((other) => (
          <option key={other}>{other}</option>
        ))}
      </select>
    </span>
  );
}

/** Download link of the lyric timestamps as an LRC file. */
export function LyricsFile({ name, lrc }: { name: string; lrc: string }) {
  return (
    <a
      class="button"
      href={`data:text/plain;charset=utf-8,${encodeURIComponent(lrc)}`}
      download={`${name.slice(0, 60)}.lrc`}
    >
      <Icon name="note" />
      {t("Lyrics with times")}
    </a>
  );
}

/** URL of the page of this song. */
export function songUrl({ task_id }: Task): string {
  return `/song/${task_id}`;
}

export function versionLetter(index: number): string {
  return String.fromCharCode(65 + index);
}
