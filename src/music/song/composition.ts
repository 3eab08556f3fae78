/** A song before it is rendered. */
import { UNKNOWN_LANGUAGE } from "../../engine/metadata.js";
import { INSTRUMENTAL_LYRICS, isInstrumentalTag } from "../../engine/prompts.js";
import type { Metadata, Seed } from "../../engine/types.js";
import { type GenerationRequest, type RequestedSong, wordsOf } from "../request/generation-request.js";
import type { LmOutput } from "../request/uses.js";
import { withStatedFacts } from "./stated-facts.js";

/** Caption, lyrics and metadata of a song before it is planned. */
export interface Composition {
  requested: RequestedSong;
  caption: string;
  lyrics: string;
  /** Language of the lyrics; null if not known yet. */
  language: string | null;
  metadata: Metadata;
  /** Whether the language model has already written the metadata, so that planning adds none. */
  isPlanned: boolean;
  written: ReadonlySet<LmOutput>;
}

export interface PlannedComposition extends Composition {
  language: string;
  /** Whether the language of the lyrics was known before planning. */
  isLanguageNamed: boolean;
  /** Caption for the renderer: as written by the language model, or `caption` if the language model wrote none. */
  renderCaption: string;
  /** Audio codes of the song; null: none. */
  codes: Int32Array | null;
  seconds: { metadata: number; codes: number };
}

/** Caption, lyrics and metadata that the request contains. */
export function clientComposition(
  request: GenerationRequest,
  requested: RequestedSong,
  hasLm: boolean,
  sourceSeconds: number | null,
): Composition {
  const seed = hasLm ? planningSeed(requested) : requested.seed;
  const words = wordsOf(request, requested);
  const { stated, bpm, keyScale, timeSignature, durationSeconds } = { ...request.facts, ...requested.own };
  const known = { bpm, keyScale, timeSignature };
  return {
    requested,
    caption: words.prompt,
    lyrics: words.lyrics,
    language: namedLanguage(words.vocalLanguage),
    metadata: withStatedFacts({ ...known, durationSeconds: sourceSeconds ?? durationSeconds }, stated, seed),
    isPlanned: false,
    written: new Set(),
  };
}

export function withInstrumentalTag(song: Composition): Composition {
  return isInstrumental(song.lyrics) ? { ...song, lyrics: INSTRUMENTAL_LYRICS } : song;
}

/** Seed for the language model. Songs of a task that have the same planning seed share a plan. */
export function planningSeed({ lmSeed, seed }: RequestedSong): Seed {
  return lmSeed ?? seed;
}

export function namedLanguage(language: string | null): string | null {
  return language === null || language === UNKNOWN_LANGUAGE ? null : language;
}

/** Whether the lyrics are blank, `[inst]` or `[instrumental]` in any letter case. */
export function isInstrumental(lyrics: string): boolean {
  return lyrics.trim() === "" || isInstrumentalTag(lyrics);
}
