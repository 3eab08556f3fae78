/** When the language model is needed, when it is merely welcome, and when it is loaded (reference/lm.md 6.3). */
import type { CallOptions, RuntimeInfo } from "../engine/addon.js";
import type { MusicEngine } from "../engine/types.js";
import type { GenerationRequest } from "./request/schema.js";

/** Graphics memory that holds the language model beside the renderer. */
const MIN_GPU_BYTES = 6 * 2 ** 30;

/** What SVC_INIT_LLM decides: "auto" loads the model at start on a graphics card with room for it. */
export function loadsLanguageModelAtStart(
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

/** True where a task fails without the language model; false where it only leaves gaps. */
function needsLanguageModel(request: GenerationRequest): boolean {
  return request.thinking || request.sampleMode || request.sampleQuery !== "" || request.useFormat;
}

/**
 * Makes the language model ready if the task needs it. A task that would only be improved by one, as most
 * are, takes part in what is loaded but never loads gigabytes by itself.
 * @returns the name of the model that the task works with, or null for none
 */
export async function provideLanguageModel(
  engine: MusicEngine,
  request: GenerationRequest,
  call: CallOptions,
  warnings: string[],
): Promise<string | null> {
  const loaded = engine.loadedLanguageModel();
  if (loaded === null && !needsLanguageModel(request)) return null;
  const name = installedName(engine, request.lmModelPath, warnings) ?? loaded;
  try {
    return await engine.loadLanguageModel(name, call);
  } catch (error) {
    call.signal?.throwIfAborted();
    const message = error instanceof Error ? error.message : String(error);
    throw new Error(`5Hz LM init failed: ${message}`, { cause: error });
  }
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
