/** Converts a parsed request back to a request body that makes the same songs. */
import { type Fields, namesOf } from "../../parameters.js";
import { uploadFieldName, uploadReference } from "../audio/uploads.js";
import type { Task, TaskState } from "../queue/store.js";
import { type AudioInput, inputsOf } from "./generation-request.js";
import { loraFields } from "./loras.js";
import { parameterGroups } from "./schema.js";
import { songFields } from "./songs.js";
import { ANALYSES } from "./task-types.js";

/**
 * Body of POST /release_task that makes the same songs. It refers to uploads that are still stored; the client must
 * send the others again (`lostUploadFields`). It has no callback, which belongs to the client of the original task.
 */
export function parametersOf({ request, state }: Pick<Task, "request" | "state">): Fields {
  const { taskType, model, analysis, loras } = request;
  const groups = Object.entries(parameterGroups).flatMap(([group, { shape }]) => {
    const values: Fields = request[group as keyof typeof parameterGroups];
    return Object.entries(shape).map(([key, type]) => [namesOf(type)[0], values[key]]);
  });
  const inputs = inputsOf(request)
    .filter((input) => !input.isUpload || isKept(input, state))
    .map(({ kind, path, isUpload }) => [
      `${uploadFieldName(kind)}_path`,
      isUpload ? uploadReference(path) : path,
    ]);
  const fields = [
    ...Object.entries({
      task_type: taskType,
      model,
      loras: analysis === null ? loras?.map(loraFields) : null,
    }),
    ...groups,
    ...inputs,
  ].filter(([, value]) => value != null);
  return {
    ...Object.fromEntries(fields),
    ...songFields(request),
    ...(analysis && { [ANALYSES[analysis]]: true }),
  };
}

/** Whether an upload is still stored: it is kept as long as the songs. Older versions kept no uploads. */
function isKept({ isUpload, bytes }: AudioInput, state: TaskState): boolean {
  return isUpload && bytes !== undefined && state === "succeeded";
}

export function keptUploads({ request, state }: Pick<Task, "request" | "state">): AudioInput[] {
  return inputsOf(request).filter((input) => isKept(input, state));
}

/** Form fields of uploads that are not kept and must be sent again. */
export function lostUploadFields({ request, state }: Pick<Task, "request" | "state">): string[] {
  return inputsOf(request)
    .filter((input) => input.isUpload && !isKept(input, state))
    .map(({ kind }) => uploadFieldName(kind));
}
