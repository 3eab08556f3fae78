/** Waveform outline of a song, small enough for lists. */
import type { PlanarAudio } from "../../engine/types.js";

const PEAKS = 96;
const FULL = 100;

/** Peaks of 96 equal parts of planar stereo audio, in percent of the largest peak. */
export function peaksOf(audio: PlanarAudio): number[] {
  const samples = audio.length / 2;
  const peaks = Array.from({ length: PEAKS }, (_, part) => {
    const end = Math.floor(((part + 1) * samples) / PEAKS);
    let peak = 0;
    for (let at = Math.floor((part * samples) / PEAKS); at < end; at++) {
      peak = Math.max(peak, Math.abs(audio[at] as number), Math.abs(audio[samples + at] as number));
    }
    return peak;
  });
  const highest = Math.max(...peaks) || 1;
  return peaks.map((peak) => Math.round((FULL * peak) / highest));
}
