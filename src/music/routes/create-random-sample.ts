import { sendEnvelope } from "../envelope.js";
import { BODY_RULES } from "../request/body.js";
import { parseSampleType } from "../request/service.js";
import type { Route } from "./route.js";

/** POST /create_random_sample: an example to fill a form with. */
export const createRandomSample: Route =
  ({ bodies, samples }) =>
  async (request, response) => {
    const { fields } = await bodies.read(request, BODY_RULES.textService);
    sendEnvelope(response, samples.draw(parseSampleType(fields)));
  };
