/** Lyrics with the time of each line. */
import type { Song } from "./api.js";

export interface LyricLine {
  seconds: number;
  text: string;
}

/** The lines in the order in which they are sung; empty if the song has no lyric timestamps. */
export function lyricLines({ lrc = "" }: Song): LyricLine[] {
  const lines = [...lrc.matchAll(/^\[(\d+):([\d.]+)\](.*)$/gm)];
  return lines.map(([, minutes, rest, text = ""]) => ({
    seconds: 60 * Number(minutes) + Number(rest),
    text,
  }));
}

/** Index of the line that is sung at the given time; -1 before the first one. */
export function lineAt(lines: readonly LyricLine[], now: number): number {
  return lines.findLastIndex(({ seconds }) => seconds <= now);
}
