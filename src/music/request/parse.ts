/**
 * Parses the fields of a body into a GenerationRequest. Numbers out of range are clamped, or refused with
 * SVC_RANGE_POLICY=refuse. Wrong types, NaN and unknown task types are always refused. Every value that is changed
 * or ignored adds a line to `warnings`. Seeds are drawn here, so that a task makes the same songs if it is
 * restarted.
 */
import { INSTRUMENTAL_LYRICS } from "../../engine/prompts.js";
import { type Fields, grouped } from "../../parameters.js";
import { codesInUse } from "./audio-codes.js";
import { checkTogether } from "./checks.js";
import { effectsAtSubmission } from "./effects.js";
import type { GenerationRequest } from "./generation-request.js";
import { toRequestedAdapter } from "./loras.js";
import { recordingsOf } from "./recordings.js";
import { parameterGroups } from "./schema.js";
import { type GenerationContext, readParameters } from "./sent-parameters.js";
import { drawSongs } from "./songs.js";
import { factsStatedIn } from "./stated.js";
import { normalizeTracks } from "./stems.js";
import { analysisOf } from "./task-types.js";
import { unknownFieldWarnings } from "./unknown-parameters.js";

/** @throws RequestError naming the invalid field */
export function parseGenerationRequest(fields: Fields, context: GenerationContext): GenerationRequest {
  const warnings: string[] = [];
  const { sent, own, chosen } = readParameters(fields, context, warnings);
  const parameters = { ...sent, ...normalizeTracks(sent, warnings), analysis: analysisOf(sent) };
  warnings.push(...unknownFieldWarnings(fields));
  const { analysis, taskType, model, callbackUrl, isTemporary } = parameters;
  const audioCodes = codesInUse(parameters, context.slotOf(model).codebookSize);
  const used = { ...parameters, hasCodes: audioCodes !== null };
  const recordings = recordingsOf(used, context.uploads);
  const latents = {
    isSource: recordings.source?.kind === "sourceLatents",
    isReference: recordings.reference?.kind === "referenceLatents",
  };
  const effects = effectsAtSubmission(chosen, { ...used, ...sent, latents }, analysis);
  warnings.push(...effects.warnings);
  checkTogether(parameters, warnings);
  const stated = factsStatedIn(used, warnings);
  const songs = drawSongs({ ...parameters, audioCodes, own }, context.drawSeed);

  const { words, facts, repaint, ...groups } = grouped(parameterGroups, parameters);
  return {
    ...groups,
    ...{ taskType, analysis, model, callbackUrl, isTemporary },
    loras: parameters.loras?.map(toRequestedAdapter) ?? null,
    words: parameters.instrumental ? { ...words, lyrics: INSTRUMENTAL_LYRICS } : words,
    facts: {
      ...facts,
      durationSeconds: recordings.source === null ? facts.durationSeconds : null,
      ...{ stated, source: null },
    },
    // A list of windows replaces the single window.
    repaint:
      repaint.repaintingWindows.length > 0
        ? { ...repaint, repaintingStartSeconds: 0, repaintingEndSeconds: null }
        : repaint,
    ...recordings,
    songs,
    chosen: effects.undecided,
    ...(context.defaults && { defaults: context.defaults }),
    warnings,
  };
}
