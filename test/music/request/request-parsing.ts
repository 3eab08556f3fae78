/**
 * Parses requests in tests. By default the model is a turbo model, there are no uploads, and every random seed is
 * RANDOM_SEED.
 */

import { expect } from "chai";
import { NO_UPLOADS } from "../../../src/music/audio/uploads.js";
import { RequestError } from "../../../src/music/errors.js";
import { type GenerationContext, parseGenerationRequest } from "../../../src/music/request/parse.js";
import type { Fields } from "../../../src/parameters.js";
import { thrownBy } from "../../failures.js";

export const RANDOM_SEED = 77;

const CONTEXT: GenerationContext = {
  rangePolicy: "refuse",
  slotOf: (model) => ({ isTurbo: model !== "acestep-v15-base", codebookSize: 4096 }),
  uploads: NO_UPLOADS,
  drawSeed: () => RANDOM_SEED,
};

export const parse = (fields: Fields, context: Partial<GenerationContext> = {}) =>
  parseGenerationRequest(fields, { ...CONTEXT, ...context });

/** Parses fields that must be rejected. Returns the detail of the RequestError. */
export const refusal = (fields: Fields, context: Partial<GenerationContext> = {}): string => {
  const error = thrownBy(() => parse(fields, context));
  expect(error).to.be.instanceOf(RequestError).and.include({ status: 400 });
  return (error as RequestError).detail;
};
