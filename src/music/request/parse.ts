/** From the fields of a body to one typed request: lookup, validation, and what is settled at submission. */
import type { RangePolicy } from "../../config.js";
import { RequestError } from "../errors.js";
import { assignSeeds } from "../seeds.js";
import type { Uploads } from "../uploads.js";
import { FieldSources, type Fields } from "./fields.js";
import { namesOf } from "./names.js";
import {
  type GenerationParameters,
  type GenerationRequest,
  generationSchema,
  turboGenerationSchema,
} from "./schema.js";
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
  refuseUnsupported(parameters, context.uploads);

  const {
    seed,
    useRandomSeed,
    useAudioCodes,
    audioCodes,
    referenceAudioPath,
    srcAudioPath,
    analysisOnly,
    fullAnalysisOnly,
    extractCodesOnly,
    ...request
  } = parameters;
  if (audioCodes !== null && !useAudioCodes) {
    warnings.push("audio_code_string was ignored: it acts only together with use_audio_codes");
  }
  return {
    ...request,
    seeds: assignSeeds(useRandomSeed ? [] : seed, request.batchSize, context.drawSeed),
    audioCodes: useAudioCodes && audioCodes ? codesPerItem(audioCodes, request.batchSize) : null,
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
  const schema = context.isTurbo(model) ? turboGenerationSchema : generationSchema;
  return parseObject(schema, sources, context.rangePolicy, warnings);
}

/** A source audio is not refused: clients attach one to every task, and text2music does without it. */
function refuseUnsupported(parameters: GenerationParameters, uploads: Uploads): void {
  if (parameters.taskType !== "text2music") {
    throw new RequestError(`task_type ${parameters.taskType} is not supported yet, only text2music is`);
  }
  if (uploads.referenceAudio !== null || parameters.referenceAudioPath !== null) {
    throw new RequestError("reference_audio is not supported yet, neither as file nor as path");
  }
  const analysis = (["analysisOnly", "fullAnalysisOnly", "extractCodesOnly"] as const).find(
    (flag) => parameters[flag],
  );
  if (analysis !== undefined) {
    const [name] = namesOf(generationSchema.shape[analysis]);
    throw new RequestError(`${name} is not supported yet`);
  }
}

/** One list serves every item. All items of a batch are rendered at one length. */
function codesPerItem(codes: number[][], batchSize: number): number[][] {
  const perItem = codes.length === 1 ? Array.from({ length: batchSize }, () => codes[0] as number[]) : codes;
  if (perItem.length !== batchSize) {
    throw new RequestError(
      `audio_code_string must hold codes for one item or for each of batch_size ${batchSize}, got ${codes.length}`,
    );
  }
  if (new Set(perItem.map((item) => item.length)).size > 1) {
    throw new RequestError("audio_code_string must hold the same number of codes for every item");
  }
  return perItem;
}
