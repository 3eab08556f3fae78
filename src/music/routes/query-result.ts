import { sendEnvelope } from "../envelope.js";
import { BODY_RULES } from "../request/body.js";
import { parseTaskIds } from "../request/service.js";
import type { Route } from "./route.js";

/** POST /query_result: the states of tasks, one item per id asked for. */
export const queryResult: Route =
  ({ service, bodies }) =>
  async (request, response) => {
    const { fields } = await bodies.read(request, BODY_RULES.queryResult);
    sendEnvelope(response, await service.query(parseTaskIds(fields)));
  };
