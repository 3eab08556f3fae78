/** Sends one signed request to the checked address of a callback URL. Follows no redirects. */
import { createHmac } from "node:crypto";
import { request as httpRequest, type RequestOptions } from "node:http";
import { request as httpsRequest } from "node:https";
import { responseTo } from "../../http/response-to.js";
import type { CallbackTarget } from "./target.js";

export interface CallbackMessage {
  taskId: string;
  body: string;
  /** Time of the message in Unix seconds. */
  timestamp: number;
  /** API key for the signature. Null if the server has no key: the request is then not signed. */
  key: string | null;
}

/** Signature of the body, which contains the timestamp: HMAC-SHA256 with the API key. */
export function signatureOf(body: string, key: string): string {
  return `sha256=${createHmac("sha256", key).update(body).digest("hex")}`;
}

/**
 * Resolves when the receiver answers with a status from 200 to 299.
 * @throws Error with a message for the user, or the signal's reason
 */
export async function postCallback(
  { url, address }: CallbackTarget,
  { taskId, body, timestamp, key }: CallbackMessage,
  signal: AbortSignal,
): Promise<void> {
  const options: RequestOptions = {
    method: "POST",
    // Opens a new connection to the checked address, instead of resolving the name again.
    agent: false,
    lookup: (_name, { all }, found) => {
      if (all) found(null, [address]);
      else found(null, address.address, address.family);
    },
    signal,
    headers: {
      "Content-Type": "application/json; charset=utf-8",
      "Content-Length": Buffer.byteLength(body),
      "User-Agent": "carillon",
      "X-Carillon-Task": taskId,
      "X-Carillon-Timestamp": String(timestamp),
      ...(key !== null && { "X-Carillon-Signature": signatureOf(body, key) }),
    },
  };
  const send = url.protocol === "https:" ? httpsRequest : httpRequest;
  const response = await responseTo(send(url, options).end(body));
  // Only the status is used; the rest of the response is not read.
  response.destroy();
  const status = response.statusCode as number;
  if (status < 200 || status > 299) throw new Error(`the receiver answered ${status}`);
}
