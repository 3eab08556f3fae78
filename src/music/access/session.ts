/**
 * Browser sessions: a cookie replaces the API key. Scripts cannot read the cookie (HttpOnly), and other sites
 * cannot use it (SameSite=Strict). It contains an expiry time and an HMAC of that time with the key. The server
 * stores no sessions: sessions survive a restart, and end if the key changes.
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";

const LIFETIME_SECONDS = 30 * 24 * 3600;

/** Name of the cookie. It contains the port, because all ports of a host share cookies. */
function cookieName({ headers: { host = "" } }: IncomingMessage): string {
  return `carillon_${/:(\d+)$/.exec(host)?.[1] ?? "session"}`;
}

/** `Set-Cookie` header that starts a session with this key. */
export function sessionCookie(request: IncomingMessage, keyDigest: Buffer): string {
  const expires = Math.floor(Date.now() / 1000) + LIFETIME_SECONDS;
  return cookie(request, `${expires}.${signature(keyDigest, expires)}`, LIFETIME_SECONDS);
}

export function expiredSessionCookie(request: IncomingMessage): string {
  return cookie(request, "", 0);
}

function cookie(request: IncomingMessage, value: string, maxAgeSeconds: number): string {
  const secure = request.headers.origin?.startsWith("https:") ? "; Secure" : "";
  return `${cookieName(request)}=${value}; Path=/; Max-Age=${maxAgeSeconds}; HttpOnly; SameSite=Strict${secure}`;
}

/** Index of the API key of the request's session; -1 if the request has no valid session. */
export function sessionKeyIndex(request: IncomingMessage, keyDigests: readonly Buffer[]): number {
  if (isFromOtherOrigin(request)) return -1;
  const prefix = `${cookieName(request)}=`;
  const sent = request.headers.cookie?.split("; ").find((pair) => pair.startsWith(prefix));
  const [expires = "", mac = ""] = sent?.slice(prefix.length).split(".") ?? [];
  if (!(Number(expires) > Date.now() / 1000)) return -1;
  return keyDigests.findIndex((key) => {
    const expected = Buffer.from(signature(key, Number(expires)));
    const given = Buffer.from(mac);
    return given.length === expected.length && timingSafeEqual(given, expected);
  });
}

/**
 * Whether a page of another origin sent the request. SameSite is not enough, because other ports of the host are
 * the same site.
 */
function isFromOtherOrigin({ headers }: IncomingMessage): boolean {
  const { origin, host, "sec-fetch-site": site = "same-origin" } = headers;
  if (origin !== undefined && (!URL.canParse(origin) || new URL(origin).host !== host)) return true;
  return site !== "same-origin" && site !== "none";
}

function signature(keyDigest: Buffer, expires: number): string {
  return createHmac("sha256", keyDigest).update(`carillon session until ${expires}`).digest("base64url");
}
