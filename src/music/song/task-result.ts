/** Result of a task that made songs. */
import type { LanguageModelInfo } from "../../engine/types.js";
import type { SongDescription, SongFile, SongResult } from "../queue/store.js";
import { effectsInSongs } from "../request/effects.js";
import type { SongFacts } from "../request/uses.js";
import type { SongContext } from "./song-context.js";

export interface FinishedSong {
  file: SongFile & { description: SongDescription };
  facts: SongFacts;
}

/** @param totalSeconds time that all songs of the task took */
export function songsResult(
  { request, warnings }: SongContext,
  lm: LanguageModelInfo | null,
  songs: readonly FinishedSong[],
  totalSeconds: number,
): SongResult {
  const count = songs.length;
  const time =
    `**🎵 Total generation time (${count} song${count === 1 ? "" : "s"}): ${totalSeconds.toFixed(2)}s**\n` +
    `- ${(totalSeconds / count).toFixed(2)}s per song\n`;
  const audioFiles = songs.map(({ file }) => {
    const { description } = file;
    return { ...file, description: { ...description, generationInfo: time + description.generationInfo } };
  });
  const facts = songs.map((song) => song.facts);
  return {
    ...(audioFiles[0] as (typeof audioFiles)[0]).description,
    seeds: request.songs.map(({ seed }) => seed),
    lmModel: lm?.name ?? "",
    audioFiles,
    analysis: null,
    warnings: [...new Set([...warnings, ...effectsInSongs(request.chosen, facts)])],
  };
}
