/** HTTP client of a service. Responses may take minutes, so only the caller's signal limits the time. */
import { request as httpRequest, type IncomingMessage, type OutgoingHttpHeaders } from "node:http";
import { request as httpsRequest } from "node:https";
import { buffer } from "node:stream/consumers";

export interface ServiceResponse {
  readonly status: number;
  readonly mediaType: string;
  readonly bytes: Buffer;
}

export class ServiceClient {
  readonly url: string;
  readonly #headers: OutgoingHttpHeaders;

  /** @param headers sent with every request, such as the key */
  constructor(url: string, headers: OutgoingHttpHeaders = {}) {
    this.url = url.replace(/\/$/, "");
    this.#headers = headers;
  }

  get(path: string, signal?: AbortSignal): Promise<ServiceResponse> {
    return this.#request("GET", path, null, signal);
  }

  post(path: string, body: unknown, signal?: AbortSignal): Promise<ServiceResponse> {
    return this.#request("POST", path, Buffer.from(JSON.stringify(body)), signal);
  }

  async #request(
    method: string,
    path: string,
    body: Buffer | null,
    signal?: AbortSignal,
  ): Promise<ServiceResponse> {
    const url = new URL(this.url + path);
    const content = body ? { "Content-Type": "application/json", "Content-Length": body.length } : {};
    const send = url.protocol === "https:" ? httpsRequest : httpRequest;
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const headers = { ...this.#headers, ...content };
      const outgoing = send(url, { method, headers, agent: false, ...(signal && { signal }) }, resolve);
      outgoing.on("error", reject);
      outgoing.end(body ?? undefined);
    });
    const mediaType = (response.headers["content-type"] ?? "").split(";", 1)[0] as string;
    return { status: response.statusCode ?? 0, mediaType, bytes: await buffer(response) };
  }
}

/** Query string of the values; omits undefined and null. */
export function queryOf(values: Readonly<Record<string, unknown>>): string {
  const given = Object.entries(values).filter(([, value]) => value !== undefined && value !== null);
  if (given.length === 0) return "";
  return `?${given.map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`).join("&")}`;
}
