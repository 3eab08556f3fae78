/** When the language model is needed, when it is merely welcome, and when it is loaded (reference/lm.md 6.3). */
import type { RuntimeInfo } from "../engine/addon.js";
import type { LanguageModelInfo, MusicEngine } from "../engine/types.js";
import type { JobContext } from "./job-context.js";
import type { GenerationRequest, TaskType } from "./request/schema.js";

/** Graphics memory that holds the language model beside the renderer. */
const MIN_GPU_BYTES = 6 * 2 ** 30;

/**
 * What SVC_INIT_LLM decides: whether the language model is loaded at start and plans also the songs that only leave it
 * room to; "auto" does on a graphics card that has room for it.
 */
export function plansUnasked(
  setting: "auto" | "on" | "off",
  languageModelDevice: string,
  runtime: RuntimeInfo,
): boolean {
  if (setting !== "auto") return setting === "on";
  if (languageModelDevice === "cpu") return false;
  return runtime.devices.some(
    ({ name, memoryBytes }) => name.startsWith("cuda") && memoryBytes > MIN_GPU_BYTES,
  );
}

/** The tasks that the language model has a part in (spec: model behaviour rule 3). */
const LANGUAGE_MODEL_TASKS: readonly TaskType[] = ["text2music", "lego", "complete"];

function takesLanguageModel({ analysis, taskType }: GenerationRequest): boolean {
  return analysis === null ? LANGUAGE_MODEL_TASKS.includes(taskType) : analysis !== "codes";
}

/** True where a task fails without the language model; false where it only leaves gaps. */
function needsLanguageModel(request: GenerationRequest): boolean {
  return request.analysis !== null || request.thinking || asksForWords(request);
}

function asksForWords({ sampleMode, sampleQuery, useFormat }: GenerationRequest): boolean {
  return sampleMode || sampleQuery !== "" || useFormat;
}

/**
 * Makes the language model ready if the task takes one: those that need it do, whatever `SVC_INIT_LLM` says, and those
 * that it would only improve do where the configuration plans unasked. What happens to be loaded decides nothing, so
 * that a request makes the same song on any day.
 * @returns the model that the task works with, or null for none
 */
export async function provideLanguageModel(context: JobContext): Promise<LanguageModelInfo | null> {
  const { engine, request, signal, warnings, plansUnasked } = context;
  if (!takesLanguageModel(request)) {
    if (request.analysis === null && asksForWords(request)) {
      warnings.push(
        `sample_mode, sample_query and use_format were ignored: task_type ${request.taskType} does without the language model`,
      );
    }
    return null;
  }
  const isNeeded = needsLanguageModel(request);
  if (!isNeeded && !plansUnasked) return null;
  const name = installedName(engine, request.lmModelPath, warnings);
  try {
    return await engine.prepareLanguageModel(name, { signal, onProgress: context.progress.enter("load") });
  } catch (error) {
    signal.throwIfAborted();
    const message = error instanceof Error ? error.message : String(error);
    if (isNeeded) throw new Error(`5Hz LM init failed: ${message}`, { cause: error });
    warnings.push(`the language model had no part in the song: ${message}`);
    return null;
  }
}

/**
 * Says at submission what a task that needs the language model could not be made of.
 * @throws EngineError PROMPT_TOO_LONG
 */
export async function checkWords(engine: MusicEngine, request: GenerationRequest): Promise<void> {
  if (!takesLanguageModel(request) || !needsLanguageModel(request)) return;
  const { prompt, lyrics, sampleQuery, taskType } = request;
  const writesSheet = request.analysis === null && (request.sampleMode || sampleQuery !== "");
  const writeCodes =
    request.thinking && request.analysis === null && taskType === "text2music" && request.audioCodes === null;
  const plans = request.analysis === "metadata" || (writeCodes && !writesSheet);
  if (!plans && !writesSheet) return;
  await engine.checkWords({
    languageModel: installedName(engine, request.lmModelPath, []),
    fields: writesSheet ? { sample_query: sampleQuery } : { prompt, lyrics },
    codesSeconds: writeCodes && !writesSheet ? (request.audioDurationSeconds ?? 0) : null,
  });
}

/** The model that a task asks for by name or path, or null where it asks for none that is there. */
function installedName(engine: MusicEngine, asked: string | null, warnings: string[]): string | null {
  if (asked === null) return null;
  const names = engine.languageModels().map((model) => model.name);
  const lastComponent = asked.slice(asked.lastIndexOf("/") + 1);
  const installed = names.find((name) => name === asked) ?? names.find((name) => name === lastComponent);
  if (installed !== undefined) return installed;
  warnings.push(
    `lm_model_path ${JSON.stringify(asked)} is not installed; the default language model was used`,
  );
  return null;
}
