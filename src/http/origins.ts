/**
 * Checks the origin of a request. Only browsers send `Origin`. DNS rebinding makes a foreign page same-origin
 * for the browser, but the `Host` header then has the foreign name.
 */
import type { IncomingMessage } from "node:http";
import { isIP } from "node:net";
import { describe } from "../parameters.js";

const LOOPBACK_NAME = /^(localhost|127(\.\d{1,3}){3}|::1|\[::1\])$/i;

/** Methods without side effects. POST is not safe: a form on any site can send it without a preflight. */
export const SAFE_METHODS: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS"]);

export function isLoopbackName(name: string): boolean {
  return LOOPBACK_NAME.test(name);
}

/** Lower-case host name of a `Host` header, without port. */
export function hostName(host: string): string {
  return host.replace(/:\d*$/, "").toLowerCase();
}

/** Whether the page comes from this machine, on any port. */
export function isLoopbackOrigin(origin: string): boolean {
  const host = /^https?:\/\/(.*)$/.exec(origin)?.[1];
  return host !== undefined && isLoopbackName(hostName(host));
}

/** Whether this server served the page. False for a host name that DNS may rebind: any but a loopback name. */
export function isOwnPage({ headers: { host } }: IncomingMessage, origin: string): boolean {
  if (host === undefined || !URL.canParse(origin)) return false;
  const { protocol, hostname } = new URL(origin);
  const isUnmistakable = isLoopbackName(hostname) || isIP(hostname.replace(/^\[|\]$/g, "")) !== 0;
  const own = `${protocol}//${host}`;
  return isUnmistakable && URL.canParse(own) && new URL(own).origin === origin;
}

/** Names the pages of an origin, for errors. */
export function pagesOf(origin: string): string {
  return origin === "null" ? "Pages opened from a file (origin null)" : `Pages of ${describe(origin)}`;
}
