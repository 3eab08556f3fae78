/**
 * Who may talk to the bridge. It has no authentication, so it listens on loopback only and answers only to loopback
 * names: a foreign name that was made to resolve to this machine (DNS rebinding) is refused. Which web pages may read
 * its answers is a setting.
 */
import type { RequestHandler } from "express";
import { BridgeError } from "./errors.js";

const LOOPBACK_HOST = /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?$/i;

const CORS_HEADERS = {
  "Access-Control-Allow-Methods": "GET, POST, OPTIONS",
  "Access-Control-Allow-Headers": "Content-Type",
};

/** @param host the value of a Host header, or of the host in an origin */
export function isLoopbackHost(host: string | undefined): boolean {
  return host !== undefined && LOOPBACK_HOST.test(host);
}

export const requireLoopbackHost: RequestHandler = (request, _response, next) => {
  if (isLoopbackHost(request.headers.host)) next();
  else throw new BridgeError(403, `Host ${request.headers.host ?? "(none)"} is not a name of this machine`);
};

/**
 * Marks every answer as readable for the allowed pages, and refuses other pages altogether. Pages of this machine are
 * always allowed; "*" allows all.
 */
export function checkOrigin(allowedOrigins: readonly string[]): RequestHandler {
  const allowsAll = allowedOrigins.includes("*");
  return (request, response, next) => {
    const { origin } = request.headers;
    response.set(CORS_HEADERS);
    if (allowsAll) {
      response.set("Access-Control-Allow-Origin", "*");
    } else if (origin !== undefined) {
      response.vary("Origin");
      if (!isOwnOrigin(origin) && !allowedOrigins.includes(origin)) {
        throw new BridgeError(403, `Origin ${origin} is not allowed`);
      }
      response.set("Access-Control-Allow-Origin", origin);
    }
    next();
  };
}

function isOwnOrigin(origin: string): boolean {
  return isLoopbackHost(/^https?:\/\/(.*)$/.exec(origin)?.[1]);
}
