/** Drives a city in real time, in short slices between which the process is free for everything else. */

import type { World } from "./state/world.js";
import { tick } from "./tick.js";

/** Frames per real second at speed 1, and the factor of each speed. */
export const FRAMES_PER_SECOND = 60;
const SPEED_FACTORS = [0, 1, 2, 4];

const SLICE_INTERVAL_MS = 16;
/** A slice stops after this long and leaves the rest to the next one. */
const SLICE_BUDGET_MS = 4;
/** Frames that a busy process could not simulate in this time are dropped: the city falls behind instead. */
const LONGEST_BACKLOG_MS = 250;

export class CityClock {
  private timer: NodeJS.Timeout | null = null;
  private lastMs = 0;
  private framesDue = 0;

  /** @param framesPerSecond at speed 1 */
  constructor(
    private readonly world: World,
    private readonly framesPerSecond: number,
  ) {}

  start(): void {
    this.lastMs = performance.now();
    this.timer = setInterval(() => this.runSlice(), SLICE_INTERVAL_MS);
    this.timer.unref();
  }

  stop(): void {
    if (this.timer) clearInterval(this.timer);
    this.timer = null;
  }

  private runSlice(): void {
    const { world } = this;
    const nowMs = performance.now();
    const elapsedMs = nowMs - this.lastMs;
    this.lastMs = nowMs;
    const factor = world.paused ? 0 : (SPEED_FACTORS[world.selectedSpeed] as number);
    const framesPerMs = (this.framesPerSecond * factor) / 1000;
    this.framesDue = Math.min(this.framesDue + elapsedMs * framesPerMs, LONGEST_BACKLOG_MS * framesPerMs);
    while (this.framesDue >= 1 && performance.now() - nowMs < SLICE_BUDGET_MS) {
      tick(world);
      this.framesDue--;
    }
  }
}
