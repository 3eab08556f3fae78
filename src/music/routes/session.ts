/** Browser sessions: a cookie replaces the API key, so that the links of a page need not contain the key. */
import * as answers from "../openapi/answers.js";
import { BODY_RULES } from "../request/body.js";
import { sendEnvelope, withTag } from "./route.js";

export const SESSION_ENDPOINTS = withTag("Service", {
  "POST /v1/session": {
    summary:
      "Start a browser session: sets a cookie (HttpOnly, SameSite=Strict) that is accepted like the key",
    answer: answers.session,
    route:
      ({ authenticator, bodies }) =>
      async (request, response) => {
        const { fields } = await bodies.read(request, BODY_RULES.command);
        const cookie = authenticator.startSession(request, fields.ai_token);
        if (cookie !== null) response.set("Set-Cookie", cookie);
        sendEnvelope(response, { active: cookie !== null });
      },
  },
  "DELETE /v1/session": {
    summary: "End the browser session",
    answer: answers.session,
    isOpen: true,
    route:
      ({ authenticator }) =>
      (request, response) => {
        response.set("Set-Cookie", authenticator.endSession(request));
        sendEnvelope(response, { active: false });
      },
  },
});
