/** HTTP requests to Hugging Face or a mirror ("the hub"), with limits on redirects and response size. */
import { PullError } from "./errors.js";

/** Domains that serve the large files of Hugging Face and its mirrors. */
const PUBLIC_HOSTS = ["huggingface.co", "hf.co"];
const REDIRECTS = [301, 302, 303, 307, 308];
const MAX_REDIRECTS = 8;

type Fetch = typeof fetch;

/**
 * Fetches from the hub. Follows redirects only to the hub's host, its subdomains, and the file hosts of Hugging
 * Face. Sends the token only to the hub.
 * @throws PullError HUB for a redirect to another host, and errors of `fetch`
 */
export async function fetchFromHub(
  address: string,
  init: RequestInit | undefined,
  { hub, signal }: { hub: URL; signal: AbortSignal },
): Promise<Response> {
  let url = new URL(address);
  for (let count = 0; count <= MAX_REDIRECTS; count++) {
    assertHost(url, hub);
    const headers = new Headers(init?.headers);
    if (url.origin !== hub.origin) headers.delete("Authorization");
    const response = await fetch(url, { ...init, headers, signal, redirect: "manual" });
    const location = response.headers.get("Location");
    if (!REDIRECTS.includes(response.status) || location === null) return response;
    await response.body?.cancel();
    url = new URL(location, url);
  }
  throw new PullError("HUB", `${hub.origin} has too many redirects`);
}

function assertHost(url: URL, hub: URL): void {
  const isOf = (host: string) => url.hostname === host || url.hostname.endsWith(`.${host}`);
  const isSafe = url.protocol === "https:" || url.protocol === hub.protocol;
  if (isSafe && [hub.hostname, ...PUBLIC_HOSTS].some(isOf)) return;
  throw new PullError(
    "HUB",
    `${hub.origin} redirects to ${url.origin}, which is not a host of the hub. Set HF_ENDPOINT to a hub that serves its own files.`,
  );
}

/** Returns a `fetch` that aborts a response with more than `maxBytes`. */
export function limitSize(fetchFrom: Fetch, maxBytes: number): Fetch {
  return async (input, init) => {
    const response = await fetchFrom(input, init);
    if (response.body === null || !response.ok) return response;
    let bytes = 0;
    const limit = new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        bytes += chunk.length;
        if (bytes > maxBytes)
          controller.error(
            new PullError(
              "CHECKSUM",
              `${response.url} sends more than the ${maxBytes} bytes that are listed; the rest was not read`,
            ),
          );
        else controller.enqueue(chunk);
      },
    });
    const { status, statusText, headers } = response;
    const own = new Response(response.body.pipeThrough(limit), { status, statusText, headers });
    return Object.defineProperty(own, "url", { value: response.url });
  };
}
