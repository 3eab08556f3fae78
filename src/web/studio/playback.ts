/** Playback state shown on song cards. It changes often, so it is kept outside the page's state. */
import { useEffect, useState } from "preact/hooks";

export interface Playback {
  isPlaying: boolean;
  seconds: number;
  /** Length of the playing song in seconds; 0 while unknown. */
  length: number;
}

let now: Playback = { isPlaying: false, seconds: 0, length: 0 };
const listeners = new Set<(playback: Playback) => void>();

export function updatePlayback(change: Partial<Playback>): void {
  now = { ...now, ...change };
  for (const listener of listeners) listener(now);
}

/**
 * Hook for the playback state. @param isUsed whether to re-render on changes; false for songs that are not in the
 * player
 */
export function usePlayback(isUsed: boolean): Playback {
  const [playback, setPlayback] = useState(now);
  useEffect(() => {
    if (!isUsed) return;
    setPlayback(now);
    listeners.add(setPlayback);
    return () => void listeners.delete(setPlayback);
  }, [isUsed]);
  return playback;
}

/** Player controls that song cards call. The player replaces these empty functions with its own. */
export const controls = {
  toggle(): void {},
  /** @param _part position as a fraction of the song, 0 to 1 */
  seek(_part: number): void {},
};
