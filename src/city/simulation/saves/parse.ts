/**
 * Parses the JSON of a save in pieces. Its depth and number of values are limited: the parsed content of a damaged or
 * malicious save must fit into memory.
 */

/** Maximum nesting depth. Rows need five levels; replies to commands need some more. */
const MAX_DEPTH = 32;
/** Maximum number of brackets and commas, almost twice as many as the largest possible city has. */
const MAX_MARKS = 16_000_000;
/** Size from which on list elements are parsed as a piece. */
const PIECE_BYTES = 65_536;

const [QUOTE, COMMA, COLON, BACKSLASH] = [0x22, 0x2c, 0x3a, 0x5c];
const [OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d];

/** Parses a JSON object. Parses the lists in it piece by piece. @throws SyntaxError */
export function* parseInPieces(content: Buffer): Generator<void, Record<string, unknown>> {
  const scan = new Scan(content);
  const members: [name: string, value: unknown][] = [];
  scan.take(OPEN_OBJECT);
  while (scan.peek() !== CLOSE_OBJECT) {
    const name = String(scan.value());
    scan.take(COLON);
    members.push([name, scan.peek() === OPEN_LIST ? yield* listIn(scan) : scan.value()]);
    if (scan.peek() !== CLOSE_OBJECT) scan.take(COMMA);
    yield;
  }
  scan.take(CLOSE_OBJECT);
  scan.end();
  return Object.fromEntries(members);
}

function* listIn(scan: Scan): Generator<void, unknown[]> {
  const elements: unknown[] = [];
  scan.take(OPEN_LIST);
  while (scan.peek() !== CLOSE_LIST) {
    for (const element of scan.elements()) elements.push(element);
    yield;
  }
  scan.take(CLOSE_LIST);
  return elements;
}

class Scan {
  readonly #content: Buffer;
  #at = 0;
  #marks = 0;

  constructor(content: Buffer) {
    this.#content = content;
  }

  /** The next byte that is not white space. */
  peek(): number | undefined {
    while (isSpace(this.#content[this.#at])) this.#at++;
    return this.#content[this.#at];
  }

  take(byte: number): void {
    if (this.peek() !== byte) this.#fail(`"${String.fromCharCode(byte)}" is missing`);
    this.#at++;
  }

  end(): void {
    if (this.peek() !== undefined) this.#fail("the object ends before");
  }

  /** Parses one value. */
  value(): unknown {
    const start = this.#at;
    this.#skip();
    return JSON.parse(this.#content.toString("utf8", start, this.#at));
  }

  /** Parses elements of a list up to the end of the list or of a piece. */
  elements(): unknown[] {
    const start = this.#at;
    let end = start;
    do {
      this.#skip();
      end = this.#at;
      if (this.peek() === CLOSE_LIST) break;
      this.take(COMMA);
    } while (end - start < PIECE_BYTES);
    return JSON.parse(`[${this.#content.toString("utf8", start, end)}]`);
  }

  /** Moves to the comma or bracket after the next value. */
  #skip(): void {
    let depth = 0;
    for (; this.#at < this.#content.length; this.#at++) {
      const byte = this.#content[this.#at] as number;
      if (byte === QUOTE) this.#skipString();
      else if (byte === OPEN_LIST || byte === OPEN_OBJECT) {
        if (++depth > MAX_DEPTH) this.#fail(`it is nested deeper than ${MAX_DEPTH} levels`);
        this.#count();
      } else if (depth === 0 && isEnd(byte)) break;
      else if (byte === CLOSE_LIST || byte === CLOSE_OBJECT) depth--;
      else if (byte === COMMA) this.#count();
    }
    this.#count();
  }

  /** Moves to the closing quote. */
  #skipString(): void {
    do {
      this.#at = this.#content.indexOf(QUOTE, this.#at + 1);
      if (this.#at < 0) {
        this.#at = this.#content.length;
        this.#fail("a text does not end");
      }
    } while (this.#isEscaped());
  }

  #isEscaped(): boolean {
    let escapes = 0;
    while (this.#content[this.#at - escapes - 1] === BACKSLASH) escapes++;
    return escapes % 2 === 1;
  }

  #count(): void {
    if (++this.#marks > MAX_MARKS) this.#fail("it has too many values");
  }

  #fail(reason: string): never {
    throw new SyntaxError(`its JSON is wrong at byte ${this.#at}: ${reason}`);
  }
}

function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

function isEnd(byte: number): boolean {
  return byte === COMMA || byte === COLON || byte === CLOSE_LIST || byte === CLOSE_OBJECT;
}
