/** Draws the cover picture of a song from its seed, peaks and tempo; and the waveform from its peaks. */
import { coverColors } from "../../cover-colors.js";
import type { Song } from "./api.js";

const FLAT = 50;
/** Width of a cover in units of the drawing. */
const SIZE = 64;
const MIDDLE = SIZE / 2;

/**
 * The cover of a song: each seed has its own colours, figure and turn. Drawn as two paths: a canvas for each row, or more
 * shapes, make scrolling slow.
 */
export function CoverPicture({ song }: { song: Song }) {
  const { draw, hue, other } = coverColors(song.seed ?? 0);
  const figure = FIGURES[(draw >>> 5) % FIGURES.length] as Figure;
  const beat = 185.4 / Math.max(1, Math.round((song.metas.bpm ?? 100) / 20)) / 2;
  const color = `hsl(${other} 90% 88% / 85%)`;
  const background = `linear-gradient(135deg, hsl(${hue} 72% 46%), hsl(${other} 68% 28%))`;
  return (
    <svg class="cover" viewBox={`0 0 ${SIZE} ${SIZE}`} aria-hidden="true" style={{ background, color }}>
      <path {...figure(peaksOf(song), draw % 7)} />
      <path stroke-dasharray={beat} d={circle(MIDDLE, MIDDLE, 29.5)} />
    </svg>
  );
}

type Figure = (
  peaks: readonly number[],
  turn: number,
) => { d: string; class?: string; "stroke-width"?: number };

const FIGURES: readonly Figure[] = [
  /** Rays. */
  (peaks, turn) => {
    const rays = sampled(peaks, 48).map((peak, index, { length }) => {
      const angle = (2 * Math.PI * index) / length + turn;
      return line(at(angle, 9), at(angle, 10 + 0.19 * peak));
    });
    return { d: rays.join(""), "stroke-width": 1.3 };
  },
  /** A skyline of bars. */
  (peaks) => {
    const bars = sampled(peaks, 13).map((peak, index) => {
      const [x, height] = [13.5 + 3 * index, 4 + 0.3 * peak];
      return line([x, MIDDLE - height / 2], [x, MIDDLE + height / 2]);
    });
    return { d: bars.join(""), "stroke-width": 2 };
  },
  /** Rings, wider apart where the song is loud. */
  (peaks) => {
    let radius = 6;
    const rings = sampled(peaks, 7).map((peak) => {
      radius += 1.6 + peak / 32;
      return circle(MIDDLE, MIDDLE, radius);
    });
    return { d: rings.join(""), "stroke-width": 1.3 };
  },
  /** A flower. */
  (peaks, turn) => {
    const petals = sampled(peaks, 5 + turn).map((peak, index, { length }) => {
      const [x, y] = at((2 * Math.PI * index) / length, 7 + 0.06 * peak);
      return circle(x, y, 5 + 0.06 * peak);
    });
    return { d: petals.join(""), class: "filled" };
  },
];

type Point = readonly [x: number, y: number];

function at(angle: number, radius: number): Point {
  return [MIDDLE + radius * Math.cos(angle), MIDDLE + radius * Math.sin(angle)];
}

function line([fromX, fromY]: Point, [toX, toY]: Point): string {
  return `M${fromX.toFixed(1)} ${fromY.toFixed(1)}L${toX.toFixed(1)} ${toY.toFixed(1)}`;
}

function circle(x: number, y: number, radius: number): string {
  const [from, to] = [x - radius, 2 * radius].map((value) => value.toFixed(1));
  const half = radius.toFixed(1);
  return `M${from} ${y.toFixed(1)}a${half} ${half} 0 0 1 ${to} 0a${half} ${half} 0 0 1 -${to} 0`;
}

function sampled(peaks: readonly number[], count: number): number[] {
  return Array.from(
    { length: count },
    (_, index) => peaks[Math.floor((index * peaks.length) / count)] ?? FLAT,
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
      {at > 0 && <path class="played" d={bars(0, at)} />}
      <path d={bars(at, peaks.length)} />
    </svg>
  );
}

function peaksOf({ peaks }: Song): readonly number[] {
  return peaks ?? Array.from({ length: 96 }, () => FLAT);
}
