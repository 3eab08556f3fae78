/**
 * Tempo, key and metre that a caption states, in whatever form and order. The grammar stands here, its words in
 * words.ts. Every position is looked at once and no phrase is longer than a few tokens: the time is linear.
 */
import { TIME_SIGNATURES } from "../metadata.js";
import { readKey } from "./key.js";
import { readPace, readTempo, usualTempo } from "./tempo.js";
import { type Found, isDenied, Phrases, type Spotted, type Statement, spot, TokenText } from "./text.js";
import { METRE_WORDS, type TempoRange } from "./words.js";

export interface CaptionFacts {
  /** Beats a minute; both ends are the same for a tempo that is said outright. */
  tempo: Statement<TempoRange> | null;
  /** What is usual for a pace or a genre that it names; null where it says a tempo. */
  usualTempo: Statement<TempoRange> | null;
  /** Such as "F# minor". */
  keyScale: Statement<string> | null;
  /** "2", "3", "4" or "6". */
  timeSignature: Statement<string> | null;
  /** What it says beside that and cannot be meant as well, or is nothing that models know. */
  remarks: string[];
}

/** Reads a caption; what it does not say is null. Never throws. */
export function readCaption(caption: string): CaptionFacts {
  const text = new TokenText(caption.normalize("NFKC"));
  const found: Found = { tempos: [], keys: [], metres: [], paces: [], genres: [], remarks: [] };
  // A key tells whether a number beside it is a tempo.
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

/** The first; a remark tells of others that say something else. */
function onlyOne<Value>(
  spotted: readonly Spotted<Value>[],
  what: string,
  remarks: string[],
  sameAs: (value: Value) => unknown = (value) => value,
): Statement<Value> | null {
  const [first] = spotted;
  if (first === undefined) return null;
  const other = spotted.find(({ value }) => sameAs(value) !== sameAs(first.value));
  if (other !== undefined) {
    remarks.push(
      `the prompt names more than one ${what}, "${first.words}" and "${other.words}"; the first was used`,
    );
  }
  return { value: first.value, words: first.words };
}

const METRES = new Phrases(
  Object.entries(METRE_WORDS).flatMap(([beats, phrases]) =>
    phrases.map((phrase) => [phrase, beats] as const),
  ),
);
const FRACTION_METRES = /^(?:[2-7]|9|12)$/;

/** "6/8", "3/4-Takt", "waltz". */
function readMetre(text: TokenText, start: number, found: Found): number | null {
  const named = METRES.at(text, start);
  if (named !== null) {
    if (!isDenied(text, start)) found.metres.push(spot(text, start, named.end, named.value));
    return named.end;
  }
  const end = start + 3;
  const [beats, slash, unit] = text.tokens.slice(start, end);
  if (beats?.kind !== "number" || slash?.text !== "/" || unit?.kind !== "number") return null;
  if (!slash.isGlued || !unit.isGlued || !FRACTION_METRES.test(beats.text) || !["4", "8"].includes(unit.text))
    return null;
  const isOfMore =
    ["/", "of", "'"].includes(text.tokens[end]?.text ?? "") || text.tokens[start - 1]?.text === "/";
  if (
    isOfMore ||
    (text.isGlued(end) && text.isWord(end) && !/\p{Script=Han}/u.test(text.tokens[end]?.text ?? ""))
  )
    return null;
  const known = TIME_SIGNATURES.find(
    (known) => known === beats.text && unit.text === (known === "6" ? "8" : "4"),
  );
  if (isDenied(text, start)) return end;
  if (known !== undefined) found.metres.push(spot(text, start, end, known));
  else
    found.remarks.push(
      `the models know no metre "${text.wordsOf({ start, end })}", but 2/4, 3/4, 4/4 and 6/8`,
    );
  return end;
}
