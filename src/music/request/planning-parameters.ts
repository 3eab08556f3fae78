/** Parameters of the language model: what it plans, and how it draws its tokens. */
import { z } from "zod";
import { MAX_GUIDANCE } from "../../engine/render-parameters.js";
import { meaningOfIgnored, reasonToIgnore } from "../../ignored.js";
import {
  atLeast,
  finiteNumber,
  flag,
  offByDefault,
  optionalText,
  parameter,
  text,
  trimmed,
  within,
} from "../../parameters.js";
import {
  lmCodes,
  lmOutput,
  lmSampling,
  lmText,
  needsLanguageModel,
  needsPlanning,
  needsWriting,
  uses,
} from "./uses.js";
import { repetitionPenalty, topK, topP } from "./value-types.js";

export const planningParameters = z.object({
  thinking: parameter(
    ["thinking", "think"],
    offByDefault,
    "Let the language model plan the song as audio codes before rendering.",
    uses({
      atSubmission: [({ taskType, hasCodes }) => (hasCodes ? null : needsPlanning({ taskType }))],
    }),
  ),
  verbatim: parameter(
    "verbatim",
    offByDefault,
    "Render caption, lyrics, language and metadata exactly as sent: empty ones stay empty, without the language model and without facts from the prompt. With full_analysis_only: use lm_temperature, lm_top_k and lm_top_p even at their defaults.",
  ),
  languageModel: parameter(
    ["lm_model_path", "lm_model"],
    optionalText,
    "Name of the language model; unset: the default one.",
    uses({
      analyses: ["full", "metadata"],
      atSubmission: [needsPlanning],
      afterSong: [needsLanguageModel],
    }),
  ),
  lmBackend: parameter(
    "lm_backend",
    trimmed.default("vllm"),
    meaningOfIgnored("lm_backend"),
    uses({ atSubmission: [() => reasonToIgnore("lm_backend")] }),
  ),
  cfgScale: parameter(
    "lm_cfg_scale",
    atLeast(finiteNumber, 0, MAX_GUIDANCE).default(2.5),
    "Guidance scale of audio codes; 1 or less: no guidance.",
    lmCodes,
  ),
  negativePrompt: parameter(
    "lm_negative_prompt",
    text.default("NO USER INPUT"),
    "Negative prompt for guided audio codes.",
    uses({
      atSubmission: [
        needsPlanning,
        ({ cfgScale }) => (cfgScale > 1 ? null : `lm_cfg_scale ${cfgScale} means no guidance`),
      ],
      afterSong: [needsLanguageModel, needsWriting("audio codes")],
    }),
  ),
  useCotCaption: parameter(
    ["use_cot_caption", "cot_caption", "cot-caption"],
    flag.nullable().default(null),
    "Let the language model reword the caption while planning. Unset: only models that write text do.",
    uses({
      atSubmission: [
        needsPlanning,
        ({ taskType }) => (taskType === "text2music" ? null : "the caption describes a single stem"),
      ],
      afterSong: [
        needsLanguageModel,
        ({ languageModel }) =>
          languageModel?.writesText ? null : `the language model ${languageModel?.name} does not write text`,
        needsWriting("metadata"),
      ],
    }),
  ),
  useCotLanguage: parameter(
    ["use_cot_language", "cot_language", "cot-language"],
    flag.default(true),
    "Let the language model detect the language of the lyrics if vocal_language is unset.",
    uses({
      analyses: ["metadata"],
      atSubmission: [needsPlanning],
      afterSong: [
        needsLanguageModel,
        ({ languageModel }) =>
          languageModel?.writesText ? null : `the language model ${languageModel?.name} does not write text`,
        ({ isLanguageNamed }) => (isLanguageNamed ? "the language is already known" : null),
        needsWriting("metadata"),
      ],
    }),
  ),
});

/** Sampling options of the engine, which gets them unchanged. */
export const samplingParameters = z.object({
  temperature: parameter(
    "lm_temperature",
    within(finiteNumber, 0, 2).default(0.85),
    "Sampling temperature of the language model; 0: always the most likely token.",
    uses({ ...lmOutput, analyses: ["full", "metadata"] }),
  ),
  topK: parameter(
    "lm_top_k",
    topK.default(0),
    "Top-k sampling of the language model; 0: off.",
    uses({ ...lmSampling, analyses: ["full", "metadata"] }),
  ),
  topP: parameter(
    "lm_top_p",
    topP(0.9).default(0.9),
    "Top-p (nucleus) sampling of the language model; 1: off.",
    uses({ ...lmSampling, analyses: ["full", "metadata"] }),
  ),
  minP: parameter(
    ["lm_min_p", "min_p"],
    within(finiteNumber, 0, 1).default(0),
    "Min-p sampling of the language model: minimum probability relative to the most likely token; 0: off.",
    uses({ ...lmSampling, analyses: ["metadata"] }),
  ),
  repetitionPenalty: parameter(
    "lm_repetition_penalty",
    repetitionPenalty.default(1),
    "Repetition penalty of the language model; 1: off.",
    uses({ ...lmOutput, analyses: ["metadata"] }),
  ),
  /**
   * Whether a grammar constrains the output of the language model. Without the grammar the model may omit
   * metadata. Omitted metadata stay empty; if the model omits all metadata, the task fails.
   */
  constrained: parameter(
    ["constrained_decoding", "constrainedDecoding", "constrained"],
    flag.default(true),
    "Constrain the language model to well-formed metadata.",
    lmText,
  ),
  debug: parameter(
    "constrained_decoding_debug",
    offByDefault,
    "Log constraints and output of the language model, including the client's words, at level info.",
    lmText,
  ),
  sharesBatch: parameter(
    ["allow_lm_batch", "allowLmBatch", "parallel_thinking"],
    flag.default(true),
    "Plan the songs of a batch together, and with songs of other tasks, which is faster; false: one by one.",
    uses({
      atSubmission: [needsPlanning, ({ batchSize }) => (batchSize > 1 ? null : "the task makes one song")],
      afterSong: [needsLanguageModel],
    }),
  ),
});
