/** Learns the merges of byte-level byte-pair encoding from text (Sennrich et al., 2016). */
import { QWEN_PIECES } from "../../../src/engine/tokenizer-files.js";

/** GPT-2's printable stand-in of each byte. */
export const letterOfByte: readonly string[] = ((): string[] => {
  let next = 256;
  return Array.from({ length: 256 }, (_, byte) => {
    const printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    return String.fromCharCode(printable ? byte : next++);
  });
})();

/** JavaScript has no inline flag; contractions in capitals are rare enough. */
const pieces = new RegExp(QWEN_PIECES.replace("(?i:", "(?:"), "gu");

export function learnMerges(text: string, count: number): [string, string][] {
  const words = countPieces(text).map(([piece, times]) => ({ symbols: lettersOf(piece), times }));
  const merges: [string, string][] = [];
  while (merges.length < count) {
    const best = mostFrequentPair(words);
    if (best === undefined) break;
    merges.push(best);
    for (const word of words) word.symbols = merged(word.symbols, best);
  }
  return merges;
}

interface Word {
  symbols: string[];
  times: number;
}

function countPieces(text: string): [string, number][] {
  const counts = new Map<string, number>();
  for (const [piece] of text.normalize("NFC").matchAll(pieces))
    counts.set(piece, (counts.get(piece) ?? 0) + 1);
  return [...counts];
}

function lettersOf(piece: string): string[] {
  return [...Buffer.from(piece, "utf8")].map((byte) => letterOfByte[byte] as string);
}

/** Ties go to the pair that is first in code order, so that the result does not depend on the text's order. */
function mostFrequentPair(words: readonly Word[]): [string, string] | undefined {
  const counts = new Map<string, number>();
  for (const { symbols, times } of words) {
    for (let i = 1; i < symbols.length; i++) {
      const pair = `${symbols[i - 1]} ${symbols[i]}`;
      counts.set(pair, (counts.get(pair) ?? 0) + times);
    }
  }
  let best: string | undefined;
  let bestCount = 1;
  for (const [pair, count] of counts) {
    if (count > bestCount || (count === bestCount && best !== undefined && pair < best)) {
      best = pair;
      bestCount = count;
    }
  }
  return best?.split(" ") as [string, string] | undefined;
}

function merged(symbols: string[], [left, right]: [string, string]): string[] {
  const result: string[] = [];
  for (let i = 0; i < symbols.length; i++) {
    if (symbols[i] === left && symbols[i + 1] === right) {
      result.push(left + right);
      i++;
    } else {
      result.push(symbols[i] as string);
    }
  }
  return result;
}
