/** From a settled request back to the body that makes the same songs again. */
import { namesOf } from "../../parameters.js";
import { UPLOAD_FIELDS } from "../audio/uploads.js";
import type { Fields } from "./json.js";
import { type Analysis, type AudioInput, type GenerationRequest, generationSchema } from "./schema.js";

/** What a body says of a request that had such a recording. */
const RECORDINGS = [
  ["sourceAudio", generationSchema.shape.srcAudioPath],
  ["referenceAudio", generationSchema.shape.referenceAudioPath],
] as const;

const ANALYSES: Readonly<Record<Analysis, keyof typeof generationSchema.shape>> = {
  codes: "extractCodesOnly",
  full: "fullAnalysisOnly",
  metadata: "analysisOnly",
};

/**
 * The body of POST /release_task that makes what the request makes: all that was settled, seeds included. What was
 * uploaded is not in it; `uploadsOf` names that.
 */
export function parametersOf(request: GenerationRequest): Fields {
  const settled: Readonly<Record<string, unknown>> = { ...request };
  const fields: Record<string, unknown> = {};
  for (const [key, type] of Object.entries(generationSchema.shape)) {
    const value = settled[key];
    if (value !== undefined && value !== null) fields[namesOf(type)[0]] = value;
  }
  fields.use_random_seed = false;
  fields.seed = request.seeds;
  if (request.audioCodes) {
    fields.audio_code_string = request.audioCodes;
    fields.use_audio_codes = true;
  } else {
    delete fields.audio_code_string;
  }
  for (const [key, type] of RECORDINGS) {
    const input = settled[key] as AudioInput | null | undefined;
    if (input?.isUpload === false) fields[namesOf(type)[0]] = input.path;
  }
  if (request.analysis) fields[namesOf(generationSchema.shape[ANALYSES[request.analysis]])[0]] = true;
  return fields;
}

/** The form fields of the recordings that came with the task, and went with it: they must be sent again. */
export function uploadsOf(request: GenerationRequest): string[] {
  return RECORDINGS.flatMap(([key]) => (request[key]?.isUpload ? UPLOAD_FIELDS[key][1] : []));
}
