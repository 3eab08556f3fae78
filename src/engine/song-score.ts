/**
 * Scores how well a song fits its text. The language model is asked to describe the audio codes, and the song's
 * text is scored as the answer. The scores of caption and lyrics are relative to their scores without audio.
 */
import type { CallOptions, TokenScores } from "./addon.js";
import type { LanguageModel } from "./language-model.js";
import { toThinkFields } from "./metadata.js";
import { isInstrumentalTag, understandPrompt, understandPromptWithoutAudio } from "./prompts.js";
import { serializeThinkFields } from "./think-block.js";
import type { PromptPart } from "./tokenizer.js";
import type { ScoreRequest, SongScores } from "./types.js";

const WEIGHTS = { caption: 0.5, lyrics: 0.3, metadata: 0.2 } as const;
/** Tokens beyond this rank score 0. */
const RANKS = 10;
/** Difference of mean log probabilities that gives a score of 0.73. */
const SHARPNESS = 0.1;

/** @returns null if nothing can be scored */
export async function scoreSong(
  lm: LanguageModel,
  { audioCodes, caption, lyrics, language, metadata }: ScoreRequest,
  call: CallOptions,
): Promise<SongScores | null> {
  const { duration, bpm, keyscale, timesignature, language: known } = toThinkFields(metadata, language);
  const facts = [{ bpm }, { duration }, { keyscale }, { timesignature }, { language: known }]
    .filter((fields) => Object.values(fields).some((value) => value !== undefined))
    .map((fields) => thinkTarget(serializeThinkFields(fields)));
  const words = lm.writesText
    ? {
        ...(caption.trim() !== "" && { caption: thinkTarget(serializeThinkFields({ caption })) }),
        ...(lyrics.trim() !== "" && !isInstrumentalTag(lyrics) && { lyrics: lyricTarget(lyrics) }),
      }
    : {};
  const named = Object.values(words);
  if (facts.length + named.length === 0) return null;
  const heard = await lm.score(understandPrompt(audioCodes), [...facts, ...named], call);
  const unheard = named.length === 0 ? [] : await lm.score(understandPromptWithoutAudio(), named, call);
  const gains = heard.slice(facts.length).map((scores, i) => gainOf(scores, unheard[i] as TokenScores));
  const scores = {
    caption: null,
    lyrics: null,
    metadata: facts.length === 0 ? null : mean(heard.slice(0, facts.length).map(recallOf)),
    ...Object.fromEntries(Object.keys(words).map((name, i) => [name, gains[i] as number])),
  };
  return { total: totalOf(scores), ...scores };
}

function thinkTarget(yaml: string): PromptPart[] {
  return [{ control: "<think>" }, { text: `\n${yaml}\n` }, { control: "</think>" }, { text: "\n" }];
}

function lyricTarget(lyrics: string): PromptPart[] {
  return [
    { control: "<think>" },
    { text: "\n" },
    { control: "</think>" },
    { text: `\n# Lyric\n${lyrics}\n` },
  ];
}

/** Mean weight of the tokens. The weight of a token falls linearly with its rank. */
function recallOf({ ranks }: TokenScores): number {
  return mean(Array.from(ranks, (rank) => Math.max(0, 1 - (rank - 1) / RANKS)));
}

/** Score from 0 to 1; 0.5 if the audio makes no difference. */
function gainOf(heard: TokenScores, unheard: TokenScores): number {
  const gain = mean(heard.logProbabilities) - mean(unheard.logProbabilities);
  return 1 / (1 + Math.exp(-gain / SHARPNESS));
}

function totalOf(scores: Omit<SongScores, "total">): number {
  const present = (["caption", "lyrics", "metadata"] as const).flatMap((name) => {
    const score = scores[name];
    return score === null ? [] : [{ score, weight: WEIGHTS[name] }];
  });
  const weights = present.reduce((sum, { weight }) => sum + weight, 0);
  return present.reduce((sum, { score, weight }) => sum + score * weight, 0) / weights;
}

function mean(values: Iterable<number>): number {
  const list = Array.from(values);
  return list.reduce((sum, value) => sum + value, 0) / list.length;
}
