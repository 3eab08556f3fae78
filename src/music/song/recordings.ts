/** Reads the recordings of a task. */
import { type PlanarAudio, SAMPLE_RATE, type SongLatents } from "../../engine/types.js";
import { decodeAudio } from "../audio/decode.js";
import { readLatents } from "../audio/latents-file.js";
import { type RepaintWindow, repaintWindows } from "../audio/repaint-windows.js";
import { uploadFieldName } from "../audio/uploads.js";
import type { AudioInput } from "../request/generation-request.js";
import type { SongContext } from "./song-context.js";

/** A recording, as audio or as latents. */
export type Recording = { seconds: number } & (
  | { audio: PlanarAudio; latents: null }
  | { audio: null; latents: SongLatents }
);

export interface Recordings {
  source: Recording | null;
  reference: Recording | null;
  /** Windows of the source to make anew; empty: all of it. */
  windows: readonly RepaintWindow[];
}

/** @throws DecodeError, RequestError for latents or for a window beyond the source */
export async function readRecordings(context: SongContext): Promise<Recordings> {
  const { request, progress } = context;
  const { source, reference } = request;
  if (source !== null || reference !== null) progress.enter("source");
  const recording = source && (await read(context, source));
  return {
    source: recording,
    reference: reference && (await read(context, reference)),
    windows: recording === null ? [] : repaintWindows(request, recording.seconds),
  };
}

async function read(
  { maxSourceSeconds: maxSeconds, signal }: SongContext,
  { kind, path }: AudioInput,
): Promise<Recording> {
  const name = uploadFieldName(kind);
  if (kind === "sourceLatents" || kind === "referenceLatents") {
    const latents = await readLatents(path, name, maxSeconds);
    return { audio: null, latents, seconds: latents.samples / SAMPLE_RATE };
  }
  return asRecording(await decodeAudio({ path, name, maxSeconds, signal }));
}

export function asRecording(audio: PlanarAudio): Recording {
  return { audio, latents: null, seconds: audio.length / 2 / SAMPLE_RATE };
}
