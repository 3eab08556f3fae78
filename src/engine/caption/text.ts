/**
 * Splits captions into tokens and searches them for phrases. Phrases are short, so a search takes linear time.
 */

/** Beats per minute, inclusive. */
export interface TempoRange {
  min: number;
  max: number;
}

export interface Statement<Value> {
  value: Value;
  words: string;
}

/** Index of a token in a TokenText. */
export type TokenIndex = number;

/** Tokens from `start` to before `end`. */
export interface TokenSpan {
  start: TokenIndex;
  end: TokenIndex;
}

export type PlacedStatement<Value> = Statement<Value> & TokenSpan;

/**
 * Facts found so far. `paces` are the usual tempos of words such as "fast"; `genres` are the usual tempos of
 * genres.
 */
export interface MentionedFacts {
  tempos: PlacedStatement<TempoRange>[];
  keys: PlacedStatement<string>[];
  metres: PlacedStatement<string>[];
  paces: PlacedStatement<TempoRange>[];
  genres: PlacedStatement<TempoRange>[];
  remarks: string[];
}

export interface Token {
  kind: "word" | "number" | "symbol";
  /** Text in lower case. */
  text: string;
  raw: string;
  start: number;
  end: number;
  /** Whether no space precedes the token. */
  isGlued: boolean;
}

/**
 * Text with compatibility characters in their usual forms, such as full-width letters. Drops natural signs and the
 * variation selectors that follow accidentals in some editors.
 */
export function plainText(text: string): string {
  return text.normalize("NFKC").replace(/\u266e|\ufe0e|\ufe0f/gu, "");
}

/** In scripts without spaces a token is one character, except for runs of katakana. */
const TOKEN =
  /(?<number>\d{1,6}(?:[.,]\d{1,3}(?!\d))?)|(?<word>[\p{Script=Katakana}ー]+|[\p{Script=Han}\p{Script=Hiragana}\p{Script=Hangul}]|[^\P{L}\p{Script=Han}\p{Script=Hiragana}\p{Script=Hangul}\p{Script=Katakana}]+)|\S/gu;

function tokensOf(text: string): Token[] {
  let end = -1;
  return Array.from(text.matchAll(TOKEN), (match) => {
    const [raw] = match;
    const { index: start } = match;
    const isGlued = start === end;
    end = start + raw.length;
    const kind =
      match.groups?.number !== undefined ? "number" : match.groups?.word !== undefined ? "word" : "symbol";
    return { kind, text: raw.toLowerCase().replace("’", "'"), raw, start, end, isGlued };
  });
}

export class Phrases<Value> {
  readonly #values = new Map<string, Value>();
  readonly #firsts = new Set<string>();
  readonly #longest: number;

  constructor(entries: Iterable<readonly [phrase: string, value: Value]>) {
    let longest = 0;
    for (const [phrase, value] of entries) {
      const tokens = tokensOf(phrase.normalize("NFKC"));
      longest = Math.max(longest, tokens.length);
      this.#firsts.add(tokens[0]?.text ?? "");
      this.#values.set(tokens.map(({ text }) => text).join(" "), value);
    }
    this.#longest = longest;
  }

  static of(phrases: readonly string[]): Phrases<true> {
    return new Phrases(phrases.map((phrase) => [phrase, true]));
  }

  /** Longest phrase starting at a token. */
  at(text: TokenText, start: number): { value: Value; end: number } | null {
    if (!this.#firsts.has(text.tokens[start]?.text ?? "")) return null;
    let key = "";
    let best: { value: Value; end: number } | null = null;
    for (let end = start; end < Math.min(start + this.#longest, text.length); end++) {
      key += (key === "" ? "" : " ") + text.tokens[end]?.text;
      const value = this.#values.get(key);
      if (value !== undefined) best = { value, end: end + 1 };
    }
    return best;
  }

  /** Longest phrase ending before a token. */
  before(text: TokenText, end: number): TokenSpan | null {
    for (let start = Math.max(0, end - this.#longest); start < end; start++) {
      if (this.at(text, start)?.end === end) return { start, end };
    }
    return null;
  }
}

export class TokenText {
  readonly tokens: readonly Token[];
  /**
   * Token positions where keys end or start. The parser needs them because a bare number beside a key is a
   * tempo.
   */
  readonly keyEnds = new Set<number>();
  readonly keyStarts = new Set<number>();

  constructor(private readonly text: string) {
    this.tokens = tokensOf(text);
  }

  get length(): number {
    return this.tokens.length;
  }

  isWord(at: number): boolean {
    return this.tokens[at]?.kind === "word";
  }

  isGlued(at: number): boolean {
    return this.tokens[at]?.isGlued === true;
  }

  wordsOf({ start, end }: TokenSpan): string {
    return this.text.slice(this.tokens[start]?.start, this.tokens[end - 1]?.end);
  }

  endsClause(at: number): boolean {
    const token = this.tokens[at];
    return (
      token === undefined || (token.kind === "symbol" && /[.,;:!?()[\]{}"/|–—。、，；！？]/u.test(token.text))
    );
  }

  beginsClause(at: number): boolean {
    return at === 0 || (this.tokens[at - 1]?.kind === "symbol" && !this.isGlued(at)) || this.isListItem(at);
  }

  private isListItem(at: number): boolean {
    return /^[,;:|/([{"，、；]$/u.test(this.tokens[at - 1]?.text ?? "");
  }
}

export function statementAt<Value>(
  text: TokenText,
  start: number,
  end: number,
  value: Value,
): PlacedStatement<Value> {
  return { value, words: text.wordsOf({ start, end }), start, end };
}

export function skipHyphen(text: TokenText, at: TokenIndex): TokenIndex {
  return text.tokens[at]?.text === "-" ? at + 1 : at;
}
