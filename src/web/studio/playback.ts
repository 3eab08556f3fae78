/** State of the player, for the cards. Kept outside the page's state, because it changes many times a second. */
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

/** @param isUsed false: no updates, for songs that do not play */
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

/** Controls for the cards; the player replaces these functions. */
export const controls = {
  toggle(): void {},
  /** @param part of the song, 0 to 1 */
  seek(_part: number): void {},
};
