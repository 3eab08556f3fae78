import { ownFiles } from "../audio-inputs.js";
import { sendEnvelope } from "../envelope.js";
import { HttpError } from "../errors.js";
import { QueueFullError } from "../queue.js";
import { BODY_RULES } from "../request/body.js";
import { parseGenerationRequest } from "../request/parse.js";
import { drawSeed } from "../seeds.js";
import { StoreError } from "../store.js";
import type { Route } from "./route.js";

/** POST /release_task: accepts a generation task. */
export const releaseTask: Route =
  ({ config, service, bodies }) =>
  async (request, response) => {
    const body = await bodies.read(request, response, BODY_RULES.releaseTask);
    let kept: string[] = [];
    try {
      const generation = parseGenerationRequest(body.fields, {
        rangePolicy: config.rangePolicy,
        isTurbo: (model) => service.isTurbo(model),
        uploads: body.uploads,
        drawSeed,
      });
      const accepted = await service.submit(generation).catch(refusal);
      kept = ownFiles(generation);
      sendEnvelope(response, accepted);
    } finally {
      await body.dispose(kept);
    }
  };

function refusal(error: unknown): never {
  if (error instanceof QueueFullError) {
    throw new HttpError(429, error.message, { "Retry-After": String(error.retryAfterSeconds) });
  }
  if (error instanceof StoreError) throw new HttpError(500, error.message, {}, { cause: error });
  throw error;
}
