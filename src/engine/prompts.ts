/** Prompts of the language model, exact to the byte (reference/lm.md 3). */
import type { PromptPart } from "./tokenizer.js";

const instructions = {
  generate: "Generate audio semantic tokens based on the given conditions:",
  sample: "Expand the user's input into a more detailed and specific musical description:",
  format: "Format the user's input into a more detailed and specific musical description:",
  understand: "Understand the given musical conditions and describe the audio semantics accordingly:",
} as const;

/** What stands where the client gave nothing. */
export const noUserInput = "NO USER INPUT";
/** The lyrics of a song that nobody sings. */
export const instrumentalLyrics = "[Instrumental]";

/** Phase 1: the model answers with a think block. */
export function metadataPrompt(caption: string, lyrics: string): PromptPart[] {
  return frame("generate", songText(caption, lyrics));
}

/**
 * Phase 2: the think block stands, the assistant's turn is open and the audio codes follow.
 * @param yaml the serialised metadata, "" for none
 */
export function codesPrompt(caption: string, lyrics: string, yaml: string): PromptPart[] {
  return [...frame("generate", songText(caption, lyrics)), ...thinkBlock(yaml)];
}

/** The unconditional side of phase 2's guidance; a negative prompt takes the place of "nothing". */
export function unconditionalCodesPrompt(negativePrompt: string): PromptPart[] {
  return [
    ...frame("generate", negativePrompt.trim() === "" ? noUserInput : negativePrompt),
    ...thinkBlock(""),
  ];
}

/** Expand a wish into a song sheet. */
export function samplePrompt(query: string, instrumental: boolean): PromptPart[] {
  const wish = query.trim() === "" ? noUserInput : query;
  return frame("sample", `${wish}\n\ninstrumental: ${instrumental}`);
}

/** Rewrite a caption and lyrics. */
export function formatPrompt(caption: string, lyrics: string): PromptPart[] {
  const heading = caption.trim() === "" ? noUserInput : caption;
  const words = lyrics.trim() === "" ? instrumentalLyrics : lyrics;
  return frame("format", `# Caption\n${heading}\n\n# Lyric\n${words}`);
}

/** Describe a recording, given as its audio codes. */
export function understandPrompt(audioCodes: Iterable<number>): PromptPart[] {
  return frame(
    "understand",
    Array.from(audioCodes, (code) => ({ audioCode: code })),
  );
}

function songText(caption: string, lyrics: string): string {
  return `# Caption\n${caption}\n\n# Lyric\n${lyrics}\n`;
}

function frame(mode: keyof typeof instructions, user: string | PromptPart[]): PromptPart[] {
  return [
    { control: "<|im_start|>" },
    { text: `system\n# Instruction\n${instructions[mode]}\n\n` },
    { control: "<|im_end|>" },
    { text: "\n" },
    { control: "<|im_start|>" },
    { text: "user\n" },
    ...(typeof user === "string" ? [{ text: user }] : user),
    { control: "<|im_end|>" },
    { text: "\n" },
    { control: "<|im_start|>" },
    { text: "assistant\n" },
  ];
}

function thinkBlock(yaml: string): PromptPart[] {
  return [{ control: "<think>" }, { text: `\n${yaml}\n` }, { control: "</think>" }, { text: "\n\n" }];
}
