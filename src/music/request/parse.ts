/** From the fields of a body to one typed request: lookup, validation, and what is settled at submission. */
import type { RangePolicy } from "../../config.js";
import { canonicalKeyScale, languages } from "../../engine/metadata.js";
import { describe } from "../../parameters/values.js";
import type { Uploads } from "../audio/uploads.js";
import { RequestError } from "../errors.js";
import { assignSeeds } from "../song/seeds.js";
import { readCodes } from "./audio-codes.js";
import { FieldSources, type Fields } from "./fields.js";
import { recordingsOf } from "./recordings.js";
import {
  type Analysis,
  type GenerationParameters,
  type GenerationRequest,
  generationSchema,
  generationSchemaFor,
} from "./schema.js";
import { warnOfUnknownFields } from "./unknown-fields.js";
import { parseField, parseObject } from "./validate.js";

export interface GenerationContext {
  rangePolicy: RangePolicy;
  /** Whether the model that this name selects is a turbo model; null is the default model. */
  isTurbo: (model: string | null) => boolean;
  uploads: Uploads;
  /** Gives a seed where the client leaves it open. */
  drawSeed: () => number;
}

/** @throws RequestError naming the field at fault */
export function parseGenerationRequest(fields: Fields, context: GenerationContext): GenerationRequest {
  const warnings: string[] = [];
  const parameters = parseParameters(fields, context, warnings);
  warnOfUnknownFields(fields, warnings);
  warnOfUnknownTerms(parameters, warnings);
  const analysis = analysisOf(parameters);
  const audioCodes = analysis === null ? codesInUse(parameters, warnings) : null;
  const hasCodes = audioCodes !== null;
  const recordings = recordingsOf({ ...parameters, analysis, hasCodes }, context.uploads, warnings);
  if (analysis === null) warnOfMissingCodes(parameters, warnings);
  if (parameters.taskType === "repaint" || parameters.taskType === "lego") checkWindow(parameters);
  checkGuidanceInterval(parameters);
  const setsLength = recordings.sourceAudio !== null ? "the source" : hasCodes ? "audio_code_string" : null;
  if (setsLength !== null && parameters.audioDurationSeconds !== null) {
    warnings.push(`audio_duration was ignored: ${setsLength} sets the length`);
  }

  const {
    seed,
    useRandomSeed,
    useAudioCodes,
    referenceAudioPath,
    srcAudioPath,
    analysisOnly,
    fullAnalysisOnly,
    extractCodesOnly,
    ...request
  } = parameters;
  return {
    ...request,
    ...recordings,
    audioDurationSeconds: recordings.sourceAudio === null ? request.audioDurationSeconds : null,
    seeds: assignSeeds(useRandomSeed ? [] : seed, request.batchSize, context.drawSeed),
    audioCodes,
    analysis,
    warnings,
  };
}

function parseParameters(
  fields: Fields,
  context: GenerationContext,
  warnings: string[],
): GenerationParameters {
  const sources = new FieldSources(fields);
  const model = parseField(generationSchema.shape.model, sources, context.rangePolicy, []);
  const taskType = parseField(generationSchema.shape.taskType, sources, context.rangePolicy, []);
  const schema = generationSchemaFor(context.isTurbo(model), taskType);
  return parseObject(schema, sources, context.rangePolicy, warnings);
}

/** Words that the models were not trained on: they are passed on, and seldom do what they say. */
function warnOfUnknownTerms({ keyScale, vocalLanguage }: GenerationParameters, warnings: string[]): void {
  if (keyScale !== "" && canonicalKeyScale(keyScale) === undefined) {
    warnings.push(`the models know no key_scale ${describe(keyScale)}, but those such as "F# minor"`);
  }
  if (vocalLanguage !== null && !languages.includes(vocalLanguage.toLowerCase())) {
    warnings.push(
      `the models know no vocal_language ${describe(vocalLanguage)}, but ${languages.join(", ")}`,
    );
  }
}

/** Of several flags the one that asks for the least (reference/music-http.md 2.12). */
function analysisOf(parameters: GenerationParameters): Analysis | null {
  if (parameters.extractCodesOnly) return "codes";
  if (parameters.fullAnalysisOnly) return "full";
  return parameters.analysisOnly ? "metadata" : null;
}

/**
 * The client's codes, where they act: with `thinking`, whose codes they then take the place of, and with
 * `use_audio_codes` (spec: model behaviour rules 1, 2 and 4; reference/music-http.md D6).
 */
function codesInUse(parameters: GenerationParameters, warnings: string[]): number[][] | null {
  const { audioCodes, taskType, thinking, useAudioCodes, batchSize } = parameters;
  if (audioCodes === null) return null;
  if (taskType !== "text2music" && taskType !== "cover") {
    warnings.push(`audio_code_string was ignored: task_type ${taskType} works on a source`);
    return null;
  }
  if (!thinking && !useAudioCodes) {
    warnings.push("audio_code_string was ignored: it acts only together with thinking or use_audio_codes");
    return null;
  }
  return readCodes(audioCodes, batchSize);
}

/** The language model works for these tasks, but on words alone (reference/engine.md 11.4). */
function warnOfMissingCodes({ taskType, thinking }: GenerationParameters, warnings: string[]): void {
  if (thinking && (taskType === "lego" || taskType === "complete")) {
    warnings.push(`thinking wrote no audio codes: task_type ${taskType} works on a source`);
  }
}

/** What can be said before the source is read. */
function checkWindow({
  repaintingStartSeconds: start,
  repaintingEndSeconds: end,
}: GenerationParameters): void {
  if (end !== null && start >= end) {
    throw new RequestError(`repainting_start must be below repainting_end, got ${start} and ${end}`);
  }
}

function checkGuidanceInterval({ cfgIntervalStart: start, cfgIntervalEnd: end }: GenerationParameters): void {
  if (start > end) {
    throw new RequestError(`cfg_interval_start must not be above cfg_interval_end, got ${start} and ${end}`);
  }
}
