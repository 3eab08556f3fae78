/**
 * Access control by API key, Host header and Origin header. A loopback server without a key accepts only host
 * names of this machine. Web pages may call it from this machine or from a listed origin.
 */
import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { RequestHandler } from "express";
import type { Config } from "../../config.js";
import {
  hostName,
  isLoopbackName,
  isLoopbackOrigin,
  isOwnPage,
  pagesOf,
  SAFE_METHODS,
} from "../../http/origins.js";
import { describe } from "../../parameters.js";
import { ConfigError } from "../../system/config-error.js";
import { HttpError } from "../errors.js";
import { expiredSessionCookie, sessionCookie, sessionKeyIndex } from "./session.js";

const PREFLIGHT_HEADERS = {
  "Access-Control-Allow-Methods": "GET, POST, PUT, PATCH, DELETE, OPTIONS",
  "Access-Control-Allow-Headers":
    "Content-Type, Authorization, X-API-Key, Range, Idempotency-Key, Last-Event-ID",
  "Access-Control-Max-Age": "600",
};
const EXPOSED_HEADERS = "Content-Length, Content-Range, Accept-Ranges, Content-Disposition, Retry-After";

/** @throws ConfigError if other machines can reach the service and no key is set */
export function requireKeyIfReachable({ apiHost, apiKey, isLocal, allowsNoKey }: Config): void {
  if (isLocal || apiKey !== "" || allowsNoKey) return;
  throw new ConfigError(
    "SVC_API_KEY",
    `SVC_API_KEY is empty, but other machines can reach the service on ${apiHost}: set a key, or SVC_ALLOW_NO_KEY=true`,
  );
}

/**
 * Checks the key of a request: body field `ai_token`, header `Authorization` with or without the Bearer scheme, header
 * `X-API-Key`, or the cookie of a browser session. Audio downloads and events also accept the query parameter
 * `ai_token`, because pages cannot set headers for them.
 */
export class Authenticator {
  readonly #keyDigests: readonly Buffer[];

  /**
   * @param apiKey blank: no authentication.
   * @param moreKeys additional keys; the queue treats each key as a client
   */
  constructor(apiKey: string, moreKeys: readonly string[] = []) {
    const keys = apiKey.trim() === "" ? [] : [apiKey.trim(), ...moreKeys];
    this.#keyDigests = keys.map(digest);
  }

  get isEnabled(): boolean {
    return this.#keyDigests.length > 0;
  }

  /**
   * Name of the client that sent an authorized request, for `FairTurns`: "key 2" for the second key, "" if the
   * server has at most one key. Each client has its own turns in the queue and its own `Idempotency-Key`s, but
   * all clients share tasks, songs, adapters and data sets. All gateways of a fleet must list the keys in the
   * same order.
   */
  clientOf(request: IncomingMessage, bodyToken?: unknown): string {
    if (this.#keyDigests.length < 2) return "";
    return `key ${this.#presented(request, bodyToken) + 1}`;
  }

  /** `Set-Cookie` header that starts a session with the key of an authorized request. */
  startSession(request: IncomingMessage, bodyToken?: unknown): string | null {
    const key = this.#keyDigests[this.#presented(request, bodyToken)];
    return key === undefined ? null : sessionCookie(request, key);
  }

  endSession(request: IncomingMessage): string {
    return expiredSessionCookie(request);
  }

  /** Index of the presented key; -1 without a valid one. */
  #presented(request: IncomingMessage, bodyToken: unknown): number {
    const key = isGiven(bodyToken) ? bodyToken : headerKey(request);
    return key === null ? sessionKeyIndex(request, this.#keyDigests) : this.#indexOf(key);
  }

  /** Checks a request after its body was read. A body token takes precedence over the headers. @throws HttpError 401 */
  authorize(request: IncomingMessage, bodyToken?: unknown): void {
    if (!this.isEnabled) return;
    if (isGiven(bodyToken)) {
      if (!this.accepts(bodyToken)) throw unauthorized("Invalid ai_token");
      return;
    }
    if (this.acceptsHeaders(request)) return;
    if (headerKey(request) === null) throw unauthorized("Missing ai_token or Authorization header");
    throw unauthorized("Invalid API key");
  }

  /**
   * Refuses a request whose body cannot be read.
   * @throws `failure` if the headers have a valid key, otherwise HttpError 401
   */
  refuseUnread(request: IncomingMessage, failure: unknown): never {
    if (this.acceptsHeaders(request)) throw failure;
    throw unauthorized("No valid key in the headers, and no ai_token could be read from the body");
  }

  /** Like `authorize`, but accepts a request without any key. */
  authorizeIfPresented(request: IncomingMessage): void {
    if (headerKey(request) !== null) this.authorize(request);
  }

  /** Whether the headers alone authenticate the request, so uploads may be stored while the body arrives. */
  acceptsHeaders(request: IncomingMessage): boolean {
    return !this.isEnabled || this.#presented(request, null) >= 0;
  }

  /** Whether `presented` is a valid key; always true if the server has no key. */
  accepts(presented: unknown): boolean {
    return !this.isEnabled || this.#indexOf(presented) >= 0;
  }

  #indexOf(presented: unknown): number {
    if (typeof presented !== "string") return -1;
    const presentedDigest = digest(presented);
    // Constant time: digests have equal length, and all keys are compared.
    const isEqual = this.#keyDigests.map((key) => timingSafeEqual(key, presentedDigest));
    return isEqual.indexOf(true);
  }
}

function headerKey(request: IncomingMessage): string | null {
  const authorization = request.headers.authorization?.trim() ?? "";
  if (authorization !== "") return authorization.replace(/^bearer(\s+|$)/i, "");
  const apiKey = request.headers["x-api-key"];
  return typeof apiKey === "string" && apiKey.trim() !== "" ? apiKey.trim() : null;
}

function isGiven(token: unknown): boolean {
  return token !== undefined && token !== null && token !== "";
}

function unauthorized(detail: string): HttpError {
  return new HttpError(401, detail, { "WWW-Authenticate": "Bearer" });
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}

/**
 * Prevents DNS rebinding on a loopback server without a key. Accepts names of this machine and `allowedHosts` ("*":
 * all) on any port.
 */
export function checkHost({ isLocal, apiKey, allowedHosts }: HostRules): RequestHandler {
  const allowed = new Set(allowedHosts);
  const isChecked = isLocal && apiKey.trim() === "" && !allowed.has("*");
  return (request, _response, next) => {
    const { host } = request.headers;
    // Without a Host header the request is not from a browser, so it is not DNS rebinding.
    const name = isChecked && host !== undefined ? hostName(host) : null;
    if (name !== null && !isLoopbackName(name) && !allowed.has(name)) {
      const value = [...allowed, name].join(",");
      throw new HttpError(
        403,
        `Host ${describe(name)} is not a name of this machine: set SVC_ALLOWED_HOSTS=${value}, or a key in SVC_API_KEY`,
      );
    }
    next();
  };
}

type HostRules = Pick<Config, "isLocal" | "apiKey" | "allowedHosts">;

/**
 * CORS: answers preflights and sets headers for allowed origins. A request from another origin is rejected before any
 * work is done, unless its method is safe (`SAFE_METHODS`) and no script would read the response. Browsers hide failed
 * preflights, so preflights always succeed: the page can then read why its request was rejected. Pages of this machine
 * are always allowed.
 * @param allowedOrigins additional origins; "null": pages opened from a file, "*": every page
 */
export function checkOrigin(allowedOrigins: readonly string[]): RequestHandler {
  const allowed = new Set(allowedOrigins);
  return (request, response, next) => {
    const { origin } = request.headers;
    if (origin === undefined) {
      next();
      return;
    }
    response.vary("Origin");
    const isAllowed =
      allowed.has(origin) || allowed.has("*") || isLoopbackOrigin(origin) || isOwnPage(request, origin);
    const isPreflight =
      request.method === "OPTIONS" && request.headers["access-control-request-method"] !== undefined;
    const isReadByScript = request.headers["sec-fetch-mode"] === "cors";
    if (!isAllowed && !isPreflight && SAFE_METHODS.has(request.method) && !isReadByScript) {
      next();
      return;
    }
    response.set("Access-Control-Allow-Origin", origin);
    response.set("Access-Control-Expose-Headers", EXPOSED_HEADERS);
    if (isPreflight) response.set(PREFLIGHT_HEADERS).status(204).end();
    else if (isAllowed) next();
    else throw originRefused(origin, allowed.size > 0);
  };
}

/** The message does not list the allowed origins, because a page of any site may read it. */
function originRefused(origin: string, hasOthers: boolean): HttpError {
  const advice = hasOthers ? `add ${origin} to SVC_ALLOWED_ORIGINS` : `set SVC_ALLOWED_ORIGINS=${origin}`;
  return new HttpError(403, `${pagesOf(origin)} may not call this server: ${advice}`);
}
