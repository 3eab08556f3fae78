/** The part of a source that a task generates anew (reference/engine.md 8.3). */
import { RequestError } from "./errors.js";
import type { GenerationRequest } from "./request/schema.js";

/** The longest song of the interface. */
const MAX_SONG_SECONDS = 600;
/** A latent frame: clients round lengths, and lossy formats change them by less. */
const TOLERANCE_SECONDS = 0.04;

export interface RepaintWindow {
  startSeconds: number;
  endSeconds: number;
}

/**
 * In seconds of the source; it may begin before the source and end after it, but not leave a gap. Null: all of it.
 * @throws RequestError where there is no such part
 */
export function repaintWindow(request: GenerationRequest, sourceSeconds: number): RepaintWindow | null {
  const { taskType, repaintingStartSeconds: start, repaintingEndSeconds: end } = request;
  if (taskType !== "repaint" && taskType !== "lego") return null;
  if (start === 0 && end === null) return null;
  const lasts = `the source, which lasts ${sourceSeconds.toFixed(2)} seconds`;
  if (start > sourceSeconds + TOLERANCE_SECONDS) {
    throw new RequestError(`repainting_start must not lie beyond ${lasts}, got ${start}`);
  }
  const startSeconds = Math.min(start, sourceSeconds);
  const endSeconds = end ?? sourceSeconds;
  if (startSeconds >= endSeconds) {
    throw new RequestError(`repainting_start ${start} leaves nothing of ${lasts}; set repainting_end`);
  }
  const songSeconds = Math.max(endSeconds, sourceSeconds) - Math.min(startSeconds, 0);
  if (songSeconds > MAX_SONG_SECONDS) {
    throw new RequestError(
      `repainting_start and repainting_end make a song of ${songSeconds.toFixed(2)} seconds; ${MAX_SONG_SECONDS} are the most`,
    );
  }
  return { startSeconds, endSeconds };
}
