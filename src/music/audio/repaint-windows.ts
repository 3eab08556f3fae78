/** Time windows of a source recording. The tasks repaint and lego regenerate these windows. */
import { DURATION_SECONDS_RANGE } from "../../engine/metadata.js";
import { RequestError } from "../errors.js";
import type { GenerationRequest } from "../request/generation-request.js";

/** Tolerance for the start of a window: one latent frame. Clients may round times, and lossy formats add padding. */
const TOLERANCE_SECONDS = 0.04;

/** A window, in seconds of the source. */
export interface RepaintWindow {
  startSeconds: number;
  endSeconds: number;
}

/**
 * Returns the windows of a request, last first, because a window that starts before the source shifts all later
 * windows. Overlapping or adjacent windows are merged. A window may start before the source or end after it. An
 * empty list means the whole source.
 * @throws RequestError for a window after the source, or if the song would be too long
 */
export function repaintWindows(request: GenerationRequest, sourceSeconds: number): RepaintWindow[] {
  const { taskType, repaint } = request;
  const { repaintingStartSeconds: start, repaintingEndSeconds: end, repaintingWindows: list } = repaint;
  if (taskType !== "repaint" && taskType !== "lego") return [];
  if (list.length === 0 && start === 0 && end === null) return [];
  const windows =
    list.length === 0
      ? [windowOf(start, end, "repainting_start", sourceSeconds)]
      : list.map(([from, to], index) =>
          windowOf(from, to, `repainting_windows: the start of window ${index + 1}`, sourceSeconds),
        );
  const first = Math.min(0, ...windows.map(({ startSeconds }) => startSeconds));
  const last = Math.max(sourceSeconds, ...windows.map(({ endSeconds }) => endSeconds));
  if (last - first > DURATION_SECONDS_RANGE.max) {
    const names = list.length === 0 ? "repainting_start and repainting_end" : "repainting_windows";
    throw new RequestError(
      `${names} make a song of ${(last - first).toFixed(2)} seconds; the maximum is ${DURATION_SECONDS_RANGE.max}`,
    );
  }
  return joined(windows);
}

function windowOf(start: number, end: number | null, name: string, sourceSeconds: number): RepaintWindow {
  const lasts = `the source, which lasts ${sourceSeconds.toFixed(2)} seconds`;
  if (start > sourceSeconds + TOLERANCE_SECONDS) {
    throw new RequestError(`${name} must not be after the end of ${lasts}, got ${start}`);
  }
  const startSeconds = Math.min(start, sourceSeconds);
  const endSeconds = end ?? sourceSeconds;
  if (startSeconds >= endSeconds) {
    throw new RequestError(`${name} ${start} is after the end of ${lasts}; set repainting_end`);
  }
  return { startSeconds, endSeconds };
}

function joined(windows: readonly RepaintWindow[]): RepaintWindow[] {
  const result: RepaintWindow[] = [];
  for (const window of windows.toSorted((a, b) => b.startSeconds - a.startSeconds)) {
    const later = result.at(-1);
    if (later === undefined || window.endSeconds < later.startSeconds) result.push(window);
    else {
      const endSeconds = Math.max(window.endSeconds, later.endSeconds);
      result[result.length - 1] = { startSeconds: window.startSeconds, endSeconds };
    }
  }
  return result;
}
