import { ownFiles } from "../audio-inputs.js";
import type { Caller } from "../concurrency-limit.js";
import { sendEnvelope } from "../envelope.js";
import { HttpError } from "../errors.js";
import { QueueFullError } from "../queue.js";
import { BODY_RULES, type RequestBody } from "../request/body.js";
import { parseGenerationRequest } from "../request/parse.js";
import { drawSeed } from "../seeds.js";
import { callerOf } from "./hang-up.js";
import type { Route, RouteContext } from "./route.js";

/** POST /release_task: accepts a generation task. One whose client hangs up before that is dropped. */
export const releaseTask: Route = (context) => async (request, response) => {
  const caller = callerOf(request, response);
  try {
    const body = await context.bodies.read(request, BODY_RULES.releaseTask);
    sendEnvelope(response, await accept(context, body, caller));
  } catch (error) {
    // Nobody is there to be told of it.
    if (!caller.signal.aborted) throw error;
  }
};

/** Queues what the body asks for. Of its files only those of an accepted task are left. */
export async function accept({ config, service }: RouteContext, body: RequestBody, caller: Caller) {
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
