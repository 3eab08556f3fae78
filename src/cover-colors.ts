/** Colours of a song's cover, on the pages and in the picture for messengers. */

const GOLDEN_ANGLE_DEGREES = 137.508;

export interface CoverColors {
  /** A number drawn from the seed, 32 bits. */
  draw: number;
  /** Hues in degrees, from 0 on. */
  hue: number;
  other: number;
}

/** Each seed has its own colours, so that songs of one key and tempo differ. */
export function coverColors(seed: number | string): CoverColors {
  let draw = 0x811c9dc5;
  for (const digit of String(seed)) draw = Math.imul(draw ^ digit.charCodeAt(0), 0x01000193) >>> 0;
  const hue = (draw * GOLDEN_ANGLE_DEGREES) % 360;
  return { draw, hue, other: hue + 40 + 90 * ((draw >>> 3) % 4) };
}
