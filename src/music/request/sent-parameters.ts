/** First step of parsing: reads the parameters of a body, with the limits of the model and the task type. */
import { isDeepStrictEqual } from "node:util";
import { z } from "zod";
import type { RangePolicy } from "../../config.js";
import type { Seed, SlotState } from "../../engine/types.js";
import { type Fields, namesOf } from "../../parameters.js";
import { type Uploads, uploadKind } from "../audio/uploads.js";
import { RequestError } from "../errors.js";
import { nameInWarnings } from "./effects.js";
import { FieldSources, parseField, parseObject } from "./fields.js";
import type { OwnParts } from "./generation-request.js";
import { type GenerationParameters, generationSchema, generationSchemaFor, ownParts } from "./schema.js";
import { isCoverWithoutCodes } from "./task-types.js";
import { unknownSongFieldWarnings } from "./unknown-parameters.js";

export interface GenerationContext {
  rangePolicy: RangePolicy;
  /** Returns the slot that holds a model; null: the slot of the default model. */
  slotOf: (model: string | null) => Pick<SlotState, "isTurbo" | "codebookSize">;
  uploads: Uploads;
  drawSeed: () => Seed;
  /** Defaults of the endpoint that differ from the schema's. */
  defaults?: Fields | undefined;
}

const KEYS = Object.keys(generationSchema.shape) as (keyof GenerationParameters)[];

/**
 * Returns the parameters, and `chosen`: those that differ from their defaults. An uploaded file counts as its path
 * parameter.
 */
export function readParameters(
  fields: Fields,
  { rangePolicy, slotOf, uploads, defaults = {} }: GenerationContext,
  warnings: string[],
): { sent: GenerationParameters; own: OwnParts[]; chosen: (keyof GenerationParameters)[] } {
  const sources = new FieldSources(fields, warnings, defaults);
  const model = parseField(generationSchema.shape.model, sources, rangePolicy, []);
  const taskType = parseField(generationSchema.shape.taskType, sources, rangePolicy, []);
  const schema = generationSchemaFor(slotOf(model).isTurbo, taskType);
  const sent = parseObject(schema, sources, rangePolicy, warnings);
  if (isCoverWithoutCodes(sources.find(namesOf(schema.shape.taskType))?.value)) sent.coverNofsq = true;
  const unset = parseObject(generationSchema, new FieldSources(defaults), rangePolicy, []);
  const chosen = KEYS.filter((key) => {
    const kind = uploadKind(nameInWarnings(key));
    if (kind !== null && uploads[kind] !== null) return true;
    // Some clients always send true, because the published API defaults to true.
    if (key === "useCotCaption" && sent[key] === true) return false;
    return !isDeepStrictEqual(sent[key], unset[key]);
  });
  const own = (sent.songs ?? []).map((song, index) => {
    const isPresent = (key: keyof OwnParts) => namesOf(schema.shape[key]).some((name) => song[name] != null);
    const keys = (Object.keys(ownParts.shape) as (keyof OwnParts)[]).filter(isPresent);
    const present = z.object(Object.fromEntries(keys.map((key) => [key, schema.shape[key]])));
    const where = `songs[${index}]`;
    const remarks = unknownSongFieldWarnings(song);
    const parts = attempt(where, () => parseObject(present, new FieldSources(song), rangePolicy, remarks));
    warnings.push(...remarks.map((remark) => `${where}: ${remark}`));
    return parts;
  });
  return { sent: own.length === 0 ? sent : { ...sent, batchSize: own.length }, own, chosen };
}

/** Says in which song an error is. */
function attempt<T>(where: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw error instanceof RequestError
      ? new RequestError(`${where}: ${error.message}`, { cause: error })
      : error;
  }
}
