/**
 * Record of a piece: a line of pieces.jsonl. Paths are relative to the folder of that file. The engine's own
 * functions compute the token ids.
 */
import type { TaskType } from "../../../src/engine/addon.js";
import { encodeLyricPrompt, encodeTextPrompt, instructionOf } from "../../../src/engine/conditioning.js";
import { toThinkFields } from "../../../src/engine/metadata.js";
import { codesPrompt, metadataPrompt } from "../../../src/engine/prompts.js";
import { serializeThinkFields } from "../../../src/engine/think-block.js";
import type { Tokenizer } from "../../../src/engine/tokenizer.js";
import type { StemName } from "../compose/instruments.js";
import { metres, type Piece, secondsPerStep } from "../compose/piece.js";
import { type Description, describePiece, withoutMusicalFacts } from "../words/description.js";

/** A request for a piece, and the token ids of its prompts. */
interface Request {
  caption: string;
  lyrics: string;
  language: string;
  textTokenIds: number[];
  /** Token ids of the text prompt without tempo, key and metre. */
  bareTextTokenIds: number[];
  lyricTokenIds: number[];
  /** The language model's prompt, up to the assistant's turn. */
  lmPromptTokenIds: number[];
  /** The think block of the language model's answer. The audio codes follow the think block. */
  lmThinkTokenIds: number[];
}

/**
 * Token ids of the text prompts for tasks with source audio. All contain the caption of the record's own
 * request.
 */
interface TaskPrompts {
  cover: number[];
  repaint: number[];
  /** Extraction prompts. Each key is the stem to extract. */
  extract: Partial<Record<StemName, number[]>>;
  /** Prompts that add a stem. Each key is the stem to add. */
  lego: Partial<Record<StemName, number[]>>;
  /** Prompts that complete one stem to a song. Each key is the stem in the source; the prompt asks for the others. */
  complete: Partial<Record<StemName, number[]>>;
}

export interface PieceRecord extends Request {
  id: string;
  seed: number;
  split: "train" | "heldout";
  genre: string;
  bpm: number;
  /** Canonical spelling, such as "A minor". */
  keyScale: string;
  /** "2", "3", "4" or "6". */
  timeSignature: string;
  durationSeconds: number;
  sections: { name: string; startSeconds: number; endSeconds: number }[];
  mix: string;
  /** Paths of the stem files. If the stems were not kept, `stems` is empty and `tasks` has no prompts for stems. */
  stems: Partial<Record<StemName, string>>;
  tasks: TaskPrompts;
  /** Other requests for the same piece. */
  variants: Request[];
}

const requestsPerPiece = 12;
/**
 * Distance between held-out seeds. It is coprime to the number of genres, so that every genre has held-out
 * pieces.
 */
const heldOutStride = 7;

export function isHeldOut(seed: number): boolean {
  return seed % heldOutStride === heldOutStride - 1;
}

export function pieceId(seed: number): string {
  return `piece-${String(seed).padStart(6, "0")}`;
}

export async function createRecord(
  piece: Piece,
  tokenizer: Tokenizer,
  stems: StemName[],
): Promise<PieceRecord> {
  const id = pieceId(piece.seed);
  const descriptions = describePiece(piece, requestsPerPiece);
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

/** Start and end of each section. The final chord belongs to no section. */
function sectionTimes(piece: Piece): PieceRecord["sections"] {
  const barSeconds = metres[piece.metre].barSteps * secondsPerStep(piece);
  return piece.sections.map(({ name, firstBar, bars }) => ({
    name,
    startSeconds: firstBar * barSeconds,
    endSeconds: Math.min((firstBar + bars) * barSeconds, piece.durationSeconds),
  }));
}

async function encodeRequest(tokenizer: Tokenizer, description: Description): Promise<Request> {
  const { caption, lyrics, language, metadata } = description;
  const conditions = { ...description, instruction: instruction("text2music") };
  const bare = { ...conditions, metadata: withoutMusicalFacts(metadata) };
  const yaml = serializeThinkFields({ ...toThinkFields(metadata, language), caption });
  const [text, bareText, lyricText, prompt, answered] = await Promise.all([
    encodeTextPrompt(tokenizer, conditions),
    encodeTextPrompt(tokenizer, bare),
    encodeLyricPrompt(tokenizer, conditions),
    tokenizer.encode(metadataPrompt(caption, lyrics)),
    tokenizer.encode(codesPrompt(caption, lyrics, yaml)),
  ]);
  return {
    caption,
    lyrics,
    language,
    textTokenIds: [...text],
    bareTextTokenIds: [...bareText],
    lyricTokenIds: [...lyricText],
    lmPromptTokenIds: [...prompt],
    lmThinkTokenIds: [...answered.subarray(prompt.length)],
  };
}

async function encodeTasks(
  tokenizer: Tokenizer,
  description: Description,
  stems: StemName[],
): Promise<TaskPrompts> {
  const encode = async (task: TaskType, trackName = "", trackClasses: string[] = []): Promise<number[]> => {
    const conditions = { ...description, instruction: instruction(task, trackName, trackClasses) };
    return [...(await encodeTextPrompt(tokenizer, conditions))];
  };
  const byStem = async (ids: (stem: StemName) => Promise<number[]>) =>
    Object.fromEntries(await Promise.all(stems.map(async (stem) => [stem, await ids(stem)])));
  const without = (given: StemName): StemName[] => stems.filter((stem) => stem !== given);
  return {
    cover: await encode("cover"),
    repaint: await encode("repaint"),
    extract: await byStem((stem) => encode("extract", stem)),
    lego: await byStem((stem) => encode("lego", stem)),
    complete: await byStem((given) => encode("complete", "", without(given))),
  };
}

function instruction(task: TaskType, trackName = "", trackClasses: string[] = []): string {
  return instructionOf({ task, trackName, trackClasses, instruction: "", hasAudioCodes: false });
}
