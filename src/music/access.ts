/**
 * Who may use the service: programs that present the key, under names of this machine where only this machine is served,
 * and web pages of this machine and of listed origins.
 */
import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { RequestHandler } from "express";
import { type Config, ConfigError } from "../config.js";
import { hostName, isLoopbackName, isLoopbackOrigin, isOwnPage, SAFE_METHODS } from "../http/origins.js";
import { HttpError } from "./errors.js";

const PREFLIGHT_HEADERS = {
  "Access-Control-Allow-Methods": "GET, POST, PUT, PATCH, DELETE, OPTIONS",
  "Access-Control-Allow-Headers":
    "Content-Type, Authorization, X-API-Key, Range, Idempotency-Key, Last-Event-ID",
  "Access-Control-Max-Age": "600",
};
const EXPOSED_HEADERS = "Content-Length, Content-Range, Accept-Ranges, Content-Disposition, Retry-After";

/** @throws ConfigError where other machines would reach a service that asks nobody for a key */
export function requireProtection({ apiHost, apiKey, isLocal, allowsNoKey }: Config): void {
  if (isLocal || apiKey !== "" || allowsNoKey) return;
  throw new ConfigError(
    "SVC_API_KEY",
    `SVC_API_KEY is empty, and on ${apiHost} other machines reach the service: set a key, or SVC_ALLOW_NO_KEY=true`,
  );
}

/**
 * The key of a request may come as body field `ai_token`, as `Authorization` header with or without the Bearer scheme,
 * as `X-API-Key`, and where a page cannot send headers, on audio downloads and events, as query parameter `ai_token`.
 */
export class Authenticator {
  readonly #keyDigests: readonly Buffer[];

  /** @param apiKey blank: every request passes. @param further keys that pass too, each with a share of its own */
  constructor(apiKey: string, further: readonly string[] = []) {
    const keys = apiKey.trim() === "" ? [] : [apiKey.trim(), ...further];
    this.#keyDigests = keys.map(digest);
  }

  get isEnabled(): boolean {
    return this.#keyDigests.length > 0;
  }

  /**
   * Whose turn the task of an authorized request takes: the number of its key, which tells nothing of the key. "" where
   * there is one key at most.
   */
  shareOf(request: IncomingMessage, bodyToken?: unknown): string {
    if (this.#keyDigests.length < 2) return "";
    return `key ${this.#indexOf(isGiven(bodyToken) ? bodyToken : headerKey(request)) + 1}`;
  }

  /**
   * Checks a request whose body, or lack of one, is known. A non-empty body token decides alone; the
   * header is not consulted then.
   * @throws HttpError 401
   */
  authorize(request: IncomingMessage, bodyToken?: unknown): void {
    if (!this.isEnabled) return;
    if (isGiven(bodyToken)) {
      if (!this.accepts(bodyToken)) throw unauthorized("Invalid ai_token");
      return;
    }
    const key = headerKey(request);
    if (key === null) throw unauthorized("Missing ai_token or Authorization header");
    if (!this.accepts(key)) throw unauthorized("Invalid API key");
  }

  /** As `authorize`, but a request that presents no key at all passes. */
  authorizeIfPresented(request: IncomingMessage): void {
    if (headerKey(request) !== null) this.authorize(request);
  }

  /** Whether the headers alone authenticate the request: files may then be stored while the body arrives. */
  acceptsHeaders(request: IncomingMessage): boolean {
    if (!this.isEnabled) return true;
    const key = headerKey(request);
    return key !== null && this.accepts(key);
  }

  /** Whether `presented` is the key; true for anything where authentication is off. */
  accepts(presented: unknown): boolean {
    return !this.isEnabled || this.#indexOf(presented) >= 0;
  }

  #indexOf(presented: unknown): number {
    if (typeof presented !== "string") return -1;
    const presentedDigest = digest(presented);
    // Digests have one length, so each comparison takes one time whatever was presented; and all are made.
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
 * For a server that only programs of this machine reach: answers to the names of this machine and to `allowedHosts`,
 * those of a proxy before it ("*": to all), whatever the port.
 */
export function checkHost(allowedHosts: readonly string[]): RequestHandler {
  const allowed = new Set(allowedHosts.map((host) => host.toLowerCase()));
  return (request, _response, next) => {
    const { host } = request.headers;
    // A browser always sends it.
    const name = host === undefined ? undefined : hostName(host);
    if (name !== undefined && !isLoopbackName(name) && !allowed.has(name) && !allowed.has("*")) {
      throw new HttpError(
        403,
        `Host ${host} is not a name of this machine; a proxy's name belongs in SVC_ALLOWED_HOSTS`,
      );
    }
    next();
  };
}

/**
 * Answers preflights, marks answers readable for allowed pages, refuses the rest before any work is done. Pages of this
 * machine are always allowed; `allowedOrigins` adds to them ("null": pages opened from a file; "*": every page).
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
