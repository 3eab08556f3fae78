import { sendEnvelope } from "../envelope.js";
import type { Route } from "./route.js";

/** GET /v1/stats: counters of tasks, and the average job time. */
export const stats: Route =
  ({ authenticator, service }) =>
  (request, response) => {
    authenticator.authorize(request);
    sendEnvelope(response, service.statistics);
  };
