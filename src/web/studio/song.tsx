/** What the queue, the library and the player say of a song. */
import { type Song, type Task, withKey } from "./api.js";

export interface Track {
  task: Task;
  /** Of the task's songs. */
  index: number;
}

export function nameOf(task: Task): string {
  return (
    task.title || task.prompt || task.lyrics.split("\n").find((line) => /^[^[]/.test(line)) || task.task_type
  );
}

export function Download({ name, song }: { name: string; song: Song }) {
  const extension = /\.(\w+)(?:$|&)/.exec(song.file)?.[1] ?? "mp3";
  return (
    <a class="button" href={withKey(song.file)} download={`${name.slice(0, 60)}.${extension}`}>
      Download
    </a>
  );
}

export function letterOf(index: number): string {
  return String.fromCharCode(65 + index);
}
