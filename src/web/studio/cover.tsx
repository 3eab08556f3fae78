/** Draws the cover picture of a song from its seed, peaks and tempo; and the waveform from its peaks. */
import { useLayoutEffect, useRef } from "preact/hooks";
import { coverColors } from "../../cover-colors.js";
import type { Song } from "./api.js";

const FLAT = 50;
/** Width of a cover in units of the drawing. */
const SIZE = 64;
const MIDDLE = SIZE / 2;

interface CoverPictureProps {
  song: Song;
  /** Width of the canvas. */
  pixels?: number;
}

/** A canvas, because rows of SVG shapes are slow to scroll. */
export function CoverPicture({ song, pixels = 128 }: CoverPictureProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useLayoutEffect(() => {
    const context = canvas.current?.getContext("2d");
    if (context) drawCover(context, song);
  }, [song]);
  return <canvas class="cover" ref={canvas} width={pixels} height={pixels} />;
}

type Figure = (context: CanvasRenderingContext2D, peaks: readonly number[], turn: number) => void;

/** Each seed has its own colours, figure and turn. */
function drawCover(context: CanvasRenderingContext2D, song: Song): void {
  const { draw, hue, other } = coverColors(song.seed ?? 0);
  const scale = context.canvas.width / SIZE;
  context.setTransform(scale, 0, 0, scale, 0, 0);
  const ground = context.createLinearGradient(0, 0, SIZE, SIZE);
  ground.addColorStop(0, `hsl(${hue} 72% 46%)`);
  ground.addColorStop(1, `hsl(${other} 68% 28%)`);
  context.fillStyle = ground;
  context.fillRect(0, 0, SIZE, SIZE);
  context.strokeStyle = `hsl(${other} 90% 88% / 85%)`;
  context.fillStyle = context.strokeStyle;
  context.lineWidth = 1.3;
  FIGURES[(draw >>> 5) % FIGURES.length]?.(context, peaksOf(song), draw % 7);
  const dash = 185.4 / Math.max(1, Math.round((song.metas.bpm ?? 100) / 20)) / 2;
  context.lineWidth = 1;
  context.setLineDash([dash]);
  circle(context, MIDDLE, MIDDLE, 29.5);
  context.stroke();
}

const FIGURES: readonly Figure[] = [
  /** Rays. */
  (context, peaks, turn) => {
    const rays = sampled(peaks, 48);
    context.beginPath();
    for (const [index, peak] of rays.entries()) {
      const angle = (2 * Math.PI * index) / rays.length + turn;
      const [x, y] = [Math.cos(angle), Math.sin(angle)];
      const end = 10 + 0.19 * peak;
      context.moveTo(MIDDLE + 9 * x, MIDDLE + 9 * y);
      context.lineTo(MIDDLE + end * x, MIDDLE + end * y);
    }
    context.stroke();
  },
  /** A skyline of bars. */
  (context, peaks) => {
    for (const [index, peak] of sampled(peaks, 13).entries()) {
      const height = 4 + 0.3 * peak;
      context.fillRect(12.5 + 3 * index, MIDDLE - height / 2, 2, height);
    }
  },
  /** Rings. */
  (context, peaks) => {
    for (const [index, peak] of sampled(peaks, 6).entries()) {
      context.lineWidth = 0.4 + peak / 45;
      circle(context, MIDDLE, MIDDLE, 9 + 3.4 * index);
      context.stroke();
    }
  },
  /** A flower. */
  (context, peaks, turn) => {
    const petals = sampled(peaks, 5 + turn);
    context.globalAlpha = 0.45;
    for (const [index, peak] of petals.entries()) {
      const angle = (2 * Math.PI * index) / petals.length;
      const distance = 7 + 0.06 * peak;
      circle(
        context,
        MIDDLE + distance * Math.cos(angle),
        MIDDLE + distance * Math.sin(angle),
        5 + 0.06 * peak,
      );
      context.fill();
    }
    context.globalAlpha = 1;
  },
];

function circle(context: CanvasRenderingContext2D, x: number, y: number, radius: number): void {
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
}

function sampled(peaks: readonly number[], count: number): number[] {
  return Array.from(
    { length: count },
    (_, index) => peaks[Math.floor((index * peaks.length) / count)] ?? FLAT,
  );
}

/** FNV-1a, so that seeds that follow each other differ. */
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
