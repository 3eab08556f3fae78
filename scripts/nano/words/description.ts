/** Describes a piece in words: captions, lyrics and the metadata of prompts. */
import type { TextConditions } from "../../../src/engine/conditioning.js";
import { INSTRUMENTAL_LYRICS } from "../../../src/engine/prompts.js";
import type { Metadata } from "../../../src/engine/types.js";
import type { Piece } from "../compose/piece.js";
import { Random } from "../compose/random.js";
import { genreNamed } from "../genres/index.js";
import { writeCaption } from "./caption.js";

/** A prompt without its instruction. */
export type Description = Omit<TextConditions, "instruction">;

/** Writes `count` descriptions of the piece. Their languages alternate between "unknown" and "en". */
export function describePiece(piece: Piece, count: number): Description[] {
  const random = new Random(piece.seed + 2_000_003);
  const genre = genreNamed(piece.genre);
  const { bpm, key, metre, durationSeconds } = piece;
  return Array.from({ length: count }, (_, index) => ({
    caption: writeCaption(piece, genre, random),
    lyrics: writeLyrics(piece, random),
    // Clients that choose no language send "en", the service's default.
    language: index % 2 === 0 ? "unknown" : "en",
    metadata: { bpm, keyScale: key.name, timeSignature: metre.charAt(0), durationSeconds },
  }));
}

/** Lyrics of an instrumental piece: the instrumental tag, or the names of its sections in order. */
function writeLyrics({ sections }: Piece, random: Random): string {
  if (random.chance(0.4)) return INSTRUMENTAL_LYRICS;
  return sections.map(({ name }) => `[${name}]`).join(random.pick(["\n", "\n\n"]));
}

/** Metadata for a request without musical facts: only the length. */
export function withoutMusicalFacts({ durationSeconds }: Metadata): Metadata {
  return { bpm: null, keyScale: "", timeSignature: "", durationSeconds };
}
