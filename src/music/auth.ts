/**
 * API key checks (spec: Authentication). A key may come as body field `ai_token`, as `Authorization`
 * header with or without the Bearer scheme, as `X-API-Key`, and on audio downloads as query parameter.
 */
import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { HttpError } from "./errors.js";

export class Authenticator {
  private readonly keyDigest: Buffer | null;

  /** @param apiKey blank: every request passes. */
  constructor(apiKey: string) {
    this.keyDigest = apiKey.trim() === "" ? null : digest(apiKey.trim());
  }

  get isEnabled(): boolean {
    return this.keyDigest !== null;
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
    if (this.keyDigest === null) return true;
    // Digests have one length, so the comparison takes one time whatever was presented.
    return typeof presented === "string" && timingSafeEqual(this.keyDigest, digest(presented));
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
