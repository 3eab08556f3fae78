/**
 * Parses requests in tests. By default the model is a turbo model, there are no uploads, and every random seed is
 * RANDOM_SEED.
 */

import { expect } from "chai";
import { NO_UPLOADS } from "../../../src/music/audio/uploads.js";
import { RequestError } from "../../../src/music/errors.js";
import { parseGenerationRequest } from "../../../src/music/request/parse.js";
import type { GenerationContext } from "../../../src/music/request/sent-parameters.js";
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

/** Parses a request, and returns its values without their groups; values of songs are lists. */
export function parsed(fields: Fields, context: Partial<GenerationContext> = {}) {
  const { words, facts, repaint, planning, sampling, denoise, guidance, edit, output, songs, ...others } =
    parse(fields, context);
  return {
    ...{
      ...words,
      ...facts,
      ...repaint,
      ...planning,
      ...sampling,
      ...denoise,
      ...guidance,
      ...edit,
      ...output,
    },
    ...others,
    seeds: songs.map(({ seed }) => seed),
    lmSeeds: songs.map(({ lmSeed }) => lmSeed),
    codes: songs[0]?.codes ? songs.map(({ codes }) => codes) : null,
    batchSize: songs.length,
    tracks: songs.map(({ tracks }) => tracks),
    own: songs.map(({ own = {} }) => own),
  };
}

/** Parses fields that must be rejected. Returns the detail of the RequestError. */
export const refusal = (fields: Fields, context: Partial<GenerationContext> = {}): string => {
  const error = thrownBy(() => parse(fields, context));
  expect(error).to.be.instanceOf(RequestError).and.include({ status: 400 });
  return (error as RequestError).detail;
};
