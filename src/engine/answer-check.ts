/**
 * Checks the language model's text before it replaces the client's text. Uses no dictionary: it compares
 * words, genres and section tags, and detects whether the text reads like a language.
 */
import { detectLanguage } from "./language.js";

/** Minimum share of the client's words that rewritten lyrics must keep, counted with repeats. */
const MIN_KEPT_SHARE = 0.9;
/** Minimum words for language detection. */
const MIN_TELLING_WORDS = 8;
/**
 * Minimum share of distinct words. A lower share means that the model repeats itself. Lyrics repeat more words than
 * captions.
 */
const MIN_DISTINCT_SHARE = { caption: 0.4, lyrics: 0.08 };
const MIN_WORDS_TO_REPEAT = { caption: 10, lyrics: 40 };
/** Maximum length of a word; longer ones are several words run together. */
const MAX_WORD_LETTERS = 40;

/** Words of valid section tags. Words in the client's own section tags are valid too. */
const SECTION_WORDS = new Set(
  (
    "ad-lib adlib break breakdown bridge build buildup call chant choir chorus coda drop ending fade guitar hook inst " +
    "instrumental interlude intro lib middle outro piano post post-chorus pre pre-chorus prechorus rap refrain reprise " +
    "response riff section solo spoken tag turnaround vamp verse vocal vocalise whisper"
  ).split(" "),
);

/** Genres that are recognised. A caption must keep at least one requested genre. */
const GENRE_WORDS = new Set(
  (
    "acid afrobeat ambient americana bachata baroque bebop bhangra bluegrass blues bolero bossa breakbeat celtic " +
    "chillhop chiptune choral classical country cumbia dancehall darkwave disco downtempo drill dub dubstep edm " +
    "electro electronic electronica emo fado flamenco folk funk fusion garage gospel goth gothic grime grunge hardcore " +
    "hardstyle hiphop house idm indie industrial jazz jungle kpop klezmer latin lofi mambo march " +
    "mariachi merengue metal metalcore motown opera orchestral phonk polka pop postrock psytrance punk r&b ragtime rap " +
    "reggae reggaeton rhumba rnb rock rockabilly rumba salsa samba shanty shoegaze ska soul swing symphonic symphony " +
    "synthpop synthwave tango techno trance trap triphop vaporwave waltz zouk zydeco"
  ).split(" "),
);

/** Reason to reject the model's `caption`; null if it may replace the client's. */
export async function captionRejectionReason(caption: string, clientCaption: string): Promise<string | null> {
  const requested = genresOf(clientCaption);
  const found = genresOf(caption);
  if (requested.size > 0 && found.size > 0 && ![...requested].some((genre) => found.has(genre))) {
    return `it is about ${[...found].join(", ")} instead of ${[...requested].join(", ")}`;
  }
  return textFault(caption, "caption");
}

/** Reason to reject the model's `lyrics`; null if they may replace `clientLyrics`, which may be empty. */
export async function lyricsRejectionReason(lyrics: string, clientLyrics: string): Promise<string | null> {
  const written = countWords(sung(lyrics));
  const clientWords = countWords(sung(clientLyrics));
  const total = sum(clientWords.values());
  const kept = sum([...clientWords].map(([word, count]) => Math.min(count, written.get(word) ?? 0)));
  if (kept < MIN_KEPT_SHARE * total) return `it keeps only ${kept} of ${total} words`;
  const strange = tagsOf(lyrics).find((tag) => !isSection(tag) && !tagsOf(clientLyrics).includes(tag));
  if (strange !== undefined) return `${JSON.stringify(strange)} is not a section tag`;
  return textFault(sung(lyrics), "lyrics");
}

async function textFault(text: string, kind: "caption" | "lyrics"): Promise<string | null> {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern detects control characters
  if (/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f\ufffd]|<\|/.test(text))
    return "it contains control characters or control tokens";
  if (/(?:bpm|keyscale|timesignature|duration|language)\s*:/i.test(text))
    return "it mixes words and metadata";
  const words = wordsOf(text);
  if (words.length === 0) return "it has no words";
  if (words.some((word) => word.length > MAX_WORD_LETTERS)) return "it runs words together";
  const distinct = new Set(words).size;
  if (words.length >= MIN_WORDS_TO_REPEAT[kind] && distinct < MIN_DISTINCT_SHARE[kind] * words.length) {
    return "it repeats itself";
  }
  if (kind === "caption" && words.some((word, i) => word === words[i + 1] && word === words[i + 2])) {
    return "it repeats itself";
  }
  if (
    words.length >= MIN_TELLING_WORDS &&
    distinct >= MIN_TELLING_WORDS &&
    (await detectLanguage(text)) === null
  ) {
    return "it does not read like a language";
  }
  return null;
}

function sung(lyrics: string): string {
  return lyrics.replace(/\[[^[\]\n]*\]/g, "\n");
}

function tagsOf(lyrics: string): string[] {
  return Array.from(lyrics.matchAll(/\[([^[\]\n]*)\]/g), ([, tag = ""]) => tag.trim().toLowerCase());
}

/** Whether a tag names a section: "verse 2", "guitar solo", "chorus - loud, with choir". */
function isSection(tag: string): boolean {
  return tag.length <= 80 && tag.split(/[^\p{L}-]+/u).some((word) => SECTION_WORDS.has(word));
}

/** Genres that a text names. "lo-fi", "lo fi" and "lofi" are the same genre. */
function genresOf(text: string): Set<string> {
  const words = text
    .toLowerCase()
    .replace(/\b(hip|trip|lo) (hop|fi)\b/g, "$1$2")
    .replaceAll("-", "")
    .split(/[^\p{L}&]+/u);
  return new Set(words.filter((word) => GENRE_WORDS.has(word)));
}

/** Words of a text in lower case. In scripts without spaces, each character counts as a word. */
function wordsOf(text: string): string[] {
  const pattern =
    /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}]|[\p{L}\p{M}\p{N}]+/gu;
  return text.normalize("NFC").toLowerCase().replaceAll(/['’]/g, "").match(pattern) ?? [];
}

function countWords(text: string): Map<string, number> {
  const counts = new Map<string, number>();
  for (const word of wordsOf(text)) counts.set(word, (counts.get(word) ?? 0) + 1);
  return counts;
}

function sum(numbers: Iterable<number>): number {
  let total = 0;
  for (const number of numbers) total += number;
  return total;
}
