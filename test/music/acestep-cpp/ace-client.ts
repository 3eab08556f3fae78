/** A client of acestep.cpp's server: submits jobs, polls them and reads their results. */
import { setTimeout as sleep } from "node:timers/promises";
import { checkAnswer } from "../openapi-check.js";

const POLL_INTERVAL_MS = 20;

export interface Part {
  type: string;
  bytes: Buffer;
}

export interface AceAnswer {
  status: number;
  headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: tests read whatever the server answers
  body: any;
}

export class AceClient {
  /** @param server has the base address, as soon as it has started */
  constructor(
    private readonly server: { url: string },
    private readonly headers: Record<string, string> = {},
  ) {}

  async send(method: string, path: string, body?: unknown): Promise<AceAnswer> {
    const isForm = body instanceof FormData;
    const response = await fetch(this.server.url + path, {
      method,
      headers: {
        ...this.headers,
        ...(!isForm && body !== undefined && { "Content-Type": "application/json" }),
      },
      ...(body !== undefined && { body: isForm || typeof body === "string" ? body : JSON.stringify(body) }),
    });
    const type = response.headers.get("content-type") ?? "";
    if (!type.includes("json")) return { ...own(response), body: Buffer.from(await response.arrayBuffer()) };
    const answer = await response.json();
    checkAnswer(method, new URL(path, this.server.url).href, response.status, answer);
    return { ...own(response), body: answer };
  }

  get(path: string): Promise<AceAnswer> {
    return this.send("GET", path);
  }

  /** Submits a job and returns its id. @throws Error if it is refused */
  async submit(path: string, body: unknown): Promise<string> {
    const { status, body: answer } = await this.send("POST", path, body);
    if (status !== 200) throw new Error(`${path} answered ${status}: ${answer.error}`);
    return answer.id;
  }

  async ended(id: string): Promise<string> {
    for (;;) {
      const { status } = (await this.get(`/job?id=${id}`)).body;
      if (status !== "running") return status;
      await sleep(POLL_INTERVAL_MS);
    }
  }

  /** Result of a job that is done. */
  async resultOf(id: string): Promise<AceAnswer> {
    const status = await this.ended(id);
    if (status !== "done") throw new Error(`the job is ${status}`);
    return this.get(`/job?id=${id}&result=1`);
  }

  async run(path: string, body: unknown): Promise<AceAnswer> {
    return this.resultOf(await this.submit(path, body));
  }

  /** Parts of a multipart result. */
  async parts(path: string, body: unknown): Promise<Part[]> {
    return partsOf(await this.run(path, body));
  }
}

function own({ status, headers }: Response) {
  return { status, headers };
}

/** Parses multipart/mixed, which must end with the closing boundary. */
export function partsOf({ headers, body }: AceAnswer): Part[] {
  const boundary = /^multipart\/mixed; boundary=([^\s;]+)$/.exec(headers.get("content-type") ?? "")?.[1];
  if (boundary === undefined) throw new Error(`the result is ${headers.get("content-type")}`);
  const parts: Part[] = [];
  const delimiter = `--${boundary}`;
  let at = (body as Buffer).indexOf(delimiter);
  for (;;) {
    const begin = at + delimiter.length;
    if (body.toString("latin1", begin, begin + 4) === "--\r\n") return parts;
    const end = body.indexOf(`\r\n${delimiter}`, begin);
    if (end < 0) throw new Error("the result has no closing boundary");
    const head = body.indexOf("\r\n\r\n", begin);
    const type = /^\r\nContent-Type: (.+)$/.exec(body.toString("latin1", begin, head))?.[1] ?? "";
    parts.push({ type, bytes: body.subarray(head + 4, end) });
    at = end + 2;
  }
}

export function formOf(parts: Record<string, unknown>): FormData {
  const form = new FormData();
  for (const [name, value] of Object.entries(parts)) {
    if (value instanceof Blob) form.append(name, value, `${name}.bin`);
    else if (value instanceof Uint8Array) form.append(name, new Blob([value as never]), `${name}.bin`);
    else form.append(name, JSON.stringify(value));
  }
  return form;
}
