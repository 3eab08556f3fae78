/** Playback state shown on song cards. It changes often, so it is kept outside the page's state. */
import { useEffect, useState } from "preact/hooks";

/** Step of the shown time in seconds. A render at each frame would be too many. */
export const SHOWN_STEP = 0.1;

export interface Playback {
  isPlaying: boolean;
  /** Whether the song waits for data: at its start, or in the middle on a slow network. */
  isLoading: boolean;
  /** Why the song does not sound; "" if it does. */
  failure: string;
  /** Position, rounded down to SHOWN_STEP. */
  seconds: number;
  /** Length of the song; 0 while unknown. */
  length: number;
}

export const SILENCE: Playback = {
  isPlaying: false,
  isLoading: false,
  failure: "",
  seconds: 0,
  length: 0,
};

let now = SILENCE;
const listeners = new Set<(playback: Playback) => void>();

export function updatePlayback(playback: Playback): void {
  now = playback;
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

/** The state at this moment. */
export function playback(): Playback {
  return now;
}

/** Player controls that song cards call. The player replaces these empty functions with its own. */
export const controls = {
  /** Plays or pauses the song; loads it again if it could not be loaded. */
  toggle(): void {},
  /** @param _part position as a fraction of the song, 0 to 1 */
  seek(_part: number): void {},
  /** Plays the next song of the radio. */
  skip(): void {},
};
