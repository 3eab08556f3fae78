/** The data set's folder: a folder a piece, whole or absent, and pieces.jsonl over all of them, and the tokenizer of their ids. */
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Tokenizer } from "../../../src/engine/tokenizer.js";
import type { Piece } from "../compose/piece.js";
import { Random } from "../compose/random.js";
import { renderPiece } from "../render/mix.js";
import type { Synthesiser } from "../render/synthesiser.js";
import { encodeWav } from "../render/wav.js";
import { learnMerges } from "../tokenizer/byte-pairs.js";
import { tokenizerCorpus } from "../tokenizer/corpus.js";
import { mergeCount, writeTokenizer } from "../tokenizer/files.js";
import { type PieceRecord, pieceId, recordOf } from "./record.js";

const recordName = "piece.json";
const indexName = "pieces.jsonl";
const wordsName = "words.jsonl";

export class DataSet {
  readonly directory: string;

  constructor(directory: string) {
    this.directory = directory;
    mkdirSync(directory, { recursive: true });
  }

  has(seed: number): boolean {
    return existsSync(join(this.directory, pieceId(seed), recordName));
  }

  /** @param stemShare 0 .. 1: how many of the pieces keep their stems */
  async add(piece: Piece, synthesiser: Synthesiser, tokenizer: Tokenizer, stemShare: number): Promise<void> {
    const { mix, stems } = await renderPiece(piece, synthesiser);
    const keepsStems = new Random(piece.seed + 3_000_017).chance(stemShare);
    const kept = keepsStems ? [...stems] : [];
    const record = await recordOf(
      piece,
      tokenizer,
      kept.map(([stem]) => stem),
    );
    const partial = join(this.directory, `${record.id}.part`);
    rmSync(partial, { recursive: true, force: true });
    mkdirSync(partial);
    writeFileSync(join(partial, "mix.wav"), encodeWav(mix));
    for (const [stem, audio] of kept) writeFileSync(join(partial, `${stem}.wav`), encodeWav(audio));
    writeFileSync(join(partial, recordName), JSON.stringify(record));
    renameSync(partial, join(this.directory, record.id));
  }

  /** The records of the pieces that are whole, in the order of their seeds. */
  records(): PieceRecord[] {
    return readdirSync(this.directory)
      .filter((name) => /^piece-\d+$/.test(name))
      .sort()
      .map((name) => JSON.parse(readFileSync(join(this.directory, name, recordName), "utf8")) as PieceRecord);
  }

  writeIndex(): void {
    this.#writeLines(indexName, this.records());
  }

  /** Their order is that of their numbers in training. */
  writeGenres(names: string[]): void {
    writeFileSync(join(this.directory, "genres.json"), `${JSON.stringify(names)}\n`);
  }

  hasWords(): boolean {
    return existsSync(join(this.directory, wordsName));
  }

  /** Records of pieces that are not rendered: the text encoder learns to read from them. */
  async writeWords(pieces: Iterable<Piece>, tokenizer: Tokenizer): Promise<void> {
    const records = Array.from(pieces, (piece) => recordOf(piece, tokenizer, []));
    this.#writeLines(wordsName, await Promise.all(records));
  }

  #writeLines(name: string, records: PieceRecord[]): void {
    const path = join(this.directory, name);
    writeFileSync(`${path}.part`, records.map((record) => `${JSON.stringify(record)}\n`).join(""));
    renameSync(`${path}.part`, path);
  }
}

/** Learns the tokenizer where the data set has none; returns its directory. */
export function ensureTokenizer(dataDirectory: string): string {
  const directory = join(dataDirectory, "tokenizer");
  if (!existsSync(join(directory, "tokenizer_config.json"))) {
    writeTokenizer(directory, learnMerges(tokenizerCorpus(), mergeCount), 0);
  }
  return directory;
}
