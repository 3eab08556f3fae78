/**
 * Parses the fields of a body into a GenerationRequest. Numbers out of range are clamped, or refused with
 * SVC_RANGE_POLICY=refuse. Wrong types, NaN and unknown task types are always refused. Every value that is changed
 * or ignored adds a line to `warnings`. Seeds are drawn here, so that a task makes the same songs if it is
 * restarted.
 */
import { isDeepStrictEqual } from "node:util";
import type { RangePolicy } from "../../config.js";
import { canonicalKeyScale, LANGUAGES, UNKNOWN_METADATA } from "../../engine/metadata.js";
import { INSTRUMENTAL_LYRICS } from "../../engine/prompts.js";
import type { Seed, SlotState } from "../../engine/types.js";
import { describe, type Fields, namesOf } from "../../parameters.js";
import { type Upload, type UploadKind, type Uploads, uploadFieldName, uploadKind } from "../audio/uploads.js";
import { RequestError } from "../errors.js";
import { assignSeeds, type RequestedSeeds } from "../song/seeds.js";
import { NOTHING_STATED, type StatedFacts, statedFacts } from "../song/stated-facts.js";
import { readCodes } from "./audio-codes.js";
import { nameInWarnings, undecidedAtSubmission, unusedAtSubmission, warningsOf } from "./effects.js";
import { FieldSources, parseField, parseObject } from "./fields.js";
import { toRequestedAdapter } from "./loras.js";
import { checkSampleRate } from "./output-parameters.js";
import {
  type Analysis,
  type AudioInput,
  type GenerationParameters,
  type GenerationRequest,
  generationSchema,
  generationSchemaFor,
  isCoverWithoutCodes,
} from "./schema.js";
import { makesStems, normalizeTracks } from "./stems.js";
import { unknownFieldWarnings } from "./unknown-fields.js";

export interface GenerationContext {
  rangePolicy: RangePolicy;
  /** Returns the slot that holds a model; null: the slot of the default model. */
  slotOf: (model: string | null) => Pick<SlotState, "isTurbo" | "codebookSize">;
  uploads: Uploads;
  drawSeed: () => Seed;
  /** Defaults of the endpoint that differ from the schema's. */
  defaults?: Fields | undefined;
}

/** @throws RequestError naming the invalid field */
export function parseGenerationRequest(fields: Fields, context: GenerationContext): GenerationRequest {
  const warnings: string[] = [];
  const { parameters: sent, chosen } = parseParameters(fields, context, warnings);
  // The list repainting_windows replaces the single window of repainting_start and repainting_end.
  const windows = sent.repaintingWindows.length > 0 && {
    repaintingStartSeconds: 0,
    repaintingEndSeconds: null,
  };
  const parameters = { ...sent, ...normalizeTracks(sent, warnings), ...windows };
  warnings.push(...unknownFieldWarnings(fields));
  warnOfUnknownTerms(parameters, warnings);
  const analysis = analysisOf(parameters);
  const audioCodes = codesInUse({ ...parameters, analysis }, context);
  const hasCodes = audioCodes !== null;
  const recordings = recordingsOf({ ...parameters, analysis, hasCodes }, context.uploads);
  const latents = {
    isSource: recordings.sourceLatents !== null,
    isReference: recordings.referenceLatents !== null,
  };
  const unused = unusedAtSubmission(chosen, { ...sent, analysis, hasCodes, latents });
  warnings.push(...warningsOf(unused));
  if (analysis === null) {
    const { taskType, thinking } = parameters;
    if (thinking && (taskType === "lego" || taskType === "complete")) {
      warnings.push(`thinking writes no audio codes: task_type ${taskType} uses a source`);
    }
    warnOfExtraSeeds(parameters, warnings);
  }
  const stated = statedIn({ ...parameters, analysis, hasCodes }, warnings);
  checkIntervals(parameters);
  if (analysis === null) checkOutput(parameters, warnings);

  const {
    instrumental,
    seed: _seed,
    useRandomSeed: _useRandomSeed,
    useAudioCodes,
    loras,
    referenceAudioPath,
    srcAudioPath,
    refLatentsPath,
    srcLatentsPath,
    analysisOnly,
    fullAnalysisOnly,
    extractCodesOnly,
    ...request
  } = parameters;
  return {
    ...request,
    ...recordings,
    lyrics: instrumental ? INSTRUMENTAL_LYRICS : request.lyrics,
    audioDurationSeconds:
      recordings.sourceAudio === null && recordings.sourceLatents === null
        ? request.audioDurationSeconds
        : null,
    seeds: assignSeeds(requestedSeedsOf(parameters), request.batchSize, context.drawSeed),
    audioCodes,
    loras: loras === null ? null : loras.map(toRequestedAdapter),
    analysis,
    stated,
    chosen: analysis === null ? undecidedAtSubmission(chosen, unused) : [],
    ...(context.defaults && { defaults: context.defaults }),
    warnings,
  };
}

function parseParameters(
  fields: Fields,
  context: GenerationContext,
  warnings: string[],
): { parameters: GenerationParameters; chosen: (keyof GenerationParameters)[] } {
  const { defaults = {} } = context;
  const sources = new FieldSources(fields, warnings, defaults);
  const model = parseField(generationSchema.shape.model, sources, context.rangePolicy, []);
  const taskType = parseField(generationSchema.shape.taskType, sources, context.rangePolicy, []);
  const schema = generationSchemaFor(context.slotOf(model).isTurbo, taskType);
  const sent = parseObject(schema, sources, context.rangePolicy, warnings);
  const isNofsq = isCoverWithoutCodes(sources.find(namesOf(generationSchema.shape.taskType))?.value);
  const parameters = isNofsq ? { ...sent, coverNofsq: true } : sent;
  const unset = parseObject(generationSchema, new FieldSources(defaults), context.rangePolicy, []);
  return { parameters, chosen: changedParameters(parameters, unset, context.uploads) };
}

/** Parameters that differ from their defaults in `unset`. An uploaded file counts as its path parameter. */
function changedParameters(
  parameters: GenerationParameters,
  unset: GenerationParameters,
  uploads: Uploads,
): (keyof GenerationParameters)[] {
  const keys = Object.keys(generationSchema.shape) as (keyof GenerationParameters)[];
  return keys.filter((key) => {
    const kind = uploadKind(nameInWarnings(key));
    if (kind !== null && uploads[kind] !== null) return true;
    // Some clients always send true, because the published API defaults to true.
    if (key === "useCotCaption" && parameters[key] === true) return false;
    return !isDeepStrictEqual(parameters[key], unset[key]);
  });
}

/** With `track_classes`, a single seed applies to all stems. Otherwise it applies only to the first song. */
function requestedSeedsOf({
  useRandomSeed,
  seed,
  taskType,
  trackClasses,
}: GenerationParameters): RequestedSeeds {
  if (useRandomSeed) return [];
  const [first = null] = seed;
  const isShared = seed.length === 1 && makesStems(taskType) && trackClasses.length > 0;
  return isShared ? trackClasses.map(() => first) : seed;
}

/** Warns about musical keys and languages that the models were not trained on. Their values stay unchanged. */
function warnOfUnknownTerms({ keyScale, vocalLanguage }: GenerationParameters, warnings: string[]): void {
  if (keyScale !== "" && canonicalKeyScale(keyScale) === undefined) {
    warnings.push(`key_scale ${describe(keyScale)} is unknown to the models: use a key such as "F# minor"`);
  }
  if (vocalLanguage !== null && !LANGUAGES.includes(vocalLanguage)) {
    warnings.push(
      `vocal_language ${describe(vocalLanguage)} is unknown to the models: use one of ${LANGUAGES.join(", ")}`,
    );
  }
}

/** Returns the analysis that the flags select. If several flags are set, the cheapest analysis wins. */
function analysisOf(parameters: GenerationParameters): Analysis | null {
  if (parameters.extractCodesOnly) return "codes";
  if (parameters.fullAnalysisOnly) return "full";
  return parameters.analysisOnly ? "metadata" : null;
}

/**
 * Returns the audio codes of the client if the task uses them, else null. A task uses the codes if `use_audio_codes`
 * or `thinking` is set. In a cover the codes replace the source. Other task types with a source ignore the codes.
 * Unused codes are not parsed.
 */
function codesInUse(
  parameters: GenerationParameters & { analysis: Analysis | null },
  { slotOf }: GenerationContext,
): number[][] | null {
  const { analysis, audioCodes, taskType, thinking, useAudioCodes, batchSize, model } = parameters;
  const isTask = analysis === null && (taskType === "text2music" || taskType === "cover");
  if (audioCodes === null || !isTask || !(thinking || useAudioCodes)) return null;
  return readCodes(audioCodes, batchSize, slotOf(model).codebookSize);
}

function warnOfExtraSeeds(parameters: GenerationParameters, warnings: string[]): void {
  const { useRandomSeed, seed, lmSeeds, batchSize } = parameters;
  const lists = { seed: useRandomSeed ? [] : seed, lm_seed: lmSeeds };
  for (const [name, { length }] of Object.entries(lists)) {
    if (length <= batchSize) continue;
    warnings.push(`${name} holds ${length} seeds for batch_size ${batchSize}: extra seeds were ignored`);
  }
}

/**
 * Returns the facts that the prompt states. A genre in the prompt implies its usual tempo only if the task has neither
 * a source nor audio codes.
 */
function statedIn(needs: RecordingNeeds & GenerationParameters, warnings: string[]): StatedFacts {
  const { analysis, prompt, sampleQuery, taskType, hasCodes } = needs;
  if (analysis === "metadata") return statedFacts(prompt, UNKNOWN_METADATA, true, warnings);
  if (analysis !== null) return NOTHING_STATED;
  const isWholeSong = taskType === "text2music" && !hasCodes;
  const words = isWholeSong && sampleQuery !== "" ? sampleQuery : prompt;
  return statedFacts(words, needs, isWholeSong, warnings);
}

/** Checks the repaint window and the guidance interval. The length of the source is not known yet. */
function checkIntervals(parameters: GenerationParameters): void {
  const { taskType, repaintingStartSeconds: start, repaintingEndSeconds: end } = parameters;
  if ((taskType === "repaint" || taskType === "lego") && end !== null && start >= end) {
    throw new RequestError(`repainting_start must be below repainting_end, got ${start} and ${end}`);
  }
  const { cfgIntervalStart: from, cfgIntervalEnd: to } = parameters;
  if (from > to) {
    throw new RequestError(`cfg_interval_start must not be above cfg_interval_end, got ${from} and ${to}`);
  }
}

function checkOutput(parameters: GenerationParameters, warnings: string[]): void {
  const { audioFormat, normalizationDb, taskType } = parameters;
  checkSampleRate(audioFormat, parameters);
  if (normalizationDb !== null && taskType === "repaint") {
    warnings.push("normalization_db changes the level of the whole song, including parts that repaint keeps");
  }
}

type RecordingNeeds = Pick<
  GenerationParameters,
  "taskType" | "srcAudioPath" | "referenceAudioPath" | "srcLatentsPath" | "refLatentsPath"
> & {
  analysis: Analysis | null;
  /** Whether audio codes of the client replace the source. */
  hasCodes: boolean;
};

/**
 * Returns the recordings that the task uses. Latents take precedence over audio, and uploads over paths. A source
 * that the task does not need is ignored, because some clients attach one to every task.
 * @throws RequestError if the task needs a source and has none
 */
function recordingsOf(needs: RecordingNeeds, uploads: Uploads): Record<keyof Uploads, AudioInput | null> {
  const { taskType, analysis, hasCodes } = needs;
  const makesSongs = analysis === null;
  const readsSource = makesSongs ? taskType !== "text2music" && !hasCodes : analysis !== "metadata";
  const input = (isRead: boolean, kind: UploadKind, path: string | null) =>
    isRead ? inputOf(kind, uploads[kind], path) : null;
  const sourceLatents = input(readsSource && makesSongs, "sourceLatents", needs.srcLatentsPath);
  const readsAudio = readsSource && sourceLatents === null;
  const sourceAudio = input(readsAudio, "sourceAudio", needs.srcAudioPath);
  if (readsSource && sourceAudio === null && sourceLatents === null) {
    throw new RequestError(missingSource(needs));
  }
  const referenceLatents = input(makesSongs, "referenceLatents", needs.refLatentsPath);
  const readsReferenceAudio = makesSongs && referenceLatents === null;
  const referenceAudio = input(readsReferenceAudio, "referenceAudio", needs.referenceAudioPath);
  return { sourceAudio, referenceAudio, sourceLatents, referenceLatents };
}

function missingSource({ taskType, analysis }: RecordingNeeds): string {
  const what =
    analysis === null
      ? `task_type ${taskType}`
      : analysis === "codes"
        ? "extract_codes_only"
        : "full_analysis_only";
  const codes =
    analysis === null && taskType === "cover"
      ? ", or audio_code_string together with thinking or use_audio_codes"
      : "";
  return `${what} needs a source: a file in src_audio, or a path in src_audio_path${codes}`;
}

/** An upload takes precedence over a path. */
function inputOf(kind: UploadKind, upload: Upload | null, path: string | null): AudioInput | null {
  if (upload === null) return path === null ? null : { path, isUpload: false };
  if (upload.path === null) {
    throw new RequestError(
      `${uploadFieldName(kind)} was discarded, because no valid API key came before it: send ai_token before the files, or the key in a header`,
    );
  }
  return { path: upload.path, isUpload: true };
}
