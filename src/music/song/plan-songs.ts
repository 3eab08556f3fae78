/** Plans songs with the language model: missing metadata, and audio codes. */
import { EngineError } from "../../engine/errors.js";
import { isComplete } from "../../engine/metadata.js";
import type { LanguageModelInfo, Plan, PlanRequest } from "../../engine/types.js";
import type { GenerationRequest } from "../request/generation-request.js";
import {
  type Composition,
  clientComposition,
  namedLanguage,
  type PlannedComposition,
  planningSeed,
  withInstrumentalTag,
} from "./composition.js";
import { writesCodes, writesTextBeforePlanning } from "./language-model.js";
import type { SongContext } from "./song-context.js";

/** A planned song whose language may still be unknown. */
type Planned = Omit<PlannedComposition, "language" | "isLanguageNamed"> & { language: string | null };

/** Plans all songs together, or one after another if the request forbids batches. */
export async function planTogether(
  context: SongContext,
  lm: LanguageModelInfo | null,
  songs: readonly Composition[],
): Promise<Planned[]> {
  const { request, progress } = context;
  const open = songs.filter(({ isPlanned }) => lm !== null && (writesCodes(request) || !isPlanned));
  if (lm === null || open.length === 0) return songs.map(unplanned);
  const isTogether = request.sampling.sharesBatch;
  const groups = isTogether ? [open] : open.map((one) => [one]);
  const planned = new Map<Composition, Planned>();
  for (const group of groups) {
    const [first] = group as [Composition];
    progress.beginSongs(songs.indexOf(first), isTogether ? songs.length : 1);
    const plans = await planGroup(context, lm, group);
    for (const [index, song] of group.entries()) planned.set(song, plans[index] as Planned);
  }
  return songs.map((song) => planned.get(song) ?? unplanned(song));
}

function unplanned(song: Composition): Planned {
  const { codes } = song.requested;
  return {
    ...song,
    renderCaption: song.caption,
    codes: codes && Int32Array.from(codes),
    seconds: { metadata: 0, codes: 0 },
  };
}

async function planGroup(
  context: SongContext,
  lm: LanguageModelInfo,
  songs: readonly Composition[],
): Promise<Planned[]> {
  const { request, planSongs, signal, progress, warnings } = context;
  try {
    const requests = songs.map((song) => planRequestOf(request, lm, song));
    const plans = await planSongs(lm, requests, { signal, onProgress: progress.enter("plan") });
    return plans.map((plan, index) => plannedOf(context, songs[index] as Composition, plan));
  } catch (error) {
    // Do without a plan: the renderer may accept a text that is too long for the language model.
    const isTooLong = error instanceof EngineError && error.code === "PROMPT_TOO_LONG";
    if (writesCodes(request) || !isTooLong) throw error;
    const [first, ...others] = songs as [Composition, ...Composition[]];
    if (others.length > 0) {
      const alone: Planned[] = [];
      for (const song of songs) alone.push(...(await planGroup(context, lm, [song])));
      return alone;
    }
    warnings.push(`the metadata were not planned: ${error.message}`);
    return [unplanned(first)];
  }
}

function planRequestOf(request: GenerationRequest, lm: LanguageModelInfo, song: Composition): PlanRequest {
  const { planning, taskType, sampling } = request;
  return {
    languageModel: lm.name,
    caption: song.caption,
    lyrics: song.lyrics,
    metadata: song.metadata,
    fillMetadata: !song.isPlanned,
    rewriteCaption: (planning.useCotCaption ?? lm.writesText) && taskType === "text2music",
    detectLanguage: planning.useCotLanguage && song.language === null,
    writeCodes: writesCodes(request),
    cfgScale: planning.cfgScale,
    negativePrompt: planning.negativePrompt,
    sampling,
    seed: planningSeed(song.requested),
  };
}

function plannedOf({ request, warnings }: SongContext, song: Composition, plan: Plan): Planned {
  warnings.push(...plan.warnings.map((remark) => `use_cot_caption: ${remark}`));
  const plain = unplanned(song);
  return {
    ...plain,
    metadata: plan.metadata,
    language: song.language ?? namedLanguage(plan.language),
    renderCaption: plan.caption || song.caption,
    codes: plan.audioCodes ?? plain.codes,
    written: new Set([
      ...song.written,
      ...(song.isPlanned || isComplete(song.metadata) ? [] : (["metadata"] as const)),
      ...(writesCodes(request) ? (["audio codes"] as const) : []),
    ]),
    seconds: plan.seconds,
  };
}

/**
 * Returns the plan requests that `compose` will make for the songs of a text2music task. Null for other tasks, for
 * tasks that write text before planning, and for requests that forbid planning songs together.
 */
export function planRequestsOf(request: GenerationRequest, lm: LanguageModelInfo): PlanRequest[] | null {
  const isText = request.analysis === null && request.taskType === "text2music";
  if (!isText || !request.sampling.sharesBatch || writesTextBeforePlanning(request)) return null;
  return request.songs.map((requested) =>
    planRequestOf(request, lm, withInstrumentalTag(clientComposition(request, requested, true, null))),
  );
}
