/** When lyrics are sung: which tokens are words of the song, and the lines that these and their times make. */
import type { RenderJob } from "./addon.js";
import { END_OF_TEXT, lyricHeading } from "./conditioning.js";
import { asksForNoWords } from "./prompts.js";
import type { Tokenizer } from "./tokenizer.js";
import type { LyricLine } from "./types.js";

export type LyricSpan = NonNullable<RenderJob["timedLyrics"]>;

const SECTION_TAG = /^\[[^\]]*\]$/;

/** The lyrics within their prompt, between its heading and the first token of its end; null where nothing is sung. */
export async function lyricSpan(
  tokenizer: Tokenizer,
  { lyrics, language }: { lyrics: string; language: string },
  prompt: Int32Array,
): Promise<LyricSpan | null> {
  if (lyrics.trim() === "" || asksForNoWords(lyrics)) return null;
  const { length: first } = await tokenizer.encodeText(lyricHeading(language));
  const count = prompt.indexOf(tokenizer.controlId(END_OF_TEXT)) - first;
  return count > 0 ? { first, count } : null;
}

/** The lines that are sung: without blank ones and section tags. `seconds`: of each token. */
export function sungLines(tokenizer: Tokenizer, words: Int32Array, seconds: Float32Array): LyricLine[] {
  const lines: LyricLine[] = [];
  let begin = 0;
  for (const [index, id] of words.entries()) {
    // No token goes on behind a line break.
    if (index + 1 < words.length && !tokenizer.decode([id]).includes("\n")) continue;
    const text = tokenizer.decode(words.subarray(begin, index + 1)).trim();
    if (text !== "" && !SECTION_TAG.test(text)) lines.push({ seconds: seconds[begin] as number, text });
    begin = index + 1;
  }
  return lines;
}
