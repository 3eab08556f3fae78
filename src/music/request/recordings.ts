/** Which recordings a task works on: uploaded files, else files that the request names. */

import type { Upload, Uploads } from "../audio/uploads.js";
import { RequestError } from "../errors.js";
import type { Analysis, AudioInput, GenerationParameters } from "./schema.js";

export type RecordingNeeds = Pick<
  GenerationParameters,
  "taskType" | "srcAudioPath" | "referenceAudioPath"
> & {
  analysis: Analysis | null;
  /** The client's codes take the place of a source. */
  hasCodes: boolean;
};

/**
 * Clients attach a source to every task: one that the task does without is ignored, unseen.
 * @throws RequestError where the task needs a source and has none
 */
export function recordingsOf(
  needs: RecordingNeeds,
  uploads: Uploads,
  warnings: string[],
): { sourceAudio: AudioInput | null; referenceAudio: AudioInput | null } {
  const hasSource = uploads.sourceAudio !== null || needs.srcAudioPath !== null;
  const reason = whyNoSource(needs);
  if (reason !== null && hasSource) warnings.push(`src_audio was ignored: ${reason}`);
  const sourceAudio = reason === null ? inputOf("src_audio", uploads.sourceAudio, needs.srcAudioPath) : null;
  if (reason === null && sourceAudio === null) throw new RequestError(missingSource(needs));
  const referenceAudio =
    needs.analysis === null
      ? inputOf("reference_audio", uploads.referenceAudio, needs.referenceAudioPath)
      : null;
  return { sourceAudio, referenceAudio };
}

/** Null where the task works on one. */
function whyNoSource({ taskType, analysis, hasCodes }: RecordingNeeds): string | null {
  if (analysis === "metadata") return "analysis_only reads the caption and lyrics";
  if (analysis !== null) return null;
  if (taskType === "text2music") return "task_type text2music works without one";
  return hasCodes ? "audio_code_string takes its place" : null;
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
  return `${what} needs a source: a file in src_audio, or its path in src_audio_path${codes}`;
}

/** An upload beats a path. */
function inputOf(field: string, upload: Upload | null, path: string | null): AudioInput | null {
  if (upload === null) return path === null ? null : { path, isUpload: false };
  if (upload.path === null) {
    throw new RequestError(
      `${field} came before any key and was not kept: send ai_token before the files, or the key in a header`,
    );
  }
  return { path: upload.path, isUpload: true };
}
