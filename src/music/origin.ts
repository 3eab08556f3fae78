/**
 * Which web pages may use the service. Browsers send form bodies across sites without asking first, so a
 * writing request from a foreign page is refused before any work is done. A page whose own name was made to resolve to
 * this machine (DNS rebinding) is no foreign page to the browser: it is known by the name in `Host`.
 */
import { isIP } from "node:net";
import type { Request, RequestHandler } from "express";
import { HttpError } from "./errors.js";

const LOOPBACK = /^https?:\/\/(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/;
const LOOPBACK_HOST = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/i;
const SAFE_METHODS = new Set(["GET", "HEAD", "OPTIONS"]);

const PREFLIGHT_HEADERS = {
  "Access-Control-Allow-Methods": "GET, POST, PUT, DELETE, OPTIONS",
  "Access-Control-Allow-Headers": "Content-Type, Authorization, X-API-Key, Range",
  "Access-Control-Max-Age": "600",
};
const EXPOSED_HEADERS = "Content-Length, Content-Range, Accept-Ranges, Content-Disposition, Retry-After";

/**
 * For a server that only programs of this machine reach: answers to the names of this machine and to `allowedHosts`,
 * those of a proxy before it ("*": to all), whatever the port.
 */
export function checkHost(allowedHosts: readonly string[]): RequestHandler {
  const allowed = new Set(allowedHosts.map((host) => host.toLowerCase()));
  return (request, _response, next) => {
    const { host } = request.headers;
    // A browser always sends it.
    const name = host?.replace(/:\d*$/, "").toLowerCase();
    if (name !== undefined && !LOOPBACK_HOST.test(name) && !allowed.has(name) && !allowed.has("*")) {
      throw new HttpError(
        403,
        `Host ${host} is not a name of this machine; a proxy's name belongs in SVC_ALLOWED_HOSTS`,
      );
    }
    next();
  };
}

/**
 * Answers preflights, marks answers readable for allowed pages, refuses the rest. Loopback origins are
 * always allowed; `allowedOrigins` adds to them ("null": pages opened from a file; "*": every page).
 */
export function checkOrigin(allowedOrigins: readonly string[]): RequestHandler {
  return (request, response, next) => {
    const origin = request.headers.origin;
    if (origin === undefined) {
      next();
      return;
    }
    response.vary("Origin");
    const isAllowed = isAllowedOrigin(origin, allowedOrigins) || isOwnPage(request, origin);
    const isPreflight =
      request.method === "OPTIONS" && request.headers["access-control-request-method"] !== undefined;
    if (!isAllowed) {
      if (isPreflight) throw new HttpError(400, "Disallowed CORS origin");
      if (!SAFE_METHODS.has(request.method)) throw new HttpError(403, `Origin ${origin} is not allowed`);
      next();
      return;
    }
    response.set("Access-Control-Allow-Origin", origin);
    response.set("Access-Control-Expose-Headers", EXPOSED_HEADERS);
    if (isPreflight) response.set(PREFLIGHT_HEADERS).status(204).end();
    else next();
  };
}

function isAllowedOrigin(origin: string, allowed: readonly string[]): boolean {
  return LOOPBACK.test(origin) || allowed.includes(origin) || allowed.includes("*");
}

/**
 * A page that this server itself sent. Only by address: a name could be a foreign site's that was made
 * to resolve to this machine.
 */
function isOwnPage(request: Request, origin: string): boolean {
  if (!URL.canParse(origin)) return false;
  const { host, hostname } = new URL(origin);
  return host === request.headers.host && isIP(hostname.replace(/^\[|\]$/g, "")) !== 0;
}
