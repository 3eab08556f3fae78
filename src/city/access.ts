/**
 * Who may talk to the bridge. It has no authentication, so it listens on loopback only and answers only to loopback
 * names: a foreign name that was made to resolve to this machine (DNS rebinding) is refused. Programs send no `Origin`;
 * browsers name the page that asks, so that no page commands a city unless it is the city's own or a setting lists it.
 */
import type { Request, RequestHandler } from "express";
import { BridgeError } from "./errors.js";

const LOOPBACK_HOST = /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?$/i;
const READING_METHODS = ["GET", "HEAD", "OPTIONS"];

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
 * Marks every answer as readable for the pages that may read it, and refuses what other pages ask. A page may write
 * where it is the bridge's own or listed ("*" lists all). Every page may read while nothing is listed, as the bridge of
 * the game has it; otherwise the listed ones and those of this machine.
 */
export function checkOrigin(allowedOrigins: readonly string[]): RequestHandler {
  const allowsAll = allowedOrigins.includes("*");
  const isReadByAll = allowsAll || allowedOrigins.length === 0;
  return (request, response, next) => {
    const { origin } = request.headers;
    const isListed = (page: string) => allowsAll || allowedOrigins.includes(page) || isOwnPage(request, page);
    response.set(CORS_HEADERS);
    if (isReadByAll) {
      response.set("Access-Control-Allow-Origin", "*");
    } else if (origin !== undefined) {
      response.vary("Origin");
      if (isListed(origin) || isOfThisMachine(origin)) response.set("Access-Control-Allow-Origin", origin);
      else
        throw new BridgeError(403, `Origin ${origin} is not allowed: CITY_ALLOWED_ORIGINS does not list it`);
    }
    if (origin !== undefined && !READING_METHODS.includes(request.method) && !isListed(origin)) {
      throw new BridgeError(
        403,
        `Pages of ${origin} may not change the city: CITY_ALLOWED_ORIGINS does not list them`,
      );
    }
    next();
  };
}

/** A page that this bridge itself sent; that the name is one of this machine is checked apart. */
function isOwnPage({ headers: { host } }: Request, origin: string): boolean {
  return (
    isLoopbackHost(host) && URL.canParse(`http://${host}`) && new URL(`http://${host}`).origin === origin
  );
}

function isOfThisMachine(origin: string): boolean {
  return isLoopbackHost(/^https?:\/\/(.*)$/.exec(origin)?.[1]);
}
