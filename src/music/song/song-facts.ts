/** Tempo, key and metre of a song, for its record and the tags of its file. */
import { type PlanarAudio, SAMPLE_RATE } from "../../engine/types.js";
import { repaintWindows } from "../audio/repaint-windows.js";
import { clearTempo, measureTempo } from "../audio/tempo.js";
import type { GenerationRequest } from "../request/schema.js";
import type { PlannedComposition } from "./compose.js";
import { type MusicalFacts, NOTHING_STATED } from "./stated-facts.js";

interface Song {
  request: GenerationRequest;
  composition: Pick<PlannedComposition, "metadata">;
  audio: PlanarAudio;
  /** null: the song has no source, or only latents. */
  source: PlanarAudio | null;
  /** Length of the source; null: the song has none. */
  sourceSeconds: number | null;
}

/**
 * Facts of a finished song. An edit that keeps most of its source has the facts of the source, unless the client states
 * others. The tempo of other edits is only measured if it is clear.
 */
export function factsOf({ request, composition: { metadata }, audio, source, sourceSeconds }: Song): {
  facts: MusicalFacts;
  isTempoMeasured: boolean;
} {
  const planned: MusicalFacts = {
    bpm: metadata.bpm,
    keyScale: metadata.keyScale,
    timeSignature: metadata.timeSignature,
  };
  const measured = (measure: () => number | null, known: MusicalFacts) =>
    known.bpm === null
      ? { facts: { ...known, bpm: measure() }, isTempoMeasured: true }
      : { facts: known, isTempoMeasured: false };
  if (sourceSeconds === null) return measured(() => measureTempo(audio, SAMPLE_RATE), planned);
  if (!keepsMost(request, sourceSeconds)) return measured(() => clearTempo(audio, SAMPLE_RATE), planned);
  const { stated = NOTHING_STATED, sourceFacts } = request;
  const isBpmGiven = request.bpm !== null || stated.tempo !== null;
  return measured(() => clearTempo(source ?? audio, SAMPLE_RATE), {
    bpm: isBpmGiven ? planned.bpm : (sourceFacts?.bpm ?? null),
    keyScale: request.keyScale || stated.keyScale ? planned.keyScale : (sourceFacts?.keyScale ?? ""),
    timeSignature:
      request.timeSignature || stated.timeSignature
        ? planned.timeSignature
        : (sourceFacts?.timeSignature ?? ""),
  });
}

/** Whether more than half of the finished song is a part of its source. */
function keepsMost(request: GenerationRequest, sourceSeconds: number): boolean {
  const windows = repaintWindows(request, sourceSeconds);
  const made = windows.reduce((sum, { startSeconds, endSeconds }) => sum + endSeconds - startSeconds, 0);
  const begin = Math.min(0, ...windows.map(({ startSeconds }) => startSeconds));
  const end = Math.max(sourceSeconds, ...windows.map(({ endSeconds }) => endSeconds));
  return windows.length > 0 && made < (end - begin) / 2;
}
