import type { Message } from "../game.js";
import type { ReadRoute } from "../route.js";
import type { JsonObject } from "../wire/json.js";
import { paginate, SHORT_LIMIT } from "./listing.js";

/** GET /state/chirps: newest first. */
export const chirps: ReadRoute = {
  path: "/state/chirps",
  label: "Read citizen chirps",
  read: ({ city, query }) => {
    const newestFirst = city
      .messages()
      .map((message, index) => ({ message, index }))
      .reverse();
    const { page, rows } = paginate(newestFirst, query, SHORT_LIMIT);
    return { ok: true, ...page, chirps: rows.map(({ message, index }) => row(message, index)) };
  },
};

function row(message: Message, index: number): JsonObject {
  const { type, senderName, senderId, text, messageId } = message;
  const common = { index, type, senderName, senderId, text, messageId };
  return message.type === "CitizenMessage"
    ? { ...common, keyId: message.keyId, tag: message.tag }
    : { ...common, senderKey: message.senderKey, randomId: message.randomId };
}
