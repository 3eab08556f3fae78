/**
 * Estimates the length of a song from its lyrics; DEFAULT_SECONDS without lyrics.
 *
 * A line takes two bars, or more if it has many syllables. A section without lines, such as [Solo], takes
 * SECTION_BARS. Intro and outro together also take SECTION_BARS. Tempo and metre set the length of a bar.
 */
import { DURATION_SECONDS_RANGE } from "../../engine/metadata.js";
import { CODES_PER_SECOND, type Metadata } from "../../engine/types.js";
import type { GenerationRequest } from "../request/generation-request.js";

const DEFAULT_SECONDS = 30;
const DEFAULT_BPM = 120;
const BARS_OF_LINE = 2;
const SECTION_BARS = 8;
const SYLLABLES_PER_SECOND = 5;

/** Beats in a bar by time signature. The signature "6" means 6/8: a bar lasts three quarter notes. */
const BEATS: Readonly<Record<string, number>> = { "2": 2, "3": 3, "4": 4, "6": 3 };

/** @param lyrics with section tags on lines of their own */
export function estimateLength(
  lyrics: string,
  { bpm, timeSignature }: Pick<Metadata, "bpm" | "timeSignature">,
) {
  const { lines, emptySections } = partsOf(lyrics);
  if (lines.length === 0) return { seconds: DEFAULT_SECONDS, reason: "the default without lyrics" };
  const barSeconds = ((BEATS[timeSignature] ?? 4) * 60) / (bpm ?? DEFAULT_BPM);
  const barsOf = (line: string) =>
    Math.max(BARS_OF_LINE, Math.ceil(syllablesOf(line) / SYLLABLES_PER_SECOND / barSeconds));
  const sungBars = lines.reduce((bars, line) => bars + barsOf(line), 0);
  const seconds = Math.ceil((sungBars + SECTION_BARS * (1 + emptySections)) * barSeconds);
  const count = `${lines.length} line${lines.length === 1 ? "" : "s"} of lyrics`;
  return {
    seconds: Math.min(Math.max(seconds, DURATION_SECONDS_RANGE.min), DURATION_SECONDS_RANGE.max),
    reason: `estimated from ${count} at ${bpm ?? DEFAULT_BPM} bpm`,
  };
}

/** Seconds of a song of the request, as far as known before it is planned. */
export function expectedSeconds({ words, facts, songs }: GenerationRequest): number {
  const codes = songs[0]?.codes;
  if (codes) return codes.length / CODES_PER_SECOND;
  return facts.durationSeconds ?? estimateLength(words.lyrics, facts).seconds;
}

/** Returns the sung lines, and the number of sections without sung lines. */
function partsOf(lyrics: string): { lines: string[]; emptySections: number } {
  const lines: string[] = [];
  let emptySections = 0;
  let isSectionEmpty = false;
  for (const line of lyrics.split(/\r?\n/).map((text) => text.trim())) {
    const isTag = /^\[[^\]]*\]$/.test(line);
    if (isTag) {
      if (isSectionEmpty) emptySections++;
      isSectionEmpty = true;
    } else if (/[\p{L}\p{N}]/u.test(line)) {
      isSectionEmpty = false;
      lines.push(line);
    }
  }
  return { lines, emptySections: emptySections + Number(isSectionEmpty) };
}

/** Counts vowel groups in alphabetic scripts. In Chinese, Japanese and Korean, counts characters. */
function syllablesOf(line: string): number {
  const whole = line.match(/[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]/gu) ?? [];
  const vowels = line
    .normalize("NFD")
    .match(/[aeiouyæøœаеёиоуыэюяіїєαεηιουω]\p{M}*(?:[aeiouyæøœаеёиоуыэюяіїєαεηιουω]\p{M}*)*/giu);
  const letters = line.match(/\p{L}/gu) ?? [];
  const others = Math.max(0, letters.length - whole.length);
  // Arabic and Hebrew lines have no vowel letters: count one syllable for every two letters.
  return whole.length + (vowels?.length ?? Math.ceil(others / 2));
}
