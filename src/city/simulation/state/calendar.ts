/** Game time. One frame is the game's simulation step; 4096 frames are exactly one week. */

export const FRAMES_PER_WEEK = 4096;
/** Every building and zone block is visited once per cycle, a slice of them in each frame. */
export const FRAMES_PER_CYCLE = 256;
export const CYCLES_PER_WEEK = FRAMES_PER_WEEK / FRAMES_PER_CYCLE;
export const FRAMES_PER_DAY = FRAMES_PER_WEEK / 7;

const WEEK_MS = 7 * 24 * 3600 * 1000;
const FIRST_DAY_MS = Date.UTC(2031, 0, 1);

/** Game time at a frame, in milliseconds since 1970 (UTC). */
export function gameTimeMs(frame: number): number {
  return FIRST_DAY_MS + Math.floor((frame * WEEK_MS) / FRAMES_PER_WEEK);
}

/** Outdoor temperature in degrees Celsius at a frame: coldest at the turn of the year. */
export function temperature(frame: number): number {
  const yearsPassed = (frame * 7) / FRAMES_PER_WEEK / 365.25;
  return 11 - 13 * Math.cos(2 * Math.PI * yearsPassed);
}
