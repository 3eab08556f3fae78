/**
 * Reads tasks of older versions of this service. Requests may lack parameters that were added later. Before record
 * version 2 they are flat, and adapters may be beside the request: one, later several.
 */
import { grouped } from "../../parameters.js";
import { UPLOAD_KINDS } from "../audio/uploads.js";
import type { GenerationRequest } from "../request/generation-request.js";
import { type GenerationParameters, parameterGroups } from "../request/schema.js";
import { requestedSongs } from "../request/songs.js";
import { NOTHING_STATED } from "../song/stated-facts.js";
import type { Task } from "./store.js";

/** An object as older versions stored it. */
// biome-ignore lint/suspicious/noExplicitAny: older versions checked the values
type Stored = Record<string, any>;

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
const flatRequests = new WeakMap<GenerationRequest, Stored>();

/** Form in which an older version stored the request; undefined if it did not. */
export function flatRequestOf(request: GenerationRequest): Stored | undefined {
  return flatRequests.get(request);
}

const DEFAULTS = grouped(parameterGroups, {});

/** Adds parameters that are newer than the record, with their defaults. */
export function withNewParameters({ request, ...task }: Stored): Task {
  const groups = Object.entries(DEFAULTS).map(([name, defaults]) => [
    name,
    { ...defaults, ...request[name] },
  ]);
  return { ...task, request: { ...request, ...Object.fromEntries(groups) } } as Task;
}

export function fromOlderTask({ adapter, adapters, request, ...task }: Stored): Task {
  const beside = (adapters ?? (adapter && [adapter]))?.map(({ digest, files, entry, ...asked }: Stored) => ({
    ...{ ...asked, path: null, stored: { digest, files, entry } },
  }));
  const flat = { ...request, loras: request.loras ?? beside ?? null };
  const converted = fromFlatRequest(flat);
  flatRequests.set(converted, flat);
  return { ...task, request: converted } as Task;
}

function fromFlatRequest(flat: Stored): GenerationRequest {
  const { taskType, analysis, model, defaults, warnings = [], loras = null, callbackUrl = null } = flat;
  const { seeds = [], lmSeeds = [], audioCodes = null, trackName = "", trackClasses = [] } = flat;
  const { stated = NOTHING_STATED, sourceFacts = null, chosen = [] } = flat;
  const values = Object.fromEntries(Object.entries(flat).map(([name, value]) => [nameOf(name), value]));
  const groups = grouped(parameterGroups, values);
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
