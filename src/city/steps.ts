/** Runs long work in many turns of the event loop, so that requests are answered meanwhile. */
import { setImmediate } from "node:timers/promises";

/** Maximum duration of a turn, apart from the last step in it. */
const SLICE_MS = 2;

/** Runs a generator to its end; each `yield` is a place where another turn may begin. */
export async function inSteps<T>(work: Generator<unknown, T>): Promise<T> {
  for (;;) {
    const startMs = performance.now();
    do {
      const step = work.next();
      if (step.done) return step.value;
    } while (performance.now() - startMs < SLICE_MS);
    await setImmediate();
  }
}

/** Runs a generator to its end in this turn. */
export function inOneGo<T>(work: Generator<unknown, T>): T {
  let step = work.next();
  while (!step.done) step = work.next();
  return step.value;
}
