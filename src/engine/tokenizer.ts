/**
 * Qwen3 byte-level BPE with trusted control tokens.
 *
 * @huggingface/tokenizers runs the BPE in a worker thread. It does not know the added tokens, so a user's text
 * never encodes to a control token or an audio code; only prompt templates insert these.
 */
import type { Vocabulary } from "./addon.js";
import { audioCodeToken } from "./audio-code-text.js";
import { EngineError } from "./errors.js";
import { type AddedToken, readTokenizerFiles, type TokenizerDefinition } from "./tokenizer-files.js";
import { TokenizerThread } from "./tokenizer-thread.js";

/**
 * Part of a prompt. Adjacent texts are encoded as one text, because BPE may merge characters across their
 * border.
 */
export type PromptPart = { control: string } | { audioCode: number } | { text: string };

const AUDIO_CODE_PATTERN = /^<\|audio_code_(\d+)\|>$/;

export class Tokenizer {
  readonly #directory: string;
  readonly #thread: TokenizerThread;
  readonly #controls: Map<string, number>;
  readonly #controlNames: Map<number, string>;
  readonly #bytes: TokenBytes;
  /** Id of audio code 0; codes are contiguous. -1 if there are none. */
  readonly firstAudioCodeId: number;
  readonly audioCodeCount: number;
  /** Vocabulary size: highest id plus one. */
  readonly size: number;

  private constructor(directory: string, definition: TokenizerDefinition) {
    const audioCodes = definition.addedTokens.filter(({ content }) => AUDIO_CODE_PATTERN.test(content));
    const controls = definition.addedTokens.filter(({ content }) => !AUDIO_CODE_PATTERN.test(content));
    this.#directory = directory;
    this.#controls = new Map(controls.map(({ content, id }) => [content, id]));
    this.#controlNames = new Map(controls.map(({ content, id }) => [id, content]));
    this.firstAudioCodeId = firstOfContiguous(audioCodes, directory);
    this.audioCodeCount = audioCodes.length;
    this.size = 1 + highestId(definition);
    this.#bytes = tokenBytes(definition.document.model.vocab, this.size);
    this.#thread = new TokenizerThread(definition.document);
  }

  /** @throws EngineError TOKENIZER */
  static async load(directory: string): Promise<Tokenizer> {
    const tokenizer = new Tokenizer(directory, await readTokenizerFiles(directory));
    await tokenizer.#thread.ready;
    return tokenizer;
  }

  /** @throws EngineError TOKENIZER if the control token is unknown */
  controlId(content: string): number {
    const id = this.#controls.get(content);
    if (id === undefined) {
      throw new EngineError("TOKENIZER", `The tokenizer in ${this.#directory} has no ${content} token.`);
    }
    return id;
  }

  /** @throws EngineError TOKENIZER if a control token or audio code is unknown, or the tokenizer is closed */
  async encode(parts: PromptPart[]): Promise<Int32Array> {
    const runs: (number | Promise<Int32Array>)[] = [];
    let text = "";
    const flush = (): void => {
      if (text !== "") runs.push(this.#thread.encode(text));
      text = "";
    };
    for (const part of parts) {
      if ("text" in part) {
        text += part.text;
      } else {
        flush();
        runs.push("control" in part ? this.controlId(part.control) : this.#audioCodeId(part.audioCode));
      }
    }
    flush();
    const ids: number[] = [];
    for (const run of await Promise.all(runs)) {
      if (typeof run === "number") ids.push(run);
      else for (const id of run) ids.push(id);
    }
    return Int32Array.from(ids);
  }

  encodeText(text: string): Promise<Int32Array> {
    return this.encode([{ text }]);
  }

  close(): Promise<void> {
    return this.#thread.close();
  }

  /**
   * Decodes to text. Control tokens and audio codes appear by name, such as <|im_end|>; invalid UTF-8 becomes
   * U+FFFD.
   */
  decode(ids: Iterable<number>): string {
    const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
    let text = "";
    for (const id of ids) {
      const name = this.#controlNames.get(id) ?? this.#audioCodeName(id);
      text += name === null ? decoder.decode(this.#bytesOf(id), { stream: true }) : decoder.decode() + name;
    }
    return text + decoder.decode();
  }

  audioCodes(ids: Iterable<number>): Int32Array {
    const codes: number[] = [];
    for (const id of ids) {
      if (this.#isAudioCode(id)) codes.push(id - this.firstAudioCodeId);
    }
    return Int32Array.from(codes);
  }

  /**
   * Vocabulary for constrained decoding.
   * @param size number of rows of the model's embedding table; ids that the tokenizer lacks get no bytes
   * @param codebookSize number of codes that the renderer supports
   * @throws EngineError TOKENIZER if a required token is missing or the table is too small
   */
  vocabulary(size: number, codebookSize: number): Vocabulary {
    if (this.size > size) {
      throw new EngineError(
        "TOKENIZER",
        `The tokenizer in ${this.#directory} has ${this.size} tokens, but the model has only ${size}.`,
      );
    }
    if (this.audioCodeCount === 0) {
      throw new EngineError("TOKENIZER", `The tokenizer in ${this.#directory} has no audio codes.`);
    }
    const offsets = new Int32Array(size + 1).fill(this.#bytes.bytes.length);
    offsets.set(this.#bytes.offsets);
    const padding = this.#controls.get("<|endoftext|>");
    return {
      bytes: this.#bytes.bytes,
      offsets,
      endTokenIds: Int32Array.from([
        this.controlId("<|im_end|>"),
        ...(padding === undefined ? [] : [padding]),
      ]),
      firstAudioCodeId: this.firstAudioCodeId,
      audioCodeCount: Math.min(this.audioCodeCount, codebookSize),
    };
  }

  #audioCodeId(code: number): number {
    if (!this.#isAudioCode(this.firstAudioCodeId + code)) {
      throw new EngineError("TOKENIZER", `The tokenizer in ${this.#directory} has no audio code ${code}.`);
    }
    return this.firstAudioCodeId + code;
  }

  #isAudioCode(id: number): boolean {
    return id >= this.firstAudioCodeId && id < this.firstAudioCodeId + this.audioCodeCount;
  }

  #audioCodeName(id: number): string | null {
    return this.#isAudioCode(id) ? audioCodeToken(id - this.firstAudioCodeId) : null;
  }

  #bytesOf(id: number): Uint8Array {
    return this.#bytes.bytes.subarray(this.#bytes.offsets[id] ?? 0, this.#bytes.offsets[id + 1] ?? 0);
  }
}

/** Concatenated bytes of all tokens, and the offset of each. */
interface TokenBytes {
  bytes: Uint8Array;
  /** The bytes of token `id` begin at offsets[id] and end before offsets[id + 1]. */
  offsets: Int32Array;
}

function tokenBytes(vocab: Record<string, number>, size: number): TokenBytes {
  const tokens = new Array<string>(size).fill("");
  let length = 0;
  for (const [token, id] of Object.entries(vocab)) {
    tokens[id] = token;
    length += token.length;
  }
  const bytes = new Uint8Array(length);
  const offsets = new Int32Array(size + 1);
  let end = 0;
  tokens.forEach((token, id) => {
    for (let index = 0; index < token.length; index++) {
      bytes[end++] = BYTE_OF_LETTER[token.charCodeAt(index)] ?? 0;
    }
    offsets[id + 1] = end;
  });
  return { bytes, offsets };
}

/**
 * Maps each character of GPT-2's byte alphabet to its byte. Printable Latin-1 characters stand for themselves.
 * Characters from U+0100 on stand for the other bytes.
 */
const BYTE_OF_LETTER = ((): Uint8Array => {
  const table = new Uint8Array(512);
  let next = 256;
  for (let byte = 0; byte < 256; byte++) {
    const printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    table[printable ? byte : next++] = byte;
  }
  return table;
})();

function highestId({ document, addedTokens }: TokenizerDefinition): number {
  let highest = -1;
  for (const id of Object.values(document.model.vocab)) highest = Math.max(highest, id);
  for (const { id } of addedTokens) highest = Math.max(highest, id);
  return highest;
}

function firstOfContiguous(audioCodes: AddedToken[], directory: string): number {
  const first = audioCodes.find(({ content }) => content === audioCodeToken(0))?.id ?? -1;
  const inPlace = ({ content, id }: AddedToken): boolean =>
    content === audioCodeToken(id - first) && id - first < audioCodes.length;
  if (!audioCodes.every(inPlace)) {
    throw new EngineError(
      "TOKENIZER",
      `The audio codes of the tokenizer in ${directory} are not contiguous.`,
    );
  }
  return first;
}
