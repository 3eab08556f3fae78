/** Draws the cover picture of a song from its peaks, key, tempo and seed; and the waveform from its peaks. */
import type { Song } from "./api.js";

/** A step on the circle of fifths is a twelfth of the colour circle. */
const FIFTHS = ["C", "G", "D", "A", "E", "B", "F#", "C#", "Ab", "Eb", "Bb", "F"];
const FLAT = 50;
const MIDDLE = 32;
const RAY_START = 9;
const RAY_LENGTH = 19;
/** Only every second peak gets a ray, because drawing rays takes most of the time when a song scrolls into view. */
const PEAKS_PER_RAY = 2;

export function CoverPicture({ song }: { song: Song }) {
  const { seed, metas } = song;
  const peaks = peaksOf(song);
  const number = Number(String(seed).slice(-6));
  const [tonic = "", mode = ""] = (metas.keyscale ?? "").split(" ");
  const fifth = FIFTHS.indexOf(tonic);
  const hue = fifth < 0 ? number % 360 : fifth * 30;
  const other = hue + (mode === "minor" ? 200 : 50);
  const id = `cover-${number}-${hue}`;
  const lengths = peaks.filter((_, index) => index % PEAKS_PER_RAY === 0);
  const rays = lengths.map((peak, index) => {
    const angle = (2 * Math.PI * index) / lengths.length + number;
    const [x, y] = [Math.cos(angle), Math.sin(angle)];
    const end = RAY_START + 1 + (RAY_LENGTH * peak) / 100;
    const point = (radius: number) =>
      `${(MIDDLE + x * radius).toFixed(1)} ${(MIDDLE + y * radius).toFixed(1)}`;
    return `M${point(RAY_START)}L${point(end)}`;
  });
  const beat = Math.max(1, Math.round((metas.bpm ?? 100) / 20));
  return (
    <svg class="cover" viewBox="0 0 64 64" aria-hidden="true">
      <defs>
        <linearGradient id={id} x2="1" y2="1">
          <stop stop-color={`hsl(${hue} 72% 46%)`} />
          <stop offset="1" stop-color={`hsl(${other} 68% 28%)`} />
        </linearGradient>
      </defs>
      <rect width="64" height="64" fill={`url(#${id})`} />
      <path d={rays.join("")} stroke={`hsl(${other} 90% 88%)`} stroke-width="1.3" />
      <circle
        cx="32"
        cy="32"
        r="29.5"
        fill="none"
        stroke={`hsl(${other} 90% 88% / 60%)`}
        stroke-width="1"
        stroke-dasharray={`${(185.4 / beat / 2).toFixed(2)}`}
      />
    </svg>
  );
}

interface WaveformBarsProps {
  song: Song;
  /** Fraction of the song that is played, 0 to 1. */
  played: number;
}

/** The waveform as bars; the played part has the accent colour. */
export function WaveformBars({ song, played }: WaveformBarsProps) {
  const peaks = peaksOf(song);
  const bars = (from: number, to: number) =>
    peaks
      .slice(from, to)
      .map((peak, index) => `M${from + index + 0.5} ${50 - peak / 2.1 - 1}V${50 + peak / 2.1 + 1}`)
      .join("");
  const at = Math.round(played * peaks.length);
  return (
    <svg viewBox={`0 0 ${peaks.length} 100`} preserveAspectRatio="none" aria-hidden="true">
      <path class="played" d={bars(0, at)} />
      <path d={bars(at, peaks.length)} />
    </svg>
  );
}

function peaksOf({ peaks }: Song): readonly number[] {
  return peaks ?? Array.from({ length: 96 }, () => FLAT);
}
