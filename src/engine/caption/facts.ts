/**
 * Parses tempo, key and metre from a caption. The grammar is here, the vocabulary in words.ts. Each position is
 * visited once and phrases are short, so the time is linear.
 */

import { say } from "../../notes.js";
import { TIME_SIGNATURES } from "../metadata.js";
import { readKey } from "./key.js";
import { isNegated } from "./negation.js";
import { readPace, readTempo, usualTempo } from "./tempo.js";
import {
  type MentionedFacts,
  Phrases,
  type PlacedStatement,
  plainText,
  type Statement,
  statementAt,
  type TempoRange,
  TokenText,
} from "./text.js";
import * as lexicon from "./words.js";

export interface CaptionFacts {
  /** Stated tempo in beats per minute; min equals max for an exact tempo. */
  tempo: Statement<TempoRange> | null;
  /** Usual tempo of a pace or genre in the caption; null if a tempo is stated. */
  usualTempo: Statement<TempoRange> | null;
  /** Stated key, for example "F# minor". */
  keyScale: Statement<string> | null;
  /** Stated metre: "2", "3", "4" or "6". */
  timeSignature: Statement<string> | null;
  remarks: string[];
}

/** Parses a caption. Facts that the caption does not state are null. Never throws. */
export function readCaption(caption: string): CaptionFacts {
  const text = new TokenText(plainText(caption));
  const found: MentionedFacts = { tempos: [], keys: [], metres: [], paces: [], genres: [], remarks: [] };
  // Keys are parsed first, because a number beside a key is a tempo.
  for (let at = 0; at < text.length; ) at = readKey(text, at, found) ?? at + 1;
  for (let at = 0; at < text.length; ) {
    at = readMetre(text, at, found) ?? readTempo(text, at, found) ?? readPace(text, at, found) ?? at + 1;
  }
  const tempo = onlyOne(found.tempos, "tempo", found.remarks, ({ min, max }) => `${min} ${max}`);
  return {
    tempo,
    usualTempo: tempo === null ? usualTempo(found) : null,
    keyScale: onlyOne(found.keys, "key", found.remarks),
    timeSignature: onlyOne(found.metres, "metre", found.remarks),
    remarks: found.remarks,
  };
}

/** Returns the first statement of a fact. Adds a remark if another statement contradicts it. */
function onlyOne<Value>(
  spotted: readonly PlacedStatement<Value>[],
  what: string,
  remarks: string[],
  sameAs: (value: Value) => unknown = (value) => value,
): Statement<Value> | null {
  const [first] = spotted;
  if (first === undefined) return null;
  const other = spotted.find(({ value }) => sameAs(value) !== sameAs(first.value));
  if (other !== undefined) {
    remarks.push(say("fact_ambiguous", { name: what, words: first.words, others: other.words }));
  }
  return { value: first.value, words: first.words };
}

const METRES = new Phrases(
  Object.entries(lexicon.METRE_WORDS).flatMap(([beats, phrases]) =>
    phrases.map((phrase) => [phrase, beats] as const),
  ),
);
const FRACTION_METRES = /^(?:[2-7]|9|12)$/;

/** Parses a metre: "6/8", "3/4-Takt", "waltz". */
function readMetre(text: TokenText, start: number, found: MentionedFacts): number | null {
  const named = METRES.at(text, start);
  if (named !== null) {
    const isOther =
      lexicon.WORDS_AFTER_FALSE_METRE.at(text, named.end) !== null ||
      (lexicon.WORDS_BEFORE_DANCE_VERB.before(text, start) !== null &&
        lexicon.DIRECTIONS.at(text, named.end) !== null);
    if (!isOther && !isNegated(text, start))
      found.metres.push(statementAt(text, start, named.end, named.value));
    return named.end;
  }
  const end = start + 3;
  const [beats, slash, unit] = text.tokens.slice(start, end);
  if (beats?.kind !== "number" || slash?.text !== "/" || unit?.kind !== "number") return null;
  if (!slash.isGlued || !unit.isGlued || !FRACTION_METRES.test(beats.text) || !["4", "8"].includes(unit.text))
    return null;
  const isOfMore =
    ["/", "of", "'"].includes(text.tokens[end]?.text ?? "") ||
    lexicon.WORDS_AFTER_FALSE_METRE.at(text, end) !== null ||
    text.tokens[start - 1]?.text === "/";
  if (
    isOfMore ||
    (text.isGlued(end) && text.isWord(end) && !/\p{Script=Han}/u.test(text.tokens[end]?.text ?? ""))
  )
    return null;
  const known = TIME_SIGNATURES.find(
    (known) => known === beats.text && unit.text === (known === "6" ? "8" : "4"),
  );
  if (isNegated(text, start)) return end;
  if (known !== undefined) found.metres.push(statementAt(text, start, end, known));
  else found.remarks.push(say("metre_unsupported", { words: text.wordsOf({ start, end }) }));
  return end;
}
