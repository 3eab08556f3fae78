import { sendEnvelope } from "../envelope.js";
import { BODY_RULES } from "../request/body.js";
import { parseSampleWish } from "../request/service.js";
import { callerOf } from "./hang-up.js";
import type { Route } from "./route.js";

/** POST /v1/create_sample: the language model makes a song's description of a wish. Stops when the client hangs up. */
export const createSample: Route =
  ({ config, service, bodies }) =>
  async (request, response) => {
    const caller = callerOf(request, response);
    const { fields } = await bodies.read(request, BODY_RULES.textService);
    const wish = parseSampleWish(fields, config.rangePolicy);
    try {
      const sample = await service.createSample(wish, caller);
      // Clients of other servers read these names.
      sendEnvelope(response, { ...sample, keyscale: sample.key_scale, timesignature: sample.time_signature });
    } catch (error) {
      // Nobody is there to be told of it.
      if (!caller.signal.aborted) throw error;
    }
  };
