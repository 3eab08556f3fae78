/** What the queue, the library and the player say of a song. */
import { useEffect, useState } from "preact/hooks";
import { ApiError, call, type Song, type Task, withKey } from "./api.js";
import type { Live } from "./live.js";

export interface Track {
  task: Task;
  /** Which of the task's songs. */
  index: number;
}

/**
 * The song that plays, as the service has it now: it may be renamed or removed elsewhere.
 * @param onGone is told of a song that was removed while it was in the player
 */
export function useTrack(
  { library, connection }: Live,
  onGone: (task: Task) => void,
): [Track | null, (track: Track | null) => void] {
  const [track, setTrack] = useState<Track | null>(null);
  const id = track?.task.task_id;
  useEffect(() => {
    if (track === null || connection !== "online") return;
    let isOver = false;
    const take = (task: Task) => setTrack((now) => now && { ...now, task });
    const known = library.find((task) => task.task_id === id);
    if (known !== undefined) {
      take(known);
      return;
    }
    call<Task>("GET", `/v1/tasks/${id}`).then(
      (task) => isOver || take(task),
      (error: unknown) => {
        // All else shows in the state of the connection.
        if (isOver || !(error instanceof ApiError) || error.status !== 404) return;
        setTrack(null);
        onGone(track.task);
      },
    );
    return () => {
      isOver = true;
    };
  }, [library, id, connection]);
  return [track, setTrack];
}

export function nameOf(task: Task): string {
  return (
    task.title || task.prompt || task.lyrics.split("\n").find((line) => /^[^[]/.test(line)) || task.task_type
  );
}

const FORMATS = ["mp3", "flac", "wav", "wav32", "opus", "aac"];

/** The song as it is stored, or converted. */
export function Download({ name, song }: { name: string; song: Song }) {
  const stored = /\.(\w+)(?:$|&)/.exec(song.file)?.[1] ?? "mp3";
  const [format, setFormat] = useState("");
  const extension = (format || stored).replace("wav32", "wav");
  return (
    <span class="row download">
      <a
        class="button"
        href={withKey(format === "" ? song.file : `${song.file}&format=${format}`)}
        download={`${name.slice(0, 60)}.${extension}`}
      >
        Download
      </a>
      <select aria-label="Format" value={format} onChange={(event) => setFormat(event.currentTarget.value)}>
        <option value="">{stored}</option>
        {FORMATS.filter((other) => other !== stored).map((other) => (
          <option key={other}>{other}</option>
        ))}
      </select>
    </span>
  );
}

/** The line that is sung at a moment of a song whose times are known, else "". */
export function lineAt({ lrc = "" }: Song, seconds: number): string {
  const lines = [...lrc.matchAll(/^\[(\d+):([\d.]+)\](.*)$/gm)];
  return lines.findLast(([, minutes, rest]) => 60 * Number(minutes) + Number(rest) <= seconds)?.[3] ?? "";
}

/** The times as a file that players of music read. */
export function LyricsFile({ name, lrc }: { name: string; lrc: string }) {
  return (
    <a
      class="button"
      href={`data:text/plain;charset=utf-8,${encodeURIComponent(lrc)}`}
      download={`${name.slice(0, 60)}.lrc`}
    >
      Lyrics with times
    </a>
  );
}

export function letterOf(index: number): string {
  return String.fromCharCode(65 + index);
}
