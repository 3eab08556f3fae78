/** Converts a parsed request back to a body that makes the same songs. */
import { type Fields, namesOf } from "../../parameters.js";
import { UPLOAD_FIELDS, uploadReference } from "../audio/uploads.js";
import type { Task, TaskState } from "../queue/store.js";
import { loraFields } from "./loras.js";
import { type Analysis, type AudioInput, generationSchema } from "./schema.js";
import { makesStems } from "./stems.js";

/** Path parameters of recordings. */
const RECORDINGS = [
  ["sourceAudio", generationSchema.shape.srcAudioPath],
  ["referenceAudio", generationSchema.shape.referenceAudioPath],
  ["sourceLatents", generationSchema.shape.srcLatentsPath],
  ["referenceLatents", generationSchema.shape.refLatentsPath],
] as const;

const ANALYSES: Readonly<Record<Analysis, keyof typeof generationSchema.shape>> = {
  codes: "extractCodesOnly",
  full: "fullAnalysisOnly",
  metadata: "analysisOnly",
};

/** Body of POST /release_task that makes the same songs, with kept uploads; see `lostUploadFields`. */
export function parametersOf({ request, state }: Pick<Task, "request" | "state">): Fields {
  const settled: Readonly<Record<string, unknown>> = { ...request };
  const fields: Record<string, unknown> = {};
  for (const [key, type] of Object.entries(generationSchema.shape)) {
    const value = settled[key];
    if (value !== undefined && value !== null) fields[namesOf(type)[0]] = value;
  }
  // The callback belongs to the original client.
  delete fields.callback_url;
  // Extracting codes uses no seed.
  if (request.analysis !== "codes") {
    fields.use_random_seed = false;
    fields.seed = request.seeds;
  }
  if (request.audioCodes) {
    fields.audio_code_string = request.audioCodes;
    fields.use_audio_codes = true;
  } else {
    delete fields.audio_code_string;
  }
  if (request.loras) fields.loras = request.loras.map(loraFields);
  if (makesStems(request.taskType) && request.trackClasses.length > 0) delete fields.batch_size;
  for (const [key, type] of RECORDINGS) {
    const input = settled[key] as AudioInput | null | undefined;
    if (input?.isUpload === false) fields[namesOf(type)[0]] = input.path;
    else if (input && isKept(input, state)) fields[namesOf(type)[0]] = uploadReference(input.path);
  }
  if (request.analysis) fields[namesOf(generationSchema.shape[ANALYSES[request.analysis]])[0]] = true;
  return fields;
}

/** Whether an upload is still stored: uploads are kept as long as the songs. Tasks of older versions kept none. */
function isKept({ isUpload, bytes }: AudioInput, state: TaskState): boolean {
  return isUpload && bytes !== undefined && state === "succeeded";
}

export function keptUploads({ request, state }: Pick<Task, "request" | "state">): AudioInput[] {
  return RECORDINGS.flatMap(([key]) => {
    const input = request[key];
    return input && isKept(input, state) ? input : [];
  });
}

/** Form fields of uploads that are not kept and must be sent again. */
export function lostUploadFields({ request, state }: Pick<Task, "request" | "state">): string[] {
  return RECORDINGS.flatMap(([key]) => {
    const input = request[key];
    return input?.isUpload && !isKept(input, state) ? (UPLOAD_FIELDS[key].at(-1) as string) : [];
  });
}
