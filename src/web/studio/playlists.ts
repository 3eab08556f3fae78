/** Playlists: names with ids of songs in order, kept in this browser. */
import { useEffect, useState } from "preact/hooks";
import { isTexts, keepText, readEntries } from "./kept.js";

export type Playlists = Readonly<Record<string, readonly string[]>>;

/** Maximum number of songs in a playlist. A request for a playlist contains the ids of all its songs in the URL. */
export const MAX_PLAYLIST_SONGS = 100;

const ITEM = "carillon-playlists";
const CHANGED = "carillon-playlists-changed";

const load = () => readEntries(ITEM, isTexts);

/** The playlists, updated after changes in any tab. */
export function usePlaylists(): Playlists {
  const [playlists, setPlaylists] = useState(load);
  useEffect(() => {
    const read = () => setPlaylists(load());
    addEventListener("storage", read);
    addEventListener(CHANGED, read);
    return () => {
      removeEventListener("storage", read);
      removeEventListener(CHANGED, read);
    };
  }, []);
  return playlists;
}

/** Replaces a playlist; without songs it is removed. */
export function setPlaylist(name: string, ids: readonly string[]): void {
  const { [name]: _, ...others } = load();
  store(ids.length === 0 ? others : { ...others, [name]: ids });
}

/** @returns whether there was no other playlist with this name */
export function renamePlaylist(name: string, next: string): boolean {
  const lists = load();
  if (Object.hasOwn(lists, next)) return false;
  store(Object.fromEntries(Object.entries(lists).map(([each, ids]) => [each === name ? next : each, ids])));
  return true;
}

function store(playlists: Playlists): void {
  keepText(ITEM, JSON.stringify(playlists));
  dispatchEvent(new Event(CHANGED));
}

/** Appends songs that the playlist does not have yet. @returns whether all of them fit */
export function addToPlaylist(name: string, ids: readonly string[]): boolean {
  const lists = load();
  const before = Object.hasOwn(lists, name) ? (lists[name] ?? []) : [];
  const all = [...new Set([...before, ...ids])];
  setPlaylist(name, all.slice(0, MAX_PLAYLIST_SONGS));
  return all.length <= MAX_PLAYLIST_SONGS;
}

/** Copy of the list, with `id` moved to `index`. */
export function moveId(ids: readonly string[], id: string, index: number): string[] {
  const others = ids.filter((other) => other !== id);
  const at = Math.min(Math.max(index, 0), others.length);
  return [...others.slice(0, at), id, ...others.slice(at)];
}
