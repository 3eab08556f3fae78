/** The recordings that a task uses. */
import { type UploadKind, type Uploads, uploadFieldName } from "../audio/uploads.js";
import { RequestError } from "../errors.js";
import type { AudioInput, GenerationRequest } from "./generation-request.js";
import type { GenerationParameters } from "./schema.js";
import { ANALYSES, type Analysis, readsSourceOnly } from "./task-types.js";

type Needs = Pick<
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
export function recordingsOf(
  needs: Needs,
  uploads: Uploads,
): Pick<GenerationRequest, "source" | "reference"> {
  const { taskType, analysis, hasCodes } = needs;
  const makesSongs = analysis === null;
  const input = (kind: UploadKind, path: string | null) => inputOf(kind, uploads, path);
  const sourceOf = () =>
    (analysis === "latents" ? null : input("sourceLatents", needs.srcLatentsPath)) ??
    (analysis === "audio" ? null : input("sourceAudio", needs.srcAudioPath));
  const readsSource = makesSongs ? taskType !== "text2music" && !hasCodes : readsSourceOnly(analysis);
  const source = readsSource ? sourceOf() : null;
  if (readsSource && source === null) throw new RequestError(missingSource(needs));
  const referenceOf = () =>
    input("referenceLatents", needs.refLatentsPath) ?? input("referenceAudio", needs.referenceAudioPath);
  return { source, reference: makesSongs ? referenceOf() : null };
}

function missingSource({ taskType, analysis }: Needs): string {
  const what = analysis === null ? `task_type ${taskType}` : ANALYSES[analysis];
  const codes =
    analysis === null && taskType === "cover"
      ? ", or audio_code_string together with thinking or use_audio_codes"
      : "";
  const name = analysis === "audio" ? "src_latents" : "src_audio";
  return `${what} needs a source: a file in ${name}, or a path in ${name}_path${codes}`;
}

/** An upload takes precedence over a path. */
function inputOf(kind: UploadKind, { [kind]: upload }: Uploads, path: string | null): AudioInput | null {
  if (upload === null) return path === null ? null : { kind, path, isUpload: false };
  if (upload.path === null) {
    throw new RequestError(
      `${uploadFieldName(kind)} was discarded, because no valid API key came before it: send ai_token before the files, or the key in a header`,
    );
  }
  return { kind, path: upload.path, isUpload: true };
}
