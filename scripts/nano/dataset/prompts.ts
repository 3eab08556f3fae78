/** Token ids of a piece's prompts, by the engine's own functions. */
import type { TaskType } from "../../../src/engine/addon.js";
import { encodeLyricPrompt, encodeTextPrompt, instructionOf } from "../../../src/engine/conditioning.js";
import { toThinkFields } from "../../../src/engine/metadata.js";
import { codesPrompt, metadataPrompt } from "../../../src/engine/prompts.js";
import { serializeThinkFields } from "../../../src/engine/think-block.js";
import type { Tokenizer } from "../../../src/engine/tokenizer.js";
import type { StemName } from "../compose/instruments.js";
import { type Description, withoutMusicalFacts } from "../words/description.js";

/** A way to ask for a piece, and the token ids of its prompts. */
export interface Request {
  caption: string;
  lyrics: string;
  language: string;
  textTokenIds: number[];
  /** The same where the client knows no tempo, key and metre. */
  bareTextTokenIds: number[];
  lyricTokenIds: number[];
  /** The language model's prompt, up to the assistant's turn. */
  lmPromptTokenIds: number[];
  /** Its answer before the audio codes: the think block. The codes and <|im_end|> follow. */
  lmThinkTokenIds: number[];
}

/** Text prompts of the tasks that have a source, for the first way to ask. */
export interface TaskPrompts {
  cover: number[];
  repaint: number[];
  /** By the stem that is wanted. */
  extract: Partial<Record<StemName, number[]>>;
  lego: Partial<Record<StemName, number[]>>;
  /** By the stem that is given; the classes asked for are all the others. */
  complete: Partial<Record<StemName, number[]>>;
}

export async function encodeRequest(tokenizer: Tokenizer, description: Description): Promise<Request> {
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

export async function encodeTasks(
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
