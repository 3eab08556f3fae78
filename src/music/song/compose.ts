/** Prepares songs for the renderer: the client's words, sheets of the language model, and plans. */
import { detectLanguage } from "../../engine/language.js";
import { UNKNOWN_LANGUAGE } from "../../engine/metadata.js";
import type { LanguageModelInfo } from "../../engine/types.js";
import { DEFAULT_LANGUAGE } from "../request/schema.js";
import {
  type Composition,
  clientComposition,
  type PlannedComposition,
  withInstrumentalTag,
} from "./composition.js";
import { planTogether } from "./plan-songs.js";
import type { SongContext } from "./song-context.js";
import { writeSheet } from "./write-sheet.js";

/**
 * Writes the sheets of the songs one after another, then plans all songs together.
 * @param lm language model of the task, or null
 * @param sourceSeconds length of the source recording, or null
 */
export async function compose(
  context: SongContext,
  lm: LanguageModelInfo | null,
  sourceSeconds: number | null,
): Promise<PlannedComposition[]> {
  const { request, progress } = context;
  const isVerbatim = request.planning.verbatim;
  const languageOf = async (lyrics: string) =>
    isVerbatim ? UNKNOWN_LANGUAGE : ((await detectLanguage(lyrics)) ?? DEFAULT_LANGUAGE);
  const drafts: Composition[] = [];
  for (const [index, requested] of request.songs.entries()) {
    progress.beginSongs(index, 1);
    const song = clientComposition(request, requested, lm !== null, sourceSeconds);
    const written = lm === null ? song : await writeSheet(context, lm, song);
    drafts.push(isVerbatim ? written : withInstrumentalTag(written));
  }
  const planned = await planTogether(context, lm, drafts);
  return Promise.all(
    planned.map(async (song, index) => ({
      ...song,
      isLanguageNamed: drafts[index]?.language != null,
      language: song.language ?? (await languageOf(song.lyrics)),
    })),
  );
}
