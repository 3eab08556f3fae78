/**
 * Allowed targets of `callback_url`: public addresses, and the hosts of SVC_CALLBACK_HOSTS. A name is resolved once
 * per request, and the request goes to the checked address.
 */
import type { LookupAddress } from "node:dns";
import { lookup } from "node:dns/promises";
import { BlockList, isIP } from "node:net";
import { describe } from "../../parameters.js";
import { withTimeLimit } from "../../system/time-limit.js";
import { RequestError } from "../errors.js";

/**
 * Non-public networks of the IANA special-purpose registries, and cloud metadata addresses. Of IPv6 only 2000::/3 is
 * public, except Teredo and its neighbours, documentation and 6to4.
 */
const NETWORKS = [
  "0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24",
  "192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/3 168.63.129.16/32",
  "2001::/23 2001:db8::/32 2002::/16 3fff::/20",
].flatMap((line) => line.split(" "));
const FORBIDDEN = new BlockList();
for (const network of NETWORKS) {
  const [address = "", prefix] = network.split("/");
  FORBIDDEN.addSubnet(address, Number(prefix), isIP(address) === 4 ? "ipv4" : "ipv6");
}
const PUBLIC_6 = new BlockList();
PUBLIC_6.addSubnet("2000::", 3, "ipv6");

const DEFAULT_PORTS: Readonly<Record<string, string>> = { "http:": "80", "https:": "443" };
const MAX_URL_CHARACTERS = 2048;
/** Time limit of the name lookup. The system's own limit may be minutes. */
const LOOKUP_SECONDS = 5;

export interface CallbackTarget {
  url: URL;
  address: LookupAddress;
}

/** @throws RequestError naming callback_url */
export function parseCallbackUrl(text: string): URL {
  if (text.length > MAX_URL_CHARACTERS) {
    throw new RequestError(
      `callback_url has ${text.length} characters; the maximum is ${MAX_URL_CHARACTERS}`,
    );
  }
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || DEFAULT_PORTS[url.protocol] === undefined) {
    throw new RequestError(`callback_url must be an http or https URL, got ${describe(text)}`);
  }
  if (url.username !== "" || url.password !== "") {
    throw new RequestError(
      "callback_url must not contain a user or password; the signature identifies the sender",
    );
  }
  return url;
}

/**
 * Resolves the host of the URL.
 * @param allowedHosts hosts of SVC_CALLBACK_HOSTS; without a port any port is allowed
 * @throws RequestError if it cannot be resolved or has a non-public address, or the signal's reason
 */
export async function resolveTarget(
  url: URL,
  allowedHosts: readonly string[],
  signal?: AbortSignal,
): Promise<CallbackTarget> {
  const name = url.hostname.replace(/^\[|\]$/g, "");
  const late = () => new Error(`the name server did not answer within ${LOOKUP_SECONDS} seconds`);
  const addresses = await withTimeLimit({ ms: LOOKUP_SECONDS * 1000, signal, error: late }, () =>
    lookup(name, { all: true, verbatim: true }),
  ).catch((error: Error) => {
    signal?.throwIfAborted();
    throw new RequestError(`callback_url: ${url.hostname} could not be resolved: ${error.message}`);
  });
  const port = url.port || DEFAULT_PORTS[url.protocol];
  const isListed = allowedHosts.includes(url.hostname) || allowedHosts.includes(`${url.hostname}:${port}`);
  const forbidden = isListed ? undefined : addresses.find(({ address }) => !isPublic(address));
  if (forbidden !== undefined) {
    const what = isIP(name) ? url.hostname : `${url.hostname} is ${forbidden.address}, which`;
    throw new RequestError(
      `callback_url: ${what} is not a public address; add ${url.hostname}:${port} to the server's SVC_CALLBACK_HOSTS to allow it`,
    );
  }
  return { url, address: addresses[0] as LookupAddress };
}

export function isPublic(address: string): boolean {
  if (isIP(address) === 4) return !FORBIDDEN.check(address, "ipv4");
  return PUBLIC_6.check(address, "ipv6") && !FORBIDDEN.check(address, "ipv6");
}
