import { sendEnvelope } from "../envelope.js";
import { HttpError, RequestError } from "../errors.js";
import { BODY_RULES } from "../request/body.js";
import type { Route } from "./route.js";

/** POST /cancel_task: stops a waiting or running task (reference/music-http.md 8.3). */
export const cancelTask: Route =
  ({ service, bodies }) =>
  async (request, response) => {
    const { fields } = await bodies.read(request, BODY_RULES.command);
    const id = fields.task_id ?? fields.job_id;
    if (typeof id !== "string" || id === "") throw new RequestError("task_id is missing");
    if (!(await service.cancel(id))) throw new HttpError(404, "No such task waits or runs");
    sendEnvelope(response, { job_id: id, status: "cancelled" });
  };
