/** Picture of a song for messengers, which show no SVG: its waveform on the colours of its cover. */
import { coverColors } from "../../cover-colors.js";
import { encodePng, type Rgb } from "../../system/png.js";
import type { TaskRow } from "../queue/task-row.js";

/** Size that messengers ask for. */
const WIDTH = 1200;
const HEIGHT = 630;
const SHADES = 64;
const BAR: Rgb = [255, 240, 225];

export function coverPicture(
  song: Partial<Pick<TaskRow["songs"][number], "peaks" | "seed">> = {},
): Promise<Buffer> {
  const { peaks = [50], seed = 0 } = song;
  const { hue, other } = coverColors(seed);
  const palette = Array.from({ length: SHADES }, (_, shade) => {
    const part = shade / SHADES;
    return color(hue + (other - hue) * part, 0.7, 0.46 - 0.18 * part);
  });
  const pixels = new Uint8Array(WIDTH * HEIGHT);
  const step = WIDTH / (peaks.length + 8);
  for (let y = 0; y < HEIGHT; y++) {
    const fromMiddle = Math.abs(y - HEIGHT / 2) / (HEIGHT / 2);
    for (let x = 0; x < WIDTH; x++) {
      const at = x / step - 4;
      const isBar = at % 1 > 0.35 && fromMiddle < (peaks[Math.floor(at)] ?? -1) / 125 + 0.01;
      const shade = Math.floor(((x / WIDTH + y / HEIGHT) / 2) * SHADES);
      pixels[y * WIDTH + x] = isBar ? SHADES : shade;
    }
  }
  return encodePng({ width: WIDTH, height: HEIGHT, pixels, palette: [...palette, BAR] });
}

/** Converts hue in degrees, saturation and lightness from 0 to 1. */
function color(hue: number, saturation: number, lightness: number): Rgb {
  const reach = saturation * Math.min(lightness, 1 - lightness);
  const channel = (offset: number) => {
    const sector = (offset + hue / 30) % 12;
    return Math.round(255 * (lightness - reach * Math.max(-1, Math.min(sector - 3, 9 - sector, 1))));
  };
  return [channel(0), channel(8), channel(4)];
}
