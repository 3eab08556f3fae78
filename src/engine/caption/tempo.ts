/** Parses tempos in captions: stated, or usual for a pace or genre. */

import { say } from "../../notes.js";
import { BPM_RANGE } from "../metadata.js";
import { isNegated } from "./negation.js";
import {
  type MentionedFacts,
  Phrases,
  type PlacedStatement,
  type Statement,
  skipHyphen,
  statementAt,
  type TempoRange,
  type TokenIndex,
  type TokenSpan,
  type TokenText,
} from "./text.js";
import * as lexicon from "./words.js";

const UPPER_BOUNDS = Phrases.of(lexicon.UPPER_BOUND_WORDS);
const bounds = [...lexicon.UPPER_BOUND_WORDS, ...lexicon.LOWER_BOUND_WORDS];
const BOUNDS = Phrases.of(bounds);
const TEMPO_FILLERS = Phrases.of([...lexicon.TEMPO_FILLERS, ...bounds]);
const MAX_FILLERS = 4;
/** Two tempos with a larger ratio are a tempo change, not a range. */
const MAX_RANGE_RATIO = 1.5;
/** A single bound becomes a range whose ends have this ratio: "under 100" means 80 to 100. */
const BOUND_RATIO = 1.25;
/** Range in which a number without a unit can be a tempo. Lower numbers beside a key may be opus numbers. */
const MIN_BARE_BPM = 50;
const MAX_BARE_BPM = 220;

/**
 * Parses a tempo: "120 bpm", "tempo: 120", "110-120 bpm", "under 100 bpm", "at 120", "120 in A minor".
 * @returns index of the token after the tempo, or null if there is no tempo
 */
export function readTempo(text: TokenText, start: TokenIndex, found: MentionedFacts): TokenIndex | null {
  const label = lexicon.TEMPO_LABELS.at(text, start);
  if (label !== null) {
    const numbers = numbersAt(text, skipFillers(text, label.end));
    if (numbers !== null && !countsOtherThings(text, numbers.end)) {
      const end = lexicon.TEMPO_UNITS.at(text, numbers.end)?.end ?? numbers.end;
      return take(text, { start, end }, numbers.range, found);
    }
  }
  const numbers = numbersAt(text, start);
  if (numbers === null) return null;
  const unit = lexicon.TEMPO_UNITS.at(text, skipHyphen(text, numbers.end));
  if (unit !== null) return take(text, { start, end: unit.end }, numbers.range, found);
  return standsAlone(text, start, numbers)
    ? take(text, { start, end: numbers.end }, numbers.range, found)
    : null;
}

function take(text: TokenText, { start, end }: TokenSpan, range: TempoRange, found: MentionedFacts): number {
  const words = text.wordsOf({ start: boundBefore(text, start)?.start ?? start, end });
  if (isNegated(text, start) || lexicon.HEART_RATES.before(text, start) !== null) return end;
  if (range.min < BPM_RANGE.min || range.max > BPM_RANGE.max) {
    found.remarks.push(say("tempo_out_of_range", { words, ...BPM_RANGE }));
  } else {
    found.tempos.push({ value: range, words, start, end });
  }
  return end;
}

function numbersAt(text: TokenText, start: number): { range: TempoRange; end: number } | null {
  const first = numberAt(text, start);
  if (first === null) return null;
  const afterUnit = lexicon.TEMPO_UNITS.at(text, start + 1)?.end ?? start + 1;
  const to = lexicon.RANGE_WORDS.at(text, afterUnit);
  const second = to === null ? null : numberAt(text, to.end);
  if (
    to !== null &&
    second !== null &&
    first >= BPM_RANGE.min &&
    second >= first &&
    second <= first * MAX_RANGE_RATIO
  ) {
    return { range: { min: first, max: second }, end: to.end + 1 };
  }
  return { range: boundedBy(text, start, first), end: start + 1 };
}

function boundedBy(text: TokenText, start: number, bpm: number): TempoRange {
  const isIn = BPM_RANGE.min <= bpm && bpm <= BPM_RANGE.max;
  const bound = isIn ? boundBefore(text, start) : null;
  const isHighest = bound !== null && UPPER_BOUNDS.at(text, bound.start)?.end === bound.end;
  const isLowest = bound !== null && !isHighest;
  return {
    min: isHighest ? Math.max(BPM_RANGE.min, Math.round(bpm / BOUND_RATIO)) : bpm,
    max: isLowest ? Math.min(BPM_RANGE.max, Math.round(bpm * BOUND_RATIO)) : bpm,
  };
}

/** Bound before a number, such as "under". In "rapping over 90 bpm drums" the word "over" is a place, not a bound. */
function boundBefore(text: TokenText, start: number): TokenSpan | null {
  const bound = BOUNDS.before(text, start);
  if (bound === null || lexicon.AMBIGUOUS_LOWER_BOUND_WORDS.at(text, bound.start) === null) return bound;
  const unit = lexicon.TEMPO_UNITS.at(text, skipHyphen(text, start + 1));
  return unit !== null && lexicon.BACKING_INSTRUMENTS.at(text, unit.end) !== null ? null : bound;
}

/** Number at a token; null if the digits belong to a name or to another number, as in "TR808" or "6/8". */
function numberAt(text: TokenText, at: number): number | null {
  const token = text.tokens[at];
  if (token?.kind !== "number") return null;
  const before = text.tokens[at - 1];
  const isPartOfName = token.isGlued && before !== undefined && isNameBeforeNumber(text, at - 1);
  return isPartOfName ? null : Math.round(Number(token.text.replace(",", ".")));
}

function isNameBeforeNumber(text: TokenText, at: number): boolean {
  const { kind = "", text: word = "" } = text.tokens[at] ?? {};
  if (kind === "symbol") return /[/.^$€£#'’]/u.test(word) && text.tokens[at - 1]?.kind === "number";
  return /\p{Script=Latin}/u.test(word) && lexicon.TEMPO_LABELS.before(text, at + 1) === null;
}

function skipFillers(text: TokenText, start: number): number {
  let at = start;
  for (let step = 0; step < MAX_FILLERS; step++) at = TEMPO_FILLERS.at(text, at)?.end ?? at;
  return at;
}

/** Whether the number before `end` has a unit such as seconds or hertz, or is part of a date or fraction. */
function countsOtherThings(text: TokenText, end: number): boolean {
  return lexicon.NON_TEMPO_UNITS.at(text, end) !== null && (text.isGlued(end) || text.isWord(end));
}

/**
 * Whether a number without a unit is a tempo. Accepts a number after "@", after "at" at the end of a clause,
 * beside a key, or beside a genre or pace that usually has this tempo.
 */
function standsAlone(
  text: TokenText,
  start: number,
  { range, end }: { range: TempoRange; end: number },
): boolean {
  if (range.min < MIN_BARE_BPM || range.max > MAX_BARE_BPM || countsOtherThings(text, end)) return false;
  if (text.isGlued(end) && text.isWord(end)) return false;
  const link = lexicon.KEY_LINKS.at(text, end);
  const isBeforeKey = text.keyStarts.has(end) || (link !== null && text.keyStarts.has(link.end));
  const at =
    lexicon.WORDS_BEFORE_TEMPO.before(text, start) ??
    lexicon.WORDS_BEFORE_TEMPO.before(text, TEMPO_FILLERS.before(text, start)?.start ?? start);
  const isClear = isBeforeKey || text.endsClause(end);
  if (at !== null) return isClear || text.tokens[at.start]?.text === "@";
  if (isClear && suits(range, usualBefore(text, start))) return true;
  if (text.beginsClause(start) && suits(range, USUAL.at(text, end)) && !countsWorks(text, end)) return true;
  if (!text.beginsClause(start) && !text.keyEnds.has(start)) return false;
  const isBehindKey =
    text.keyEnds.has(start) ||
    (lexicon.KEY_LINKS.before(text, start) !== null && text.keyEnds.has(start - 1));
  return isBeforeKey || (isBehindKey && text.endsClause(end));
}

/** Whether a number counts pieces of music, as in "100 jazz classics". */
function countsWorks(text: TokenText, genre: number): boolean {
  const usual = USUAL.at(text, genre);
  return usual !== null && lexicon.COUNTED_PIECES.at(text, usual.end) !== null;
}

/** Finds the pace or genre before token `at`. A link word may stand between them. */
function usualBefore(text: TokenText, at: number): { value: Usual } | null {
  const place = USUAL.before(text, at) ?? USUAL.before(text, lexicon.KEY_LINKS.before(text, at)?.start ?? at);
  return place && USUAL.at(text, place.start);
}

/** Whether a tempo is plausible for the pace or genre. */
function suits({ min, max }: TempoRange, usual: { value: Usual } | null): boolean {
  if (usual === null) return false;
  const { range } = usual.value;
  return min >= 0.9 * range.min && max <= 1.1 * range.max;
}

interface Usual {
  kind: "paces" | "genres";
  range: TempoRange;
}

const rangesOf = (kind: Usual["kind"], entries: readonly { range: TempoRange; words: string[] }[]) =>
  entries.flatMap(({ range, words }) => words.map((phrase): [string, Usual] => [phrase, { kind, range }]));
const USUAL = new Phrases([
  ...rangesOf("paces", lexicon.PACE_TEMPOS),
  ...rangesOf("genres", lexicon.GENRE_TEMPOS),
]);

export function readPace(text: TokenText, start: TokenIndex, found: MentionedFacts): TokenIndex | null {
  const usual = USUAL.at(text, start);
  if (usual === null) return null;
  const { kind, range } = usual.value;
  const isOther = kind === "paces" ? isOtherPace(text, start, usual.end) : isThing(text, start, usual.end);
  if (!isOther && !isNegated(text, start)) found[kind].push(statementAt(text, start, usual.end, range));
  return usual.end;
}

/**
 * Whether a pace word describes something other than the song: "slow attack", "comida rápida", "dancing on my grave".
 */
function isOtherPace(text: TokenText, start: number, end: number): boolean {
  if (lexicon.AMBIGUOUS_PACES.at(text, start)?.end === end && !text.beginsClause(start)) return true;
  return (
    lexicon.WORDS_AFTER_FALSE_PACE.at(text, skipHyphen(text, end)) !== null ||
    lexicon.WORDS_BEFORE_FALSE_PACE.before(text, start) !== null
  );
}

/** Whether a genre word is not a genre: "a house on the hill", "my empty house", but not "a house track". */
function isThing(text: TokenText, start: number, end: number): boolean {
  if (lexicon.AMBIGUOUS_GENRES.at(text, start)?.end !== end) return false;
  const isNamed =
    lexicon.DETERMINERS.before(text, start) !== null || lexicon.DETERMINERS.before(text, start - 1) !== null;
  return isNamed && lexicon.WORDS_AFTER_GENRE.at(text, end) === null && USUAL.at(text, end) === null;
}

/**
 * Usual tempo of the paces and genres in the caption. Ignores all paces if two of them contradict each other, such
 * as a slow verse and a fast chorus.
 */
export function usualTempo({ paces, genres }: MentionedFacts): Statement<TempoRange> | null {
  const [pace] = paces;
  const isOnePace = paces.every(({ value }) => overlap(value, pace?.value ?? value) !== null);
  const genre = genres.reduce<PlacedStatement<TempoRange> | null>(joinGenres, null);
  if (pace === undefined || !isOnePace) return genre && { value: genre.value, words: genre.words };
  if (genre === null) return { value: pace.value, words: pace.words };
  return { value: paceOf(genre.value, pace.value), words: `${pace.words} ${genre.words}` };
}

/**
 * Joins the tempo ranges of two genres: returns their overlap. If the ranges do not overlap, returns one of
 * them: the second for adjacent words such as "ambient techno", otherwise the first.
 */
function joinGenres(
  all: PlacedStatement<TempoRange> | null,
  one: PlacedStatement<TempoRange>,
): PlacedStatement<TempoRange> {
  if (all === null) return one;
  const value = overlap(all.value, one.value) ?? (one.start === all.end ? one.value : all.value);
  return {
    ...all,
    value,
    words: one.start === all.end ? `${all.words} ${one.words}` : all.words,
    end: one.end,
  };
}

/** Part of a genre's tempo range that a pace word selects, such as the slower part for "slow techno". */
function paceOf(genre: TempoRange, pace: TempoRange): TempoRange {
  const common = overlap(genre, pace);
  if (common !== null) return common;
  const third = Math.floor((genre.max - genre.min) / 3);
  return pace.max < genre.min
    ? { min: genre.min, max: genre.min + third }
    : { min: genre.max - third, max: genre.max };
}

function overlap(one: TempoRange, other: TempoRange): TempoRange | null {
  const [min, max] = [Math.max(one.min, other.min), Math.min(one.max, other.max)];
  return min <= max ? { min, max } : null;
}
