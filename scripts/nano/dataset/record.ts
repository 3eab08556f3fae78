/** Record of a piece, a line of pieces.jsonl. Paths are relative to its folder. */
import type { Tokenizer } from "../../../src/engine/tokenizer.js";
import type { StemName } from "../compose/instruments.js";
import { metres, type Piece, secondsPerStep } from "../compose/piece.js";
import { describe } from "../words/description.js";
import { encodeRequest, encodeTasks, type Request, type TaskPrompts } from "./prompts.js";

export interface PieceRecord extends Request {
  id: string;
  seed: number;
  split: "train" | "heldout";
  genre: string;
  bpm: number;
  /** Canonical: "A minor". */
  keyScale: string;
  /** "2", "3", "4" or "6". */
  timeSignature: string;
  durationSeconds: number;
  sections: { name: string; startSeconds: number; endSeconds: number }[];
  mix: string;
  /** Empty where the stems of this piece were not kept; `tasks` then has none of them. */
  stems: Partial<Record<StemName, string>>;
  tasks: TaskPrompts;
  /** Other ways to ask for the same piece. */
  variants: Request[];
}

const requestsPerPiece = 6;
/** One seed in this many is held out; coprime to the number of genres, so that all are. */
const heldOutStride = 7;

export function isHeldOut(seed: number): boolean {
  return seed % heldOutStride === heldOutStride - 1;
}

export function pieceId(seed: number): string {
  return `piece-${String(seed).padStart(6, "0")}`;
}

export async function recordOf(piece: Piece, tokenizer: Tokenizer, stems: StemName[]): Promise<PieceRecord> {
  const id = pieceId(piece.seed);
  const descriptions = describe(piece, requestsPerPiece);
  const [first, ...variants] = await Promise.all(
    descriptions.map((description) => encodeRequest(tokenizer, description)),
  );
  const [description] = descriptions;
  if (first === undefined || description === undefined) throw new RangeError("a piece needs a request");
  const { keyScale, timeSignature } = description.metadata;
  return {
    id,
    seed: piece.seed,
    split: isHeldOut(piece.seed) ? "heldout" : "train",
    genre: piece.genre,
    bpm: piece.bpm,
    keyScale,
    timeSignature,
    durationSeconds: piece.durationSeconds,
    sections: sectionTimes(piece),
    mix: `${id}/mix.wav`,
    stems: Object.fromEntries(stems.map((stem) => [stem, `${id}/${stem}.wav`])),
    ...first,
    tasks: await encodeTasks(tokenizer, description, stems),
    variants,
  };
}

/** The final chord belongs to no section. */
function sectionTimes(piece: Piece): PieceRecord["sections"] {
  const barSeconds = metres[piece.metre].barSteps * secondsPerStep(piece);
  return piece.sections.map(({ name, firstBar, bars }) => ({
    name,
    startSeconds: firstBar * barSeconds,
    endSeconds: (firstBar + bars) * barSeconds,
  }));
}
