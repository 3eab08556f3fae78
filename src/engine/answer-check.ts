/**
 * Whether what the language model wrote may stand in the place of what a person wrote. No dictionary: the person's own
 * words, the names of genres and of sections, and whether text reads like any language at all.
 */
import { writtenLanguage } from "./language.js";

/** The share of the person's words that must be kept, counted with repeats. */
const MIN_KEPT_SHARE = 0.9;
/** Below this many words the language of a text cannot be told, nor whether it is one. */
const MIN_TELLING_WORDS = 8;
/** The share of different words among all; a text of few different words runs in circles. Songs repeat, captions do not. */
const MIN_DISTINCT_SHARE = { caption: 0.4, lyrics: 0.08 };
const MIN_WORDS_TO_REPEAT = { caption: 10, lyrics: 40 };
/** The longest word of a person; what a model runs together is longer. */
const MAX_WORD_LETTERS = 40;

/** One of these words, or one that the person wrote, makes a section tag. */
const SECTION_WORDS = new Set(
  (
    "ad-lib adlib break breakdown bridge build buildup call chant choir chorus coda drop ending fade guitar hook inst " +
    "instrumental interlude intro lib middle outro piano post post-chorus pre pre-chorus prechorus rap refrain reprise " +
    "response riff section solo spoken tag turnaround vamp verse vocal vocalise whisper"
  ).split(" "),
);

/** A caption that names none of those that were asked for is of another song. */
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

/** What is wrong with a caption that rewrites `asked`, or null. */
export async function captionFault(caption: string, asked: string): Promise<string | null> {
  const asksFor = genresOf(asked);
  const names = genresOf(caption);
  if (asksFor.size > 0 && names.size > 0 && ![...asksFor].some((genre) => names.has(genre))) {
    return `it is about ${[...names].join(", ")} instead of ${[...asksFor].join(", ")}`;
  }
  return textFault(caption, "caption");
}

/** What is wrong with lyrics that take the place of `own`, which may be without words, or null. */
export async function lyricsFault(lyrics: string, own: string): Promise<string | null> {
  const written = countWords(sung(lyrics));
  const ownWords = countWords(sung(own));
  const total = sum(ownWords.values());
  const kept = sum([...ownWords].map(([word, count]) => Math.min(count, written.get(word) ?? 0)));
  if (kept < MIN_KEPT_SHARE * total) return `it keeps ${kept} of ${total} words`;
  const strange = tagsOf(lyrics).find((tag) => !isSection(tag) && !tagsOf(own).includes(tag));
  if (strange !== undefined) return `${JSON.stringify(strange)} is no section of a song`;
  return textFault(sung(lyrics), "lyrics");
}

/** What shows that a text is none, whatever its language. */
async function textFault(text: string, kind: "caption" | "lyrics"): Promise<string | null> {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it looks for
  if (/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f\ufffd]|<\|/.test(text))
    return "it holds characters that are no text";
  if (/(?:bpm|keyscale|timesignature|duration|language)\s*:/i.test(text))
    return "it mixes up words and metadata";
  const words = wordsOf(text);
  if (words.length === 0) return "it holds no words";
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
    (await writtenLanguage(text)) === null
  ) {
    return "it reads like no language";
  }
  return null;
}

/** The lyrics without their section tags. */
function sung(lyrics: string): string {
  return lyrics.replace(/\[[^[\]\n]*\]/g, "\n");
}

function tagsOf(lyrics: string): string[] {
  return Array.from(lyrics.matchAll(/\[([^[\]\n]*)\]/g), ([, tag = ""]) => tag.trim().toLowerCase());
}

/** "verse 2", "guitar solo", "chorus - loud, with choir". */
function isSection(tag: string): boolean {
  return tag.length <= 80 && tag.split(/[^\p{L}-]+/u).some((word) => SECTION_WORDS.has(word));
}

/** "lo-fi", "lo fi" and "lofi" are one. */
function genresOf(text: string): Set<string> {
  const words = text
    .toLowerCase()
    .replace(/\b(hip|trip|lo) (hop|fi)\b/g, "$1$2")
    .replaceAll("-", "")
    .split(/[^\p{L}&]+/u);
  return new Set(words.filter((word) => GENRE_WORDS.has(word)));
}

/** Lower-case words; in scripts that are written without spaces, characters. */
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
