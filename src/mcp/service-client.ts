/** HTTP client of a service. Answers may take minutes, so there is no time limit but the caller's signal. */
import { request as httpRequest, type IncomingMessage, type OutgoingHttpHeaders } from "node:http";
import { request as httpsRequest } from "node:https";
import { buffer } from "node:stream/consumers";

export interface ServiceAnswer {
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

  get(path: string, signal?: AbortSignal): Promise<ServiceAnswer> {
    return this.#ask("GET", path, null, signal);
  }

  post(path: string, body: unknown, signal?: AbortSignal): Promise<ServiceAnswer> {
    return this.#ask("POST", path, Buffer.from(JSON.stringify(body)), signal);
  }

  async #ask(
    method: string,
    path: string,
    body: Buffer | null,
    signal?: AbortSignal,
  ): Promise<ServiceAnswer> {
    const url = new URL(this.url + path);
    const content = body ? { "Content-Type": "application/json", "Content-Length": body.length } : {};
    const ask = url.protocol === "https:" ? httpsRequest : httpRequest;
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      const headers = { ...this.#headers, ...content };
      const outgoing = ask(url, { method, headers, agent: false, ...(signal && { signal }) }, resolve);
      outgoing.on("error", reject);
      outgoing.end(body ?? undefined);
    });
    const mediaType = (answer.headers["content-type"] ?? "").split(";", 1)[0] as string;
    return { status: answer.statusCode ?? 0, mediaType, bytes: await buffer(answer) };
  }
}

/** Query string of values that are neither undefined nor null. */
export function queryOf(values: Readonly<Record<string, unknown>>): string {
  const given = Object.entries(values).filter(([, value]) => value !== undefined && value !== null);
  if (given.length === 0) return "";
  return `?${given.map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`).join("&")}`;
}
