import type { Request } from "express";
import { ownFiles } from "../audio-inputs.js";
import type { Caller } from "../concurrency-limit.js";
import { sendEnvelope } from "../envelope.js";
import { HttpError } from "../errors.js";
import { QueueFullError } from "../queue.js";
import { BODY_RULES } from "../request/body.js";
import { parseGenerationRequest } from "../request/parse.js";
import { drawSeed } from "../seeds.js";
import { callerOf } from "./hang-up.js";
import type { Route, RouteContext } from "./route.js";

/** POST /release_task: accepts a generation task. One whose client hangs up before that is dropped. */
export const releaseTask: Route = (context) => async (request, response) => {
  const caller = callerOf(request, response);
  try {
    sendEnvelope(response, await accept(context, request, caller));
  } catch (error) {
    // Nobody is there to be told of it.
    if (!caller.signal.aborted) throw error;
  }
};

/** Of the files in the body only those of an accepted task are left. */
async function accept({ config, service, bodies }: RouteContext, request: Request, caller: Caller) {
  const body = await bodies.read(request, BODY_RULES.releaseTask);
  let kept: string[] = [];
  try {
    const generation = parseGenerationRequest(body.fields, {
      rangePolicy: config.rangePolicy,
      isTurbo: (model) => service.isTurbo(model),
      uploads: body.uploads,
      drawSeed,
    });
    const accepted = await service.submit(generation, caller).catch(refusal);
    kept = ownFiles(generation);
    return accepted;
  } finally {
    await body.dispose(kept);
  }
}

function refusal(error: unknown): never {
  if (error instanceof QueueFullError) {
    throw new HttpError(429, error.message, { "Retry-After": String(error.retryAfterSeconds) });
  }
  throw error;
}
