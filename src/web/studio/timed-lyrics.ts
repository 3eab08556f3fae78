/** Lyrics with the time of each line. */
import type { Song } from "./api.js";
import { SHOWN_STEP } from "./playback.js";

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

/**
 * Index of the line that is sung; -1 before the first one.
 * @param shown position in seconds, rounded down to SHOWN_STEP. A line that begins within the step counts: after a press
 * on a line, the position is its beginning.
 */
export function lineAt(lines: readonly LyricLine[], shown: number): number {
  return lines.findLastIndex(({ seconds }) => seconds < shown + SHOWN_STEP);
}

/** Whether two lines begin within one SHOWN_STEP, as a line and its translation do. Both are then shown as sung. */
export function areSungTogether(lines: readonly LyricLine[], index: number, current: number): boolean {
  const [line, sung] = [lines[index], lines[current]];
  return line !== undefined && sung !== undefined && Math.abs(line.seconds - sung.seconds) < SHOWN_STEP;
}
