/** The songs of the library that were read so far: those in view and around it, by their position. */
import type { Task } from "./api.js";
import { readList } from "./reading.js";
import { Store } from "./store.js";

/** Number of songs in the first answer, which decides when the page is usable, and in later ones. */
const FIRST_SONGS = 20;
const MORE_SONGS = 60;
/** Songs are read this far before and behind those in view, once the user scrolls. */
const AROUND = 20;
/** The service lists at most this many tasks at once. */
const MAX_LISTED = 200;

interface SongList {
  name: string;
  ids: readonly string[];
  /** Whether this is not the order of the playlist. */
  isShuffled?: boolean;
}

export interface LibraryQuery {
  search: string;
  favorite: boolean;
  order: "newest" | "oldest" | "title";
  /** If set, only these songs are shown, in this order: a playlist, or the song of a link. */
  list: SongList | null;
}

export interface Songs {
  query: LibraryQuery;
  /** Songs by position; undefined: not read yet. Its length is the number of all songs that match. */
  rows: readonly (Task | undefined)[];
  /** Whether the songs of this query were read at least once. */
  isRead: boolean;
}

export const songs = new Store<Songs>({ query: firstQuery(), rows: [], isRead: false });

/** Positions of the first and the last song in view. */
let first = 0;
let last = 0;
/** Songs that were read last. They are read again as long as they contain the view, because the answer is then 304. */
let part = { offset: 0, limit: FIRST_SONGS };

/** The whole library, or the song named in the page's URL. */
function firstQuery(): LibraryQuery {
  const id = sharedSong();
  const list = id === null ? null : { name: "", ids: [id] };
  return { search: "", favorite: false, order: "newest", list };
}

/** Id of the song in the page's URL; null without one. */
export function sharedSong(): string | null {
  return new URLSearchParams(location.search).get("song");
}

export function setQuery(query: LibraryQuery): void {
  first = 0;
  part = { offset: 0, limit: FIRST_SONGS };
  songs.set({ ...songs.value, query, isRead: false });
}

/** @returns whether songs in view or around it must be read */
export function setView(firstInView: number, lastInView: number): boolean {
  first = firstInView;
  last = lastInView;
  return missing() !== null;
}

export function clearSongs(): void {
  songs.set({ ...songs.value, rows: [], isRead: false });
}

/** Position of the first unread song that is in view or around it; null if there is none. */
function missing(): number | null {
  const { rows } = songs.value;
  const end = Math.min(rows.length, last + 1 + (first === 0 ? 0 : AROUND));
  for (let index = Math.max(0, first - AROUND); index < end; index++)
    if (rows[index] === undefined) return index;
  return null;
}

/** Reads the songs around the view again, and forgets all others, which may have changed. */
export async function rereadSongs(): Promise<void> {
  const { query, rows, isRead } = songs.value;
  if (first < part.offset || Math.min(last, rows.length - 1) >= part.offset + part.limit)
    part = { offset: Math.max(0, first - AROUND), limit: MORE_SONGS };
  const { offset, limit } = part;
  const { page, tasks } = await read(query, offset, limit);
  if (songs.value.query !== query) return;
  const known = rows.filter((row) => row !== undefined).length;
  const isSame = page.total === rows.length && tasks.every((task, i) => rows[offset + i] === task);
  if (isRead && isSame && known === tasks.length) return;
  songs.set({ query, rows: placed([], page.total, offset, tasks), isRead: true });
}

/** Reads songs in view that were not read yet. @returns false if there is none */
export async function readMissing(): Promise<boolean> {
  const { query, isRead } = songs.value;
  const offset = missing();
  if (offset === null || !isRead) return false;
  const { page, tasks } = await read(query, offset, MORE_SONGS);
  if (songs.value.query !== query) return true;
  const { rows } = songs.value;
  // Another number of songs means that positions have moved.
  const known = rows.length === page.total ? rows : [];
  songs.set({ query, rows: placed(known, page.total, offset, tasks), isRead: true });
  // A page without songs cannot fill the gap, so do not ask for it again.
  return tasks.length > 0;
}

/** Song at a position, read if necessary; undefined if there is none. @throws the errors of `fetch` */
export async function songAt(index: number): Promise<Task | undefined> {
  const { query, rows } = songs.value;
  if (index < 0 || index >= rows.length) return undefined;
  return rows[index] ?? (await read(query, index, 1)).tasks[0];
}

/** The songs from one position to before another, read if necessary. @throws the errors of `fetch` */
export async function songsIn(from: number, to: number): Promise<Task[]> {
  const { query, rows } = songs.value;
  const wanted = rows.slice(from, to);
  if (wanted.every((row) => row !== undefined)) return wanted;
  const all: Task[] = [];
  for (let offset = from; offset < Math.min(to, rows.length); offset += MAX_LISTED)
    all.push(...(await read(query, offset, Math.min(MAX_LISTED, to - offset))).tasks);
  return all;
}

async function read(query: LibraryQuery, offset: number, limit: number) {
  const { search, favorite, order, list } = query;
  const page = await readList({
    state: "succeeded",
    analysis: false,
    temporary: false,
    sort: order,
    ...(list === null ? { offset, limit } : { limit: MAX_LISTED, task_ids: list.ids.join(",") }),
    ...(search !== "" && { search }),
    ...(favorite && { favorite }),
  });
  const tasks = list === null ? page.tasks : ordered(page.tasks, list.ids);
  return { page, tasks };
}

function ordered(tasks: readonly Task[], ids: readonly string[]): Task[] {
  return tasks.toSorted((one, other) => ids.indexOf(one.task_id) - ids.indexOf(other.task_id));
}

function placed(
  rows: readonly (Task | undefined)[],
  total: number,
  offset: number,
  tasks: readonly Task[],
): (Task | undefined)[] {
  const all: (Task | undefined)[] = Array.from({ length: total }, (_, index) => rows[index]);
  for (const [index, task] of tasks.entries()) if (offset + index < total) all[offset + index] = task;
  return all;
}

/** Shows a song that was made or changed. @returns false if only a new read can tell where it belongs */
export function takeSong(task: Task): boolean {
  const { query, rows, isRead } = songs.value;
  if (!isRead || task.songs.length === 0 || task.temporary) return true;
  const { search, favorite, order, list } = query;
  const index = rows.findIndex((row) => row?.task_id === task.task_id);
  if (index >= 0) {
    const before = rows[index];
    const moves = order === "title" && before?.title !== task.title;
    if (moves || search !== "" || (favorite && !task.favorite)) return false;
    songs.set({ query, rows: rows.with(index, task), isRead });
    return true;
  }
  if (list !== null) return !list.ids.includes(task.task_id);
  // Later songs are unread, not absent.
  const isKnown = order === "newest" && search === "" && !favorite;
  const newest = rows[0];
  if (!isKnown || (newest === undefined && rows.length > 0)) return false;
  if (newest !== undefined && newest.create_time > task.create_time) return false;
  songs.set({ query, rows: [task, ...rows], isRead });
  return true;
}

/** Hides a song that was removed. @returns false if it was not among the songs that were read */
export function dropSong(id: string): boolean {
  const { query, rows, isRead } = songs.value;
  const index = rows.findIndex((row) => row?.task_id === id);
  if (index < 0) return rows.every((row) => row !== undefined);
  songs.set({ query, rows: rows.toSpliced(index, 1), isRead });
  return true;
}
