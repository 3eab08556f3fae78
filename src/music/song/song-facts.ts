/** Tempo, key and metre of a song, for its record and the tags of its file. */
import { type PlanarAudio, SAMPLE_RATE } from "../../engine/types.js";
import type { RepaintWindow } from "../audio/repaint-windows.js";
import { clearTempo, measureTempo } from "../audio/tempo.js";
import type { GenerationRequest } from "../request/generation-request.js";
import type { PlannedComposition } from "./composition.js";
import type { Recordings } from "./recordings.js";
import type { MusicalFacts } from "./stated-facts.js";

/**
 * Facts of a finished song. An edit that keeps most of its source has the facts of the source, unless the client states
 * others. The tempo of other edits is only measured if it is clear.
 */
export function factsOf(
  { facts: { stated, source: sourceFacts, ...given } }: GenerationRequest,
  { metadata }: Pick<PlannedComposition, "metadata">,
  audio: PlanarAudio,
  { source, windows }: Recordings,
): { facts: MusicalFacts; isTempoMeasured: boolean } {
  const planned: MusicalFacts = {
    bpm: metadata.bpm,
    keyScale: metadata.keyScale,
    timeSignature: metadata.timeSignature,
  };
  const measured = (measure: () => number | null, known: MusicalFacts) =>
    known.bpm === null
      ? { facts: { ...known, bpm: measure() }, isTempoMeasured: true }
      : { facts: known, isTempoMeasured: false };
  if (source === null) return measured(() => measureTempo(audio, SAMPLE_RATE), planned);
  if (!keepsMost(windows, source.seconds)) return measured(() => clearTempo(audio, SAMPLE_RATE), planned);
  const isBpmGiven = given.bpm !== null || stated.tempo !== null;
  return measured(() => clearTempo(source.audio ?? audio, SAMPLE_RATE), {
    bpm: isBpmGiven ? planned.bpm : (sourceFacts?.bpm ?? null),
    keyScale: given.keyScale || stated.keyScale ? planned.keyScale : (sourceFacts?.keyScale ?? ""),
    timeSignature:
      given.timeSignature || stated.timeSignature
        ? planned.timeSignature
        : (sourceFacts?.timeSignature ?? ""),
  });
}

/** Whether more than half of the finished song is a part of its source. */
function keepsMost(windows: readonly RepaintWindow[], sourceSeconds: number): boolean {
  const made = windows.reduce((sum, { startSeconds, endSeconds }) => sum + endSeconds - startSeconds, 0);
  const begin = Math.min(0, ...windows.map(({ startSeconds }) => startSeconds));
  const end = Math.max(sourceSeconds, ...windows.map(({ endSeconds }) => endSeconds));
  return windows.length > 0 && made < (end - begin) / 2;
}
