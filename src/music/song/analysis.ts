/**
 * Analysis tasks. They return audio codes of a recording, a description of a recording, or metadata that suits caption
 * and lyrics.
 */
import { audioCodeText } from "../../engine/audio-code-text.js";
import { detectLanguage } from "../../engine/language.js";
import { UNKNOWN_METADATA } from "../../engine/metadata.js";
import type { LanguageModelInfo, Plan } from "../../engine/types.js";
import type { SongResult } from "../queue/store.js";
import type { RequestedSong } from "../request/generation-request.js";
import { planningSeed } from "./composition.js";
import type { ReadySlot } from "./prepare.js";
import type { Recordings } from "./recordings.js";
import type { SongContext } from "./song-context.js";
import { metasOf } from "./song-record.js";
import { withStatedFacts } from "./stated-facts.js";

/** Sampling options for describing a recording. The temperature is low, so that descriptions hardly vary. */
const UNDERSTANDING = { temperature: 0.3, topK: 0, topP: 1, minP: 0, repetitionPenalty: 1 };

function withoutSongs({ request, warnings }: SongContext) {
  const { prompt, lyrics } = request.words;
  const nothing = { caption: "", vocalLanguage: "", generationInfo: "", lmModel: "" };
  return { prompt, lyrics, ...nothing, seeds: [], audioFiles: [], warnings };
}

/**
 * Returns the audio codes of the source and, for the analysis `full`, a description of it.
 * @throws NativeError, EngineError, or the reason of `context.signal` if aborted
 */
export async function analyzeSource(
  context: SongContext,
  { source }: Recordings,
  lm: LanguageModelInfo | null,
  { slot, model }: ReadySlot,
): Promise<SongResult> {
  const { engine, request, signal, progress } = context;
  // Cannot happen: the parser refuses an analysis without a source, or with latents.
  if (source === null || source.audio === null) throw new Error("src_audio is missing");
  const plain = { ...withoutSongs(context), ditModel: model };
  const codes = await engine.renderer.encodeCodes(slot, source.audio, {
    ...{ signal, onProgress: progress.enter("codes") },
  });
  const audio_codes = audioCodeText(codes);
  if (request.analysis === "codes") {
    const status_message = "Audio Codes Extraction Success";
    const files = { audio_paths: [], raw_audio_paths: [], first_audio_path: null };
    return { ...plain, metas: {}, analysis: { status_message, audio_codes, ...files } };
  }
  const { constrained, debug } = request.sampling;
  const { caption, lyrics, language, warnings, ...metadata } = await engine.planner.understand(
    {
      languageModel: lm?.name ?? null,
      audioCodes: codes,
      metadata: { ...UNKNOWN_METADATA, durationSeconds: source.seconds },
      sampling: { ...UNDERSTANDING, constrained, debug },
      seed: planningSeed(request.songs[0] as RequestedSong),
    },
    { signal, onProgress: progress.enter("understand") },
  );
  context.warnings.push(...warnings);
  const metas = metasOf(request, metadata, source.seconds);
  const { bpm, keyscale, timesignature, duration } = metas;
  return {
    ...plain,
    ...{ prompt: caption, lyrics, metas, lmModel: lm?.name ?? "" },
    analysis: {
      status_message: "Full Hardware Analysis Success",
      prompt: caption,
      lyrics,
      ...{ bpm, keyscale, timesignature, duration },
      genre: "",
      language,
      audio_codes,
      audio_paths: [],
    },
  };
}

/**
 * Returns metadata that suits caption and lyrics. Keeps facts that the caption states. Ignores metadata that the
 * client set.
 */
export async function describeWords(context: SongContext, lm: LanguageModelInfo | null): Promise<SongResult> {
  const { engine, request, signal, progress } = context;
  const { words, facts, planning, sampling } = request;
  const seed = planningSeed(request.songs[0] as RequestedSong);
  const planRequest = {
    languageModel: lm?.name ?? null,
    caption: words.prompt,
    lyrics: words.lyrics,
    metadata: withStatedFacts(UNKNOWN_METADATA, facts.stated, seed),
    fillMetadata: true,
    rewriteCaption: false,
    detectLanguage: planning.useCotLanguage,
    writeCodes: false,
    cfgScale: 1,
    negativePrompt: "",
    sampling,
    seeds: [seed],
  };
  const call = { signal, onProgress: progress.enter("plan") };
  const [plan] = (await engine.planner.planSongs([planRequest], call)) as [Plan];
  const metas = metasOf(request, plan.metadata, plan.metadata.durationSeconds);
  return {
    ...withoutSongs(context),
    metas,
    lmModel: lm?.name ?? "",
    ditModel: "None (Analysis Only)",
    analysis: {
      bpm: metas.bpm,
      keyscale: metas.keyscale,
      timesignature: metas.timesignature,
      duration: metas.duration,
      language: plan.language ?? (await detectLanguage(words.lyrics)) ?? "unknown",
    },
  };
}
