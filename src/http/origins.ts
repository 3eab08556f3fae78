/**
 * Who asks, as far as a request tells: programs send no `Origin`, browsers name the page. A page whose own name was made
 * to resolve to this machine (DNS rebinding) is no foreign page to the browser: it is known by the name in `Host`.
 */
import type { IncomingMessage } from "node:http";
import { isIP } from "node:net";

const LOOPBACK_NAME = /^(localhost|127(\.\d{1,3}){3}|::1|\[::1\])$/i;

/** Methods by which nothing changes. Browsers send others across sites too, forms even without asking first. */
export const SAFE_METHODS: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS"]);

/** Whether only this machine bears the name, or the address. */
export function isLoopbackName(name: string): boolean {
  return LOOPBACK_NAME.test(name);
}

/** The name in a `Host` header, in lower case; whatever the port. */
export function hostName(host: string): string {
  return host.replace(/:\d*$/, "").toLowerCase();
}

/** Whether a page is one of this machine, whatever serves it. */
export function isLoopbackOrigin(origin: string): boolean {
  const host = /^https?:\/\/(.*)$/.exec(origin)?.[1];
  return host !== undefined && isLoopbackName(hostName(host));
}

/**
 * Whether the server that is asked sent the page itself. Only by address or a name of this machine: any other name
 * could be a foreign site's that was made to resolve to this machine.
 */
export function isOwnPage({ headers: { host } }: IncomingMessage, origin: string): boolean {
  if (host === undefined || !URL.canParse(origin)) return false;
  const { protocol, hostname } = new URL(origin);
  const isUnmistakable = isLoopbackName(hostname) || isIP(hostname.replace(/^\[|\]$/g, "")) !== 0;
  const own = `${protocol}//${host}`;
  return isUnmistakable && URL.canParse(own) && new URL(own).origin === origin;
}
