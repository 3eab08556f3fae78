/** Advances a city as fast as the processor allows, in slices between which requests are served. */
import { setImmediate } from "node:timers/promises";
import type { World } from "./state/world.js";
import { tick } from "./tick.js";

/** Duration of a slice. A request waits for a few slices, one in each turn of the event loop that it needs. */
const SLICE_MS = 2;

/** Limits of an advance; the first one reached ends it. */
export interface AdvanceLimits {
  readonly maxFrames: number;
  /** Limit in real time. With this limit, the number of simulated frames depends on the speed of the machine. */
  readonly maxSeconds: number;
  /** Whether a goal is reached; checked after every frame. */
  readonly isReached: () => boolean;
  /** Whether the city was replaced or unloaded; checked after every slice. */
  readonly isStopped: () => boolean;
}

export type AdvanceOutcome = "frames" | "reached" | "maxSeconds" | "stopped";

/** Advances the city, even if it is paused. Its regular clock does not tick meanwhile. */
export async function advanceWorld(world: World, limits: AdvanceLimits): Promise<AdvanceOutcome> {
  const { maxFrames, maxSeconds, isReached, isStopped } = limits;
  const lastFrame = world.frame + maxFrames;
  const deadlineMs = performance.now() + maxSeconds * 1000;
  world.isAdvancing = true;
  try {
    if (isReached()) return "reached";
    while (world.frame < lastFrame) {
      await setImmediate();
      while (world.capture) await world.capture.done;
      if (isStopped()) return "stopped";
      const startMs = performance.now();
      if (startMs >= deadlineMs) return "maxSeconds";
      do {
        tick(world);
        if (isReached()) return "reached";
      } while (world.frame < lastFrame && performance.now() - startMs < SLICE_MS);
    }
    return "frames";
  } finally {
    world.isAdvancing = false;
  }
}
