/** From the fields of a body to one typed request: lookup, validation, and what is settled at submission. */
import { distance } from "fastest-levenshtein";
import type { RangePolicy } from "../../config.js";
import { canonicalKeyScale, LANGUAGES, NOTHING_KNOWN } from "../../engine/metadata.js";
import { describe, namesOf } from "../../parameters.js";
import { UPLOAD_FIELDS, type Upload, type Uploads } from "../audio/uploads.js";
import { RequestError } from "../errors.js";
import { assignSeeds } from "../song/seeds.js";
import { NOTHING_STATED, type StatedFacts, statedFacts } from "../song/stated-facts.js";
import { readCodes } from "./audio-codes.js";
import { FieldSources, NESTED_NAMES, parseField, parseObject } from "./fields.js";
import type { Fields } from "./json.js";
import {
  type Analysis,
  type AudioInput,
  type GenerationParameters,
  type GenerationRequest,
  generationSchema,
  generationSchemaFor,
} from "./schema.js";

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
  const stated = statedIn({ ...parameters, analysis, hasCodes }, warnings);
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
    stated,
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
  if (vocalLanguage !== null && !LANGUAGES.includes(vocalLanguage.toLowerCase())) {
    warnings.push(
      `the models know no vocal_language ${describe(vocalLanguage)}, but ${LANGUAGES.join(", ")}`,
    );
  }
}

/** Where there are several flags, the one that asks for the least. */
function analysisOf(parameters: GenerationParameters): Analysis | null {
  if (parameters.extractCodesOnly) return "codes";
  if (parameters.fullAnalysisOnly) return "full";
  return parameters.analysisOnly ? "metadata" : null;
}

/**
 * The client's codes, where they act: with `thinking`, whose codes they then take the place of, and with
 * `use_audio_codes`.
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

/** The language model works for these tasks, but on words alone. */
function warnOfMissingCodes({ taskType, thinking }: GenerationParameters, warnings: string[]): void {
  if (thinking && (taskType === "lego" || taskType === "complete")) {
    warnings.push(`thinking wrote no audio codes: task_type ${taskType} works on a source`);
  }
}

/** What the words say that the song is made of. A source, or codes, have a tempo that a genre need not tell. */
function statedIn(needs: RecordingNeeds & GenerationParameters, warnings: string[]): StatedFacts {
  const { analysis, prompt, sampleQuery, taskType, hasCodes } = needs;
  if (analysis === "metadata") return statedFacts(prompt, NOTHING_KNOWN, true, warnings);
  if (analysis !== null) return NOTHING_STATED;
  const isWholeSong = taskType === "text2music" && !hasCodes;
  const words = isWholeSong && sampleQuery !== "" ? sampleQuery : prompt;
  return statedFacts(words, needs, isWholeSong, warnings);
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

type RecordingNeeds = Pick<GenerationParameters, "taskType" | "srcAudioPath" | "referenceAudioPath"> & {
  analysis: Analysis | null;
  /** The client's codes take the place of a source. */
  hasCodes: boolean;
};

/**
 * Which recordings a task works on: uploaded files, else files that the request names. Clients attach a source to every task: one that the task does without is ignored, unseen.
 * @throws RequestError where the task needs a source and has none
 */
function recordingsOf(
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

/** More are counted. */
const MAX_SHOWN = 8;
/** More are not compared with the known names, which takes a while. */
const MAX_COMPARED = 100;
/** Letters wrong, missing or too many. */
const MAX_TYPOS = 2;

const PARAMETER_NAMES: readonly string[] = Object.values(generationSchema.shape).flatMap((type) =>
  namesOf(type),
);
const OTHER_NAMES = [
  "ai_token",
  ...Object.values(NESTED_NAMES).flat(),
  ...Object.values(UPLOAD_FIELDS).flat(),
] as const;
const KNOWN_NAMES: ReadonlySet<string> = new Set([...PARAMETER_NAMES, ...OTHER_NAMES]);

/**
 * Adds a line that names the fields of POST /release_task that nothing reads, those that look like a slip first. They are
 * not refused: clients send many that only their own servers know.
 */
function warnOfUnknownFields(fields: Fields, warnings: string[]): void {
  const unknown = Object.keys(fields).filter((name) => !KNOWN_NAMES.has(name));
  if (unknown.length === 0) return;
  const compared = unknown.slice(0, MAX_COMPARED);
  const isMeant = (name: string) => meantName(name) !== undefined;
  const ordered = [...compared.filter(isMeant), ...compared.filter((name) => !isMeant(name))];
  const shown = ordered.slice(0, MAX_SHOWN).map(withSuggestion).join(", ");
  const rest = unknown.length > MAX_SHOWN ? `, and ${unknown.length - MAX_SHOWN} more` : "";
  warnings.push(`unknown fields were ignored: ${shown}${rest}`);
}

function withSuggestion(name: string): string {
  const meant = meantName(name);
  return describe(name) + (meant === undefined ? "" : ` (did you mean ${meant}?)`);
}

/** The parameter that a name is a slip of, or the only one whose last word it is. */
function meantName(name: string): string | undefined {
  if (name.length <= MAX_TYPOS || name.length > 40) return undefined;
  const typos = Math.min(MAX_TYPOS, Math.floor(name.length / 3));
  const near = PARAMETER_NAMES.find((known) => distance(name, known) <= typos);
  if (near !== undefined) return near;
  if (name.includes("_")) return undefined;
  const longer = PARAMETER_NAMES.filter((known) => known.endsWith(`_${name}`));
  return longer.length === 1 ? longer[0] : undefined;
}
