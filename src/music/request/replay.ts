/** Converts a parsed request back to a request body that makes the same songs. */
import { type Fields, namesOf } from "../../parameters.js";
import { UPLOAD_KINDS, uploadFieldName, uploadReference } from "../audio/uploads.js";
import type { Task, TaskState } from "../queue/store.js";
import { loraFields } from "./loras.js";
import { type Analysis, type AudioInput, generationSchema } from "./schema.js";
import { makesStems } from "./stems.js";

const ANALYSES: Readonly<Record<Analysis, keyof typeof generationSchema.shape>> = {
  codes: "extractCodesOnly",
  full: "fullAnalysisOnly",
  metadata: "analysisOnly",
};

/**
 * Body of POST /release_task that makes the same songs. It refers to uploads that are still stored; the client must
 * send the others again (`lostUploadFields`).
 */
export function parametersOf({ request, state }: Pick<Task, "request" | "state">): Fields {
  const settled: Readonly<Record<string, unknown>> = { ...request };
  const fields: Record<string, unknown> = {};
  for (const [key, type] of Object.entries(generationSchema.shape)) {
    const value = settled[key];
    if (value !== undefined && value !== null) fields[namesOf(type)[0]] = value;
  }
  // Omit the callback: it belongs to the client of the original task.
  delete fields.callback_url;
  // Seeds have no effect when codes are extracted.
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
  for (const kind of UPLOAD_KINDS) {
    const input = request[kind];
    if (input?.isUpload === false) fields[`${uploadFieldName(kind)}_path`] = input.path;
    else if (input && isKept(input, state))
      fields[`${uploadFieldName(kind)}_path`] = uploadReference(input.path);
  }
  if (request.analysis) fields[namesOf(generationSchema.shape[ANALYSES[request.analysis]])[0]] = true;
  return fields;
}

/** Whether an upload is still stored: it is kept as long as the songs. Older versions kept no uploads. */
function isKept({ isUpload, bytes }: AudioInput, state: TaskState): boolean {
  return isUpload && bytes !== undefined && state === "succeeded";
}

export function keptUploads({ request, state }: Pick<Task, "request" | "state">): AudioInput[] {
  return UPLOAD_KINDS.flatMap((kind) => {
    const input = request[kind];
    return input && isKept(input, state) ? input : [];
  });
}

/** Form fields of uploads that are not kept and must be sent again. */
export function lostUploadFields({ request, state }: Pick<Task, "request" | "state">): string[] {
  return UPLOAD_KINDS.flatMap((kind) => {
    const input = request[kind];
    return input?.isUpload && !isKept(input, state) ? uploadFieldName(kind) : [];
  });
}
