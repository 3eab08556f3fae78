/** The text that nano's tokenizer learns from: prompts of composed pieces, and wishes as people write them. */
import { readFileSync } from "node:fs";
import {
  instructionOf,
  lyricPrompt,
  TEXT_TO_MUSIC_INSTRUCTION,
  textPrompt,
} from "../../../src/engine/conditioning.js";
import { toThinkFields } from "../../../src/engine/metadata.js";
import { codesPrompt, formatPrompt, samplePrompt } from "../../../src/engine/prompts.js";
import { serializeThinkFields } from "../../../src/engine/think-block.js";
import type { PromptPart } from "../../../src/engine/tokenizer.js";
import { compose } from "../compose/compose.js";
import { type StemName, stemNames } from "../compose/instruments.js";
import { type Description, describe } from "../words/description.js";

/** Enough to draw each word of each genre many times. */
const pieces = 1200;
const sampleFiles = ["simple", "custom"].map(
  (name) => new URL(`../../../src/music/words/random-samples/${name}.json`, import.meta.url),
);

export function tokenizerCorpus(): string {
  const prompts = Array.from({ length: pieces }, (_, seed) => describe(compose(seed), 2))
    .flat()
    .flatMap((description, index) => promptsOf(description, stemNames[index % stemNames.length] ?? "bass"));
  const wishes = sampleFiles.flatMap((file) => textsWithin(JSON.parse(readFileSync(file, "utf8"))));
  return [...prompts, ...wishes].join("\n");
}

function promptsOf(description: Description, trackName: StemName): string[] {
  const { caption, lyrics, language, metadata } = description;
  const stemTasks = (["extract", "lego"] as const).map((task) =>
    instructionOf({ task, trackName, instruction: "", trackClasses: [], hasAudioCodes: false }),
  );
  const conditions = { ...description, instruction: TEXT_TO_MUSIC_INSTRUCTION };
  const yaml = serializeThinkFields(toThinkFields(metadata, language));
  return [
    textPrompt(conditions),
    ...stemTasks.map((instruction) => textPrompt({ ...conditions, instruction })),
    lyricPrompt(conditions),
    codesPrompt(caption, lyrics, yaml),
    samplePrompt(caption, true),
    formatPrompt(caption, lyrics),
  ].map(textOf);
}

function textOf(parts: readonly PromptPart[]): string {
  return parts.map((part) => ("text" in part ? part.text : "\n")).join("");
}

function textsWithin(value: unknown): string[] {
  if (typeof value === "string") return [value];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(textsWithin) : [];
}
