/**
 * Inputs of the renderer: instruction, text prompt and lyric prompt with their token ids, and the lyric tokens to
 * timestamp.
 */

import { say } from "../notes.js";
import { meansUnset } from "../parameters.js";
import type { PromptIds, TaskType } from "./addon.js";
import { canonicalKeyScale, canonicalLanguage, canonicalTimeSignature } from "./metadata.js";
import { isInstrumentalTag } from "./prompts.js";
import type { PromptPart, Tokenizer } from "./tokenizer.js";
import type { LyricLine, Metadata } from "./types.js";

/** Instructions; the models were trained on these exact strings. */
export const TEXT_TO_MUSIC_INSTRUCTION = "Fill the audio semantic mask based on the given conditions:";
const COVER_INSTRUCTION = "Generate audio semantic tokens based on the given conditions:";

/** Stems known to the models. */
export const STEMS = [
  ...(["vocals", "backing_vocals", "drums", "bass", "guitar", "keyboard"] as const),
  ...(["percussion", "strings", "synth", "fx", "brass", "woodwinds"] as const),
] as const;

export interface TaskDescription {
  task: TaskType;
  /** Instruction that the client sent; "" selects the default of the task. */
  instruction: string;
  /** Stem that the task `extract` or `lego` works on; "" for none. */
  trackName: string;
  /** Stems that the task `complete` adds. */
  trackClasses: readonly string[];
  hasAudioCodes: boolean;
}

/** The client's instruction, or the task's default. */
export function instructionOf(description: TaskDescription): string {
  const { instruction, task, hasAudioCodes } = description;
  if (instruction.trim() !== "") return instruction.trim();
  const track = description.trackName.trim().toUpperCase();
  switch (task) {
    case "text2music":
      return hasAudioCodes ? COVER_INSTRUCTION : TEXT_TO_MUSIC_INSTRUCTION;
    case "cover":
      return COVER_INSTRUCTION;
    case "repaint":
      return "Repaint the mask area based on the given conditions:";
    case "extract":
      return `Extract the ${track === "" ? "" : `${track} `}track from the audio:`;
    case "lego":
      return `Generate the ${track === "" ? "" : `${track} `}track based on the audio context:`;
    case "complete": {
      const classes = description.trackClasses.map((name) => name.trim().toUpperCase()).filter(Boolean);
      return `Complete the input track${classes.length === 0 ? "" : ` with ${classes.join(" | ")}`}:`;
    }
  }
}

/**
 * Caption in the format of models trained on stems. Omits the caption of the whole song if the instruction is about a
 * segment.
 */
export function legoCaption(
  caption: string,
  globalCaption: string,
  instruction: string,
  chunkMask: "explicit" | "auto",
): string {
  const song = instruction.toLowerCase().includes("a segment") ? "" : `Global: ${globalCaption}\n`;
  return `${song}Local: ${caption}\nMask Control: ${chunkMask === "explicit"}`;
}

/** Control token that ends a prompt. Text from clients is never encoded as a control token. */
const END_OF_TEXT = "<|endoftext|>";
const MAX_TEXT_TOKENS = 256;
const MAX_LYRIC_TOKENS = 2048;

/** Duration that the prompt states if the song's duration is unknown. */
const UNKNOWN_DURATION_SECONDS = 30;

export interface TextConditions {
  instruction: string;
  caption: string;
  lyrics: string;
  language: string;
  metadata: Metadata;
}

/** @param warnings receives a line if the prompt is truncated */
export function encodeTextPrompt(
  tokenizer: Tokenizer,
  { instruction, caption, metadata }: TextConditions,
  warnings: string[] = [],
): Promise<Int32Array> {
  const text =
    `# Instruction\n${instruction}${instruction.endsWith(":") ? "" : ":"}\n\n` +
    `# Caption\n${captionBody(caption)}\n\n# Metas\n${metasBlock(metadata)}`;
  const parts = [{ text }, { control: END_OF_TEXT }, { text: "\n" }];
  return withFinalToken(tokenizer, parts, MAX_TEXT_TOKENS, "words of the prompt", warnings);
}

/** @param warnings receives a line if the lyrics are truncated */
export function encodeLyricPrompt(
  tokenizer: Tokenizer,
  { language, lyrics }: TextConditions,
  warnings: string[] = [],
): Promise<Int32Array> {
  const parts = [{ text: lyricHeading(language) + lyrics }, { control: END_OF_TEXT }];
  return withFinalToken(tokenizer, parts, MAX_LYRIC_TOKENS, "lyrics", warnings);
}

/** Heading of the lyric prompt. */
function lyricHeading(language: string): string {
  return `# Languages\n${canonicalLanguage(language) ?? language}\n\n# Lyric\n`;
}

/** Metadata block of the text prompt. Canonical values are written as in training data, others as the client did. */
function metasBlock({ bpm, timeSignature, keyScale, durationSeconds }: Metadata): string {
  const orUnset = (text: string) => (meansUnset(text) ? "N/A" : text.trim());
  return (
    `- bpm: ${bpm || "N/A"}\n` +
    `- timesignature: ${canonicalTimeSignature(timeSignature) ?? orUnset(timeSignature)}\n` +
    `- keyscale: ${canonicalKeyScale(keyScale) ?? orUnset(keyScale)}\n` +
    `- duration: ${Math.trunc(durationSeconds ?? UNKNOWN_DURATION_SECONDS)} seconds\n`
  );
}

/** Extracts the caption if the client sent a complete text prompt. */
function captionBody(caption: string): string {
  if (!caption.includes("# Instruction") || !caption.includes("# Caption")) return caption;
  const [, afterHeading = ""] = caption.split("# Caption");
  const [body = ""] = afterHeading.split("# Metas");
  return body.trim();
}

/** Truncates a prompt to `maxTokens` tokens. The last token is always the end token. */
async function withFinalToken(
  tokenizer: Tokenizer,
  parts: PromptPart[],
  maxTokens: number,
  field: "words of the prompt" | "lyrics",
  warnings: string[],
): Promise<Int32Array> {
  const whole = await tokenizer.encode(parts);
  const content = whole.subarray(0, maxTokens - 1);
  if (content.length < whole.length) {
    const percent = Math.round((100 * content.length) / whole.length);
    warnings.push(say("text_cut", { text: field, percent }));
  }
  return Int32Array.from([...content, tokenizer.controlId(END_OF_TEXT)]);
}

export type LyricSpan = NonNullable<PromptIds["timedLyrics"]>;

const SECTION_TAG = /^\[[^\]]*\]$/;

/** Range of the lyrics within their prompt, without heading and end token; null for instrumentals. */
export async function lyricSpan(
  tokenizer: Tokenizer,
  { lyrics, language }: { lyrics: string; language: string },
  prompt: Int32Array,
): Promise<LyricSpan | null> {
  if (lyrics.trim() === "" || isInstrumentalTag(lyrics)) return null;
  const { length: first } = await tokenizer.encodeText(lyricHeading(language));
  const count = prompt.indexOf(tokenizer.controlId(END_OF_TEXT)) - first;
  return count > 0 ? { first, count } : null;
}

/** Sung lines with timestamps, without blank lines and section tags. `seconds` has one value per token. */
export function sungLines(tokenizer: Tokenizer, words: Int32Array, seconds: Float32Array): LyricLine[] {
  const lines: LyricLine[] = [];
  let begin = 0;
  for (const [index, id] of words.entries()) {
    // A token with a line break ends its line: tokens never have text after a line break.
    if (index + 1 < words.length && !tokenizer.decode([id]).includes("\n")) continue;
    const text = tokenizer.decode(words.subarray(begin, index + 1)).trim();
    if (text !== "" && !SECTION_TAG.test(text)) lines.push({ seconds: seconds[begin] as number, text });
    begin = index + 1;
  }
  return lines;
}
