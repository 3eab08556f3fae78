/** The lyrics of a piece that nobody sings: the word for that, or its sections in their order. */
import { INSTRUMENTAL_LYRICS } from "../../../src/engine/prompts.js";
import type { Piece } from "../compose/piece.js";
import type { Random } from "../compose/random.js";

export function writeLyrics({ sections }: Piece, random: Random): string {
  if (random.chance(0.4)) return INSTRUMENTAL_LYRICS;
  return sections.map(({ name }) => `[${name}]`).join(random.pick(["\n", "\n\n"]));
}
