/** Scores of a song (`get_scores`): how well it fits caption, lyrics and metadata. */
import type { LanguageModelInfo, PlanarAudio, SongScores } from "../../engine/types.js";
import type { PlannedComposition } from "./composition.js";
import { loadLanguageModel } from "./prepare.js";
import type { SongContext } from "./song-context.js";

interface Rendered {
  song: PlannedComposition;
  audio: PlanarAudio;
  seconds: number;
  slot: number;
  lm: LanguageModelInfo | null;
}

/**
 * Scores the song's audio codes with the language model. If scoring fails, the song is kept without scores.
 * @returns no reason if the song was scored or scores were not requested
 */
export async function scoreSong(
  context: SongContext,
  { song, audio, seconds, slot, lm }: Rendered,
): Promise<{ scores: SongScores | null; noScoresReason: string | null }> {
  const { engine, request, signal } = context;
  if (!request.output.getScores) return { scores: null, noScoresReason: null };
  const { renderCaption: caption, lyrics, language, metadata } = song;
  try {
    const { name } = lm ?? (await loadLanguageModel(context, { signal }));
    const audioCodes = song.codes ?? (await engine.renderer.encodeCodes(slot, audio, { signal }));
    const known = { ...metadata, durationSeconds: Math.round(seconds) };
    const words = { caption, lyrics, language, metadata: known };
    const scores = await engine.planner.score({ languageModel: name, audioCodes, ...words }, { signal });
    return { scores, noScoresReason: scores === null ? `${name} cannot score this song` : null };
  } catch (error) {
    signal.throwIfAborted();
    return { scores: null, noScoresReason: error instanceof Error ? error.message : String(error) };
  }
}
