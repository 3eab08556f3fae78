/** Writes captions as people write them to request a piece, from three words to four sentences. */
import type { Piece } from "../compose/piece.js";
import type { Random } from "../compose/random.js";
import type { Genre } from "../genres/genre.js";
import { genres } from "../genres/index.js";
import { commonMoods, inventedName, musicUses, requestOpenings, soundWishes, topics } from "./phrases.js";

const tempoWords: { upTo: number; words: readonly string[] }[] = [
  { upTo: 75, words: ["slow", "very slow", "unhurried"] },
  { upTo: 95, words: ["slow", "downtempo", "laid-back"] },
  { upTo: 115, words: ["mid-tempo", "moderate", "steady"] },
  { upTo: 140, words: ["upbeat", "lively", "brisk"] },
  { upTo: Number.POSITIVE_INFINITY, words: ["fast", "very fast", "up-tempo"] },
];

const metreWords: Record<Piece["metre"], readonly string[]> = {
  "2/4": ["in 2/4 time", "with a two-beat feel"],
  "3/4": ["in 3/4 time", "in waltz time", "with a waltz feel"],
  "4/4": ["in 4/4 time", "with a steady beat"],
  "6/8": ["in 6/8 time", "with a rolling 6/8 feel"],
};

/**
 * Templates of captions, with placeholders in braces. `{a mood}` is the mood with an article. `{noun}` is the
 * genre as a noun. `{others}` lists up to three instruments, and `{all}` lists the lead and the others. A template
 * that consists of sentences ends with a full stop.
 */
const forms: readonly { weight: number; text: string }[] = [
  { weight: 2, text: "{mood} {genre}" },
  { weight: 1, text: "{genre}" },
  { weight: 2, text: "{mood} {genre} with {lead}" },
  { weight: 2, text: "{tempo} {genre}, {all}" },
  { weight: 2, text: "{genre}, {mood}, {otherMood}, {lead}, instrumental" },
  { weight: 2, text: "{a mood} {genre} instrumental {scene}" },
  { weight: 2, text: "{mood} instrumental with {all}" },
  { weight: 1, text: "{a tempo}, {mood} piece {scene}, led by {lead}" },
  { weight: 2, text: "{mood} {genre} at {bpm} in {key}" },
  { weight: 1, text: "{mood} {genre} {metre}, featuring {lead}" },
  { weight: 3, text: "{a mood} and {otherMood} {noun} {scene}. {tempo}, with {all}." },
  { weight: 3, text: "{a noun} {metre}. {lead} over {others}. {mood}, {otherMood} and {tempo}." },
  { weight: 1, text: "{mood} {genre} {scene}. it features {all}. it runs at {bpm} in the key of {key}." },
  { weight: 3, text: "{request} {a mood} {noun} {use}" },
  { weight: 2, text: "{request} {a noun} {topic}, {mood} and {otherMood}" },
  { weight: 2, text: "{request} something {mood}, {genre} with {lead}" },
  { weight: 2, text: "{genre} {use}, {wish}, {all}" },
  { weight: 2, text: "{lead}, {mood}, {genre}, {wish}" },
  { weight: 2, text: "{mood}, {otherMood}, {genre}, {use}" },
  { weight: 2, text: "{use}, {a mood} {noun} with {all}" },
  { weight: 2, text: "{title}, {a mood} {noun} {topic}" },
  { weight: 1, text: "{a tempo} {genre} called {title}, {wish}" },
  { weight: 2, text: "{wish}, {genre}, {tempo}, {mood}" },
  { weight: 2, text: "{request} {a noun} {use}. {mood} and {otherMood}. {wish}." },
  { weight: 1, text: "{lead} and {others}, {genre} {topic}. {wish}." },
  { weight: 2, text: "{mark}, {otherMark}, {mood}" },
  { weight: 2, text: "{mark} {use}, {mood}" },
  { weight: 1, text: "{mark}, {otherMark}. {mood}, {wish}." },
  { weight: 1, text: "{request} {mark}, {mood}, with {lead}" },
  { weight: 2, text: "{genre}, {mark}, {mood}" },
  { weight: 2, text: "{mood} {genre}, {mark}, {use}" },
  { weight: 1, text: "{a mood} {noun} with {mark} and {lead}. {wish}." },
];

/** Share of captions that state tempo or key. */
const statedShare = 0.5;
/** Share of the captions naming the genre that use only moods of the genre. The others use moods of all genres. */
const ownMoodShare = 0.5;
/** If a piece lacks a common part: share of captions that say so, for example "no drums". */
const negatedShare = 0.35;

const allMoods = [...new Set([...commonMoods, ...genres.flatMap(({ moods }) => moods)])];

export function writeCaption(piece: Piece, genre: Genre, random: Random): string {
  const form = random.weighted(forms).text;
  const isNamed = /\{(a )?(genre|noun)\}/.test(form);
  const moods = isNamed && !random.chance(ownMoodShare) ? allMoods : genre.moods;
  const caption = fill(form, drawWords(piece, genre, moods, random));
  const more = [
    ...(random.chance(statedShare) && !caption.includes(piece.key.name) ? [stated(piece, random)] : []),
    ...(random.chance(negatedShare) ? absent(piece).slice(0, 1) : []),
  ];
  return caption.endsWith(".")
    ? [caption, ...more.map(sentence)].join(" ")
    : [caption, ...more].join(random.pick([", ", ", ", " - "]));
}

function fill(form: string, words: Record<string, string>): string {
  const text = form.replace(/\{(a )?(\w+)\}/g, (_, a, name) => {
    const word = String(words[name]);
    return a ? article(word) : word;
  });
  return form.endsWith(".") ? text.replace(/(^|\. )[a-z]/g, (start) => start.toUpperCase()) : text;
}

function stated({ bpm, key }: Piece, random: Random): string {
  const tempo = random.pick([
    `${bpm}bpm`,
    `${bpm} bpm`,
    `${bpm} BPM`,
    `at ${bpm}`,
    `tempo ${bpm}`,
    `around ${bpm} beats per minute`,
    `bpm ${bpm}`,
    `${bpm} beats a minute`,
    `a tempo of ${bpm}`,
  ]);
  const short = key.name.replace(" minor", "m").replace(" major", "");
  const scale = random.pick([
    ...[`in ${key.name}`, `key of ${key.name}`, `key ${short}`, key.name.toLowerCase(), `in ${short}`],
    ...[key.name, `the key is ${key.name}`, key.name.replace(" minor", " min").replace(" major", " maj")],
  ]);
  return random.pick([tempo, scale, `${tempo}, ${scale}`, `${tempo} ${scale}`, `${scale}, ${tempo}`]);
}

/** Lists the common parts that the piece lacks, as phrases such as "no drums". */
function absent({ parts }: Piece): string[] {
  const lacks = (role: string): boolean => !parts.some((part) => part.role === role);
  const named: [string, string][] = [
    ["drums", "no drums"],
    ["lead", "no lead melody"],
    ["bass", "no bass"],
  ];
  return named.filter(([role]) => lacks(role)).map(([, words]) => words);
}

/**
 * Chooses phrases that share no word, because people rarely repeat words. For example, no caption has both "calm
 * ambient" and "calm and spacious".
 */
function drawWords(
  piece: Piece,
  genre: Genre,
  moods: readonly string[],
  random: Random,
): Record<string, string> {
  const said = new Set<string>();
  const named = new Set<string>();
  const pickPhrase = (phrases: readonly string[]): string | undefined => pickFresh(phrases, [said], random);
  /** Prefers names without words of the genre. "guitar rock with an electric guitar" is the last choice. */
  const nameInstrument = (words: readonly string[]): string | undefined =>
    pickFresh(words, [named, said], random) ?? pickFresh(words, [named], random);
  const tempoChoices = tempoWords.find(({ upTo }) => beatsPerMinuteFelt(piece) <= upTo)?.words ?? [];
  const required = (phrases: readonly string[]): string => pickPhrase(phrases) ?? random.pick(phrases);
  const name = required(genre.names);
  const [mood, otherMood] = [required(moods), required(moods)];
  const scene = required(genre.scenes);
  const metre = required(metreWords[piece.metre]);
  const tempo = required(tempoChoices);
  const playing = (...roles: string[]): string[] =>
    piece.parts
      .filter(({ role }) => roles.includes(role))
      .flatMap(({ instrument }) => nameInstrument(instrument.words) ?? []);
  const [lead = "", ...rest] = [...playing("lead"), ...playing("comp"), ...playing("pulse", "pad")];
  const playingToo = random.shuffled([...rest, ...playing("bass", "drums")]);
  const bpm = random.pick([`${piece.bpm} bpm`, `${piece.bpm} BPM`]);
  const others = playingToo.length > 0 ? playingToo.slice(0, random.integer(1, 3)) : ["bass"];
  const [mark, otherMark] = random.shuffled(genre.marks);
  const title = inventedName(random);
  return {
    ...{ mark: String(mark), otherMark: String(otherMark), title, request: random.pick(requestOpenings) },
    ...{ use: required(musicUses), topic: required(topics), wish: required(soundWishes) },
    ...{ genre: name, noun: noun(name), mood, otherMood, tempo, scene, metre, key: piece.key.name, bpm },
    ...{ lead, others: list(others), all: list([lead, ...others]) },
  };
}

/**
 * Picks a random phrase without any word of the sets in `said`. Adds the words of the phrase to the first set.
 * Returns undefined if there is no such phrase.
 */
function pickFresh(
  phrases: readonly string[],
  said: readonly Set<string>[],
  random: Random,
): string | undefined {
  const phrase = random
    .shuffled(phrases)
    .find((candidate) => !contentWords(candidate).some((word) => said.some((words) => words.has(word))));
  for (const word of contentWords(phrase ?? "")) said[0]?.add(word);
  return phrase;
}

const functionWords = new Set(["a", "an", "the", "and", "of", "for", "with", "in", "on", "to", "at", "like"]);

/**
 * Content words of a phrase, in lower case and cut to five letters, so that "groove" and "groovy" count as
 * one word.
 */
function contentWords(phrase: string): string[] {
  const words = phrase.toLowerCase().match(/[a-z0-9]+/g) ?? [];
  return words.filter((word) => !functionWords.has(word)).map((word) => word.slice(0, 5));
}

/** Returns the tempo that listeners perceive. A song in 6/8 seems faster than its bpm. */
function beatsPerMinuteFelt({ bpm, metre }: Piece): number {
  return metre === "6/8" ? 1.4 * bpm : bpm;
}

/** The genre as a noun: adds "track" to names that are adjectives. */
function noun(genre: string): string {
  return /(?:score|soundtrack|soundscape|groove|beat|tune|jam|song|ballad|anthem|waltz|riff|instrumental)$/.test(
    genre,
  )
    ? genre
    : `${genre} track`;
}

/** Adds "a" or "an" by sound: "an 80s track", "a euphoric track". */
function article(words: string): string {
  if (/^an? /i.test(words)) return words;
  return `${/^(?!eu)[aeiou8]/i.test(words) ? "an" : "a"} ${words}`;
}

function list(items: readonly string[]): string {
  return items.length < 2 ? items.join() : `${items.slice(0, -1).join(", ")} and ${items.at(-1)}`;
}

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}
