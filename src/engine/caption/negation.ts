/** Detects negated words in captions. */
import type { TokenText } from "./text.js";
import { NEGATIONS, WORDS_AFTER_NEGATION } from "./words.js";

/** Whether the words at a token are negated: "not too fast", "no rock". */
export function isNegated(text: TokenText, start: number): boolean {
  let at = start;
  for (let step = 0; step < 2; step++) {
    if (NEGATIONS.before(text, at) !== null) return true;
    const degree = WORDS_AFTER_NEGATION.before(text, at);
    if (degree === null) return false;
    at = degree.start;
  }
  return NEGATIONS.before(text, at) !== null;
}
