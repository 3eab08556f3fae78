/** HTTP client of a service. */
import { request as httpRequest, type OutgoingHttpHeaders } from "node:http";
import { request as httpsRequest } from "node:https";
import { buffer } from "node:stream/consumers";
import { responseTo } from "../http/response-to.js";
import { withTimeLimit } from "../system/time-limit.js";

/** Time limit of a request. Building a large city area takes minutes. */
const LIMIT_MINUTES = 10;

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

  #request(
    method: string,
    path: string,
    body: Buffer | null,
    caller?: AbortSignal,
  ): Promise<ServiceResponse> {
    const url = new URL(this.url + path);
    const content = body ? { "Content-Type": "application/json", "Content-Length": body.length } : {};
    const headers = { ...this.#headers, ...content };
    const send = url.protocol === "https:" ? httpsRequest : httpRequest;
    const error = () => new Error(`${url.origin} did not answer within ${LIMIT_MINUTES} minutes`);
    return withTimeLimit({ ms: LIMIT_MINUTES * 60_000, signal: caller, error }, async (signal) => {
      const outgoing = send(url, { method, headers, agent: false, signal });
      const response = await responseTo(outgoing.end(body ?? undefined));
      const mediaType = (response.headers["content-type"] ?? "").split(";", 1)[0] as string;
      return { status: response.statusCode ?? 0, mediaType, bytes: await buffer(response) };
    });
  }
}

/** Query string of the values; omits undefined and null. */
export function queryOf(values: Readonly<Record<string, unknown>>): string {
  const given = Object.entries(values).filter(([, value]) => value !== undefined && value !== null);
  if (given.length === 0) return "";
  return `?${given.map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`).join("&")}`;
}
