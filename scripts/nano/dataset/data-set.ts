/** A folder of rendered pieces. */
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Tokenizer } from "../../../src/engine/tokenizer.js";
import { compose } from "../compose/compose.js";
import type { Piece } from "../compose/piece.js";
import { Random } from "../compose/random.js";
import { renderPiece } from "../render/mix.js";
import type { Stereo } from "../render/stereo.js";
import { Synthesiser } from "../render/synthesiser.js";
import { encodeWav } from "../render/wav.js";
import { createRecord, type PieceRecord, pieceId } from "./record.js";

/**
 * The published model. Training continues from this model, and the model's tokenizer encodes the prompts of all
 * records.
 */
export const shippedModel = fileURLToPath(new URL("../../../models/carillon-nano", import.meta.url));

/**
 * composerVersion identifies the notes, words and sound of all seeds. dataVersion also identifies token ids and
 * latents. Both are part of folder names in the cache. Change a version only if the output has changed.
 * test/versions.test.ts and training/test/test_latent_space.py fail if the output has changed.
 */
export const composerVersion = "e856dcb68301";
export const dataVersion = "ae903a3cbea8";

interface Wishes {
  /** Length of every piece. By default the seed of a piece determines it. */
  seconds?: number | undefined;
  /** Share of the pieces that keep their stems, from 0 to 1. */
  stemShare: number;
  onPiece: (piece: Piece) => void;
}

/**
 * Composes and renders pieces, each into its own folder. Skips finished pieces.
 * @returns the records of all pieces
 */
export async function makePieces(
  directory: string,
  seeds: readonly number[],
  { seconds, stemShare, onPiece }: Wishes,
): Promise<PieceRecord[]> {
  mkdirSync(directory, { recursive: true });
  const pathOf = (seed: number): string => join(directory, pieceId(seed), "piece.json");
  const missing = seeds.filter((seed) => !existsSync(pathOf(seed)));
  if (missing.length > 0) {
    const tokenizer = await Tokenizer.load(join(shippedModel, "text_encoder"));
    const synthesiser = new Synthesiser();
    for (const seed of missing) {
      const piece = compose(seed, seconds);
      const keepsStems = new Random(seed + 3_000_017).chance(stemShare);
      const { mix, stems } = await renderPiece(piece, synthesiser, keepsStems);
      const record = await createRecord(piece, tokenizer, [...stems.keys()]);
      writePiece(directory, record, new Map([["mix", mix], ...stems]));
      onPiece(piece);
    }
  }
  return seeds.map((seed) => JSON.parse(readFileSync(pathOf(seed), "utf8")) as PieceRecord);
}

/** Writes the folder of a piece atomically. */
function writePiece(directory: string, record: PieceRecord, sounds: Map<string, Stereo>): void {
  const partial = join(directory, `${record.id}.part`);
  rmSync(partial, { recursive: true, force: true });
  mkdirSync(partial);
  for (const [name, audio] of sounds) writeFileSync(join(partial, `${name}.wav`), encodeWav(audio));
  writeFileSync(join(partial, "piece.json"), JSON.stringify(record));
  renameSync(partial, join(directory, record.id));
}
