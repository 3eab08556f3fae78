/**
 * Converts tasks in records of versions before 2. Their requests are flat and may lack parameters; adapters may be beside
 * the request: one, later several.
 */
import type { Seed } from "../../engine/types.js";
import type { Fields } from "../../parameters.js";
import { UPLOAD_KINDS, type UploadKind } from "../audio/uploads.js";
import { type AudioInput, type GenerationRequest, grouped } from "../request/generation-request.js";
import type { RequestedAdapter } from "../request/loras.js";
import type { GenerationParameters } from "../request/schema.js";
import { requestedSongs } from "../request/songs.js";
import type { RequestedSeeds } from "../song/seeds.js";
import { type MusicalFacts, NOTHING_STATED, type StatedFacts } from "../song/stated-facts.js";
import type { StoredAdapter } from "../storage/stored-adapter.js";
import type { Task } from "./store.js";

type FlatRequest = Fields &
  Pick<GenerationRequest, "taskType" | "analysis" | "model" | "warnings" | "defaults"> &
  Partial<Pick<GenerationRequest, "callbackUrl" | "loras">> & {
    seeds?: Seed[];
    lmSeeds?: RequestedSeeds;
    audioCodes?: number[][] | null;
    trackName?: string;
    trackClasses?: string[];
    stated?: StatedFacts;
    sourceFacts?: MusicalFacts;
    chosen?: string[];
  } & { [Kind in UploadKind]?: Omit<AudioInput, "kind"> | null };

type OlderAdapter = StoredAdapter & Omit<RequestedAdapter, "path" | "stored">;

export interface OlderTask extends Omit<Task, "request"> {
  request: FlatRequest;
  adapter?: OlderAdapter;
  adapters?: OlderAdapter[];
}

/** Names of parameters in flat requests that differ from those of today. */
const NAMES: Readonly<Record<string, keyof GenerationParameters>> = {
  audioDurationSeconds: "durationSeconds",
  lmModelPath: "languageModel",
  lmCfgScale: "cfgScale",
  lmNegativePrompt: "negativePrompt",
  lmTemperature: "temperature",
  lmTopK: "topK",
  lmTopP: "topP",
  lmMinP: "minP",
  lmRepetitionPenalty: "repetitionPenalty",
  constrainedDecoding: "constrained",
  constrainedDecodingDebug: "debug",
  allowLmBatch: "sharesBatch",
};

const nameOf = (older: string) => (NAMES[older] ?? older) as keyof GenerationParameters;

/** Flat form of converted requests. */
const flatRequests = new WeakMap<GenerationRequest, FlatRequest>();

/** Form in which an older version stored the request; undefined if it did not. */
export function flatRequestOf(request: GenerationRequest): FlatRequest | undefined {
  return flatRequests.get(request);
}

export function fromOlderTask({ adapter, adapters, request, ...task }: OlderTask): Task {
  const beside = (adapters ?? (adapter && [adapter]))?.map(({ digest, files, entry, ...asked }) => ({
    ...{ ...asked, path: null, stored: { digest, files, entry } },
  }));
  const flat = { ...request, loras: request.loras ?? beside ?? null };
  const converted = fromFlatRequest(flat);
  flatRequests.set(converted, flat);
  return { ...task, request: converted };
}

function fromFlatRequest(flat: FlatRequest): GenerationRequest {
  const { taskType, analysis, model, defaults, warnings = [], loras = null, callbackUrl = null } = flat;
  const { seeds = [], lmSeeds = [], audioCodes = null, trackName = "", trackClasses = [] } = flat;
  const { stated = NOTHING_STATED, sourceFacts = null, chosen = [] } = flat;
  const groups = grouped(
    Object.fromEntries(Object.entries(flat).map(([name, value]) => [nameOf(name), value])),
  );
  const inputs = UPLOAD_KINDS.flatMap((kind) => {
    const input = flat[kind];
    return input ? { ...input, kind } : [];
  });
  const inputOf = (role: "source" | "reference") => inputs.find(({ kind }) => kind.startsWith(role)) ?? null;
  return {
    ...groups,
    ...{ taskType, analysis, model, loras, callbackUrl },
    facts: { ...groups.facts, stated, source: sourceFacts },
    source: inputOf("source"),
    reference: inputOf("reference"),
    songs: requestedSongs({ taskType, lmSeeds, audioCodes, trackName, trackClasses }, seeds),
    chosen: chosen.map(nameOf),
    ...(defaults && { defaults }),
    warnings,
  };
}
