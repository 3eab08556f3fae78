/** Metres in captions: "6/8", "3/4-Takt", "waltz". */
import { TIME_SIGNATURES } from "../metadata.js";
import { type Found, isDenied, Phrases, spot, type TokenText } from "./text.js";
import * as lexicon from "./words.js";

const METRE_WORDS = new Phrases(
  Object.entries(lexicon.METRE_WORDS).flatMap(([beats, phrases]) =>
    phrases.map((phrase) => [phrase, beats] as const),
  ),
);
const FRACTION_METRES = /^(?:[2-7]|9|12)$/;

/** "6/8", "3/4-Takt", "waltz". */
export function readMetre(text: TokenText, start: number, found: Found): number | null {
  const named = METRE_WORDS.at(text, start);
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
