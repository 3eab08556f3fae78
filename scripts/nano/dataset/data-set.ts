/** A folder of rendered pieces: a folder per piece, written atomically, and pieces.jsonl with the records of all. */
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Tokenizer } from "../../../src/engine/tokenizer.js";
import type { Piece } from "../compose/piece.js";
import { Random } from "../compose/random.js";
import { renderPiece } from "../render/mix.js";
import type { Synthesiser } from "../render/synthesiser.js";
import { encodeWav } from "../render/wav.js";
import { type PieceRecord, pieceId, recordOf } from "./record.js";

const recordName = "piece.json";
const indexName = "pieces.jsonl";

/** Training goes on from it, and its text encoder's tokenizer gives the ids of all records. */
export const shippedModel = fileURLToPath(new URL("../../../models/carillon-nano", import.meta.url));

export function loadTokenizer(): Promise<Tokenizer> {
  return Tokenizer.load(join(shippedModel, "text_encoder"));
}

export class DataSet {
  readonly directory: string;

  constructor(directory: string) {
    this.directory = directory;
    mkdirSync(directory, { recursive: true });
  }

  has(seed: number): boolean {
    return existsSync(join(this.directory, pieceId(seed), recordName));
  }

  /** @param stemShare 0 .. 1: share of the pieces that keep their stems */
  async add(piece: Piece, synthesiser: Synthesiser, tokenizer: Tokenizer, stemShare: number): Promise<void> {
    const keepsStems = new Random(piece.seed + 3_000_017).chance(stemShare);
    const { mix, stems } = await renderPiece(piece, synthesiser, keepsStems);
    const record = await recordOf(piece, tokenizer, [...stems.keys()]);
    const partial = join(this.directory, `${record.id}.part`);
    rmSync(partial, { recursive: true, force: true });
    mkdirSync(partial);
    writeFileSync(join(partial, "mix.wav"), encodeWav(mix));
    for (const [stem, audio] of stems) writeFileSync(join(partial, `${stem}.wav`), encodeWav(audio));
    writeFileSync(join(partial, recordName), JSON.stringify(record));
    renameSync(partial, join(this.directory, record.id));
  }

  /** Records of complete pieces, in the order of their seeds. */
  records(): PieceRecord[] {
    return readdirSync(this.directory)
      .filter((name) => /^piece-\d+$/.test(name))
      .sort()
      .map((name) => JSON.parse(readFileSync(join(this.directory, name, recordName), "utf8")) as PieceRecord);
  }

  writeIndex(): void {
    const path = join(this.directory, indexName);
    const lines = this.records().map((record) => `${JSON.stringify(record)}\n`);
    writeFileSync(`${path}.part`, lines.join(""));
    renameSync(`${path}.part`, path);
  }
}
