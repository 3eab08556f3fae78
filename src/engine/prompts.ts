/**
 * Prompts of the language model, byte-exact, and the decoding programs (lists of `Segment`s) that constrain its
 * answers.
 */
import type { Segment } from "./addon.js";
import {
  BPM_RANGE,
  DURATION_SECONDS_RANGE,
  KEY_ACCIDENTALS,
  KEY_MODES,
  KEY_NOTES,
  LANGUAGES,
  type ThinkFields,
  TIME_SIGNATURES,
} from "./metadata.js";
import type { PromptPart, Tokenizer } from "./tokenizer.js";

const INSTRUCTIONS = {
  generate: "Generate audio semantic tokens based on the given conditions:",
  sample: "Expand the user's input into a more detailed and specific musical description:",
  format: "Format the user's input into a more detailed and specific musical description:",
  understand: "Understand the given musical conditions and describe the audio semantics accordingly:",
} as const;

export const NO_USER_INPUT = "NO USER INPUT";
export const INSTRUMENTAL_LYRICS = "[Instrumental]";

/** Whether the lyrics are a tag that asks for an instrumental. False for empty lyrics. */
export function isInstrumentalTag(lyrics: string): boolean {
  return ["[inst]", INSTRUMENTAL_LYRICS.toLowerCase()].includes(lyrics.trim().toLowerCase());
}

/** Phase 1 prompt; the model answers with a think block. */
export function metadataPrompt(caption: string, lyrics: string): PromptPart[] {
  return frame("generate", songText(caption, lyrics));
}

/** Phase 2 prompt. It ends with the metadata `yaml` in a think block. The model answers with audio codes. */
export function codesPrompt(caption: string, lyrics: string, yaml: string): PromptPart[] {
  return [...frame("generate", songText(caption, lyrics)), ...thinkBlock(yaml)];
}

/** Unconditional prompt for guidance in phase 2: the negative prompt, or NO_USER_INPUT if it is blank. */
export function unconditionalCodesPrompt(negativePrompt: string): PromptPart[] {
  return [
    ...frame("generate", negativePrompt.trim() === "" ? NO_USER_INPUT : negativePrompt),
    ...thinkBlock(""),
  ];
}

export function samplePrompt(query: string, instrumental: boolean): PromptPart[] {
  const wish = query.trim() === "" ? NO_USER_INPUT : query;
  return frame("sample", `${wish}\n\ninstrumental: ${instrumental}`);
}

export function formatPrompt(caption: string, lyrics: string): PromptPart[] {
  const heading = caption.trim() === "" ? NO_USER_INPUT : caption;
  const words = lyrics.trim() === "" ? INSTRUMENTAL_LYRICS : lyrics;
  return frame("format", `# Caption\n${heading}\n\n# Lyric\n${words}`);
}

export function understandPrompt(audioCodes: Iterable<number>): PromptPart[] {
  return frame(
    "understand",
    Array.from(audioCodes, (code) => ({ audioCode: code })),
  );
}

export function understandPromptWithoutAudio(): PromptPart[] {
  return frame("understand", NO_USER_INPUT);
}

function songText(caption: string, lyrics: string): string {
  return `# Caption\n${caption}\n\n# Lyric\n${lyrics}\n`;
}

function frame(mode: keyof typeof INSTRUCTIONS, user: string | PromptPart[]): PromptPart[] {
  return [
    { control: "<|im_start|>" },
    { text: `system\n# Instruction\n${INSTRUCTIONS[mode]}\n\n` },
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

export interface ThinkProgram {
  /** Fixed values; the model writes the others. */
  forced: ThinkFields;
  writeCaption: boolean;
  /** Whether the block has a language field. If false, even a forced language is left out. */
  writeLanguage: boolean;
  /** Whether lyrics follow the think block. If not, the program ends after the last field. */
  textAfterwards: boolean;
}

const MAX_CAPTION_TOKENS = 512;
/** Token limit of every value except the caption. */
const MAX_VALUE_TOKENS = 24;

/** Pattern of each value, with the space before the value and the line break after it. */
const VALUE_PATTERNS: Record<keyof ThinkFields, string> = {
  bpm: ` ${oneOf(integers(BPM_RANGE))}\n`,
  // A caption is one line, followed by indented lines as in YAML. The caption ends at the first line break where the
  // model's most likely token does not continue the caption. Backticks are excluded, because they start code fences.
  caption: " [^` ][^`]*\n(  [^`]*\n)*",
  duration: ` ${oneOf(integers(DURATION_SECONDS_RANGE))}\n`,
  keyscale: ` ${oneOf(KEY_NOTES)}${oneOf(KEY_ACCIDENTALS)}? ${oneOf(KEY_MODES)}\n`,
  language: ` ${oneOf(LANGUAGES)}\n`,
  timesignature: ` ${oneOf(TIME_SIGNATURES)}\n`,
};

/** Fields in alphabetical order, as in the training data of the model. */
const FIELD_ORDER = ["bpm", "caption", "duration", "keyscale", "language", "timesignature"] as const;

export async function thinkProgram(tokenizer: Tokenizer, program: ThinkProgram): Promise<Segment[]> {
  const skipped: Partial<Record<keyof ThinkFields, boolean>> = {
    caption: !program.writeCaption,
    language: !program.writeLanguage,
  };
  const segments: Segment[] = [tokens(await tokenizer.encode([{ control: "<think>" }, { text: "\n" }]))];
  for (const field of FIELD_ORDER.filter((name) => !skipped[name])) {
    segments.push(tokens(await tokenizer.encodeText(`${field}:`)));
    const value = program.forced[field];
    segments.push(
      value === undefined
        ? {
            kind: "pattern",
            pattern: VALUE_PATTERNS[field],
            // The language depends on the text only, so the seed must not change it.
            choose: field === "language" ? "greedy" : "sample",
            maxTokens: field === "caption" ? MAX_CAPTION_TOKENS : MAX_VALUE_TOKENS,
          }
        : tokens(await tokenizer.encodeText(` ${value}\n`)),
    );
  }
  if (program.textAfterwards) {
    segments.push(tokens(await tokenizer.encode([{ control: "</think>" }, { text: "\n\n" }])), {
      kind: "text",
    });
  }
  return joinTokens(segments);
}

function tokens(ids: Int32Array): Segment {
  return { kind: "tokens", ids };
}

/** Merges neighbouring forced tokens into one forward pass. */
function joinTokens(segments: Segment[]): Segment[] {
  const joined: Segment[] = [];
  for (const segment of segments) {
    const last = joined.at(-1);
    if (segment.kind === "tokens" && last?.kind === "tokens") {
      joined[joined.length - 1] = tokens(Int32Array.from([...last.ids, ...segment.ids]));
    } else {
      joined.push(segment);
    }
  }
  return joined;
}

function oneOf(literals: readonly (string | number)[]): string {
  return `(${literals.join("|")})`;
}

function integers({ min, max }: { min: number; max: number }): number[] {
  return Array.from({ length: max - min + 1 }, (_, index) => min + index);
}
