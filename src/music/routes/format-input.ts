import { sendEnvelope } from "../envelope.js";
import { BODY_RULES } from "../request/body.js";
import { parseFormatInput } from "../request/service.js";
import { callerOf } from "./hang-up.js";
import type { Route } from "./route.js";

/** POST /format_input: the language model rewrites a caption and lyrics. Stops when the client hangs up. */
export const formatInput: Route =
  ({ config, service, bodies }) =>
  async (request, response) => {
    const caller = callerOf(request, response);
    const { fields } = await bodies.read(request, BODY_RULES.textService);
    const input = parseFormatInput(fields, config.rangePolicy);
    try {
      sendEnvelope(response, await service.formatInput(input, caller));
    } catch (error) {
      // Nobody is there to be told of it.
      if (!caller.signal.aborted) throw error;
    }
  };
