/** Reads JSON, form and multipart bodies: checks the API key, and returns the fields and files. */

import type { Transform } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate } from "node:zlib";
import type { Request } from "express";
import { type Fields, isObject } from "../../parameters.js";
import type { Authenticator } from "../access/access.js";
import { NO_UPLOADS, type UploadLimits, type Uploads } from "../audio/uploads.js";
import { HttpError, RequestError } from "../errors.js";
import { addFormField } from "./fields.js";
import { parseClientJson } from "./json.js";
import {
  bodyTooLarge,
  clientDisconnected,
  type FileParts,
  MAX_FIELDS,
  readMultipart,
  removeFiles,
} from "./multipart.js";

export interface RequestBody {
  fields: Fields;
  uploads: Uploads;
  /** Name of the client whose key the request carries, see `Authenticator.clientOf`. Tasks made from the body are its. */
  client: string;
  /** Deletes the stored files except `kept`. Must be called for every request. */
  dispose(kept?: readonly string[]): Promise<void>;
}

type Content = Omit<RequestBody, "client">;

type BodyType = "json" | "form" | "multipart";

export interface BodyRule {
  types: readonly BodyType[];
  /** Whether files of multipart bodies are stored; otherwise they are discarded. */
  storesFiles: boolean;
  /** Whether an empty body is accepted; it counts as a body without fields. */
  mayBeEmpty: boolean;
  /**
   * Whether the body may hold recordings. If so, its size limit is higher for requests with a valid key in the
   * headers.
   */
  holdsRecordings?: boolean;
  /**
   * Field that holds the value of a JSON body, which may then be a list and have any Content-Type; by default the body
   * holds the fields.
   */
  jsonField?: string;
  /** File parts whose names differ from `uploadKind`; "text": the file's text is a field. */
  parts?: FileParts;
}

export const BODY_RULES = {
  releaseTask: { types: ["json", "form", "multipart"], storesFiles: true, mayBeEmpty: false },
  retake: { types: ["json", "form", "multipart"], storesFiles: true, mayBeEmpty: true },
  question: { types: ["json", "form", "multipart"], storesFiles: false, mayBeEmpty: true },
  chat: { types: ["json"], storesFiles: false, mayBeEmpty: false, holdsRecordings: true },
  command: { types: ["json", "form"], storesFiles: false, mayBeEmpty: true },
} as const satisfies Record<string, BodyRule>;

const TYPE_NAMES: Readonly<Record<BodyType, string>> = {
  json: "application/json",
  form: "application/x-www-form-urlencoded",
  multipart: "multipart/form-data",
};

/**
 * Maximum size by which inline recordings may enlarge a JSON body. Parsing takes four times this size in
 * memory.
 */
const MAX_INLINE_RECORDING_BYTES = 32 * 2 ** 20;

export class BodyReader {
  /** @param limits `maxBytes`: maximum size of a body without its uploaded files */
  constructor(
    private readonly authenticator: Authenticator,
    private readonly limits: { maxBytes: number; uploads: UploadLimits },
  ) {}

  /**
   * Reads the body, and checks the API key in the headers or in the body. A missing or wrong key takes
   * precedence over all other errors: it throws 401, and no file is stored.
   * @throws HttpError 400, 401 or 415
   */
  async read(request: Request, rule: BodyRule): Promise<RequestBody> {
    let hasKeyInForm = false;
    const onToken = (isKey: boolean) => {
      hasKeyInForm = isKey;
    };
    const body = await this.#read(request, rule, onToken).catch((error) => {
      if (hasKeyInForm) throw error;
      return this.authenticator.refuseUnread(request, error);
    });
    const { ai_token: token } = body.fields;
    try {
      this.authenticator.authorize(request, token);
    } catch (error) {
      await body.dispose();
      throw error;
    }
    return { ...body, client: this.authenticator.clientOf(request, token) };
  }

  async #read(request: Request, rule: BodyRule, onToken: (isKey: boolean) => void): Promise<Content> {
    const named = namedType(request);
    // Clients of acestep.cpp may send JSON with any type.
    const type = named === undefined && rule.jsonField !== undefined ? null : named;
    if (type === undefined || (type !== null && !rule.types.includes(type))) {
      throw unsupported(request, rule);
    }
    return type === "multipart"
      ? await this.#readMultipart(request, rule, onToken)
      : await this.#readText(request, type, rule);
  }

  async #readMultipart(
    request: Request,
    rule: BodyRule,
    onToken: (isKey: boolean) => void,
  ): Promise<Content> {
    const { fields, uploads, paths } = await readMultipart(request, {
      authenticator: this.authenticator,
      onToken,
      maxFieldBytes: this.limits.maxBytes,
      uploads: rule.storesFiles ? this.limits.uploads : null,
      parts: rule.parts ?? {},
    });
    const dispose = (kept: readonly string[] = []) =>
      removeFiles(paths.filter((path) => !kept.includes(path)));
    return { fields, uploads, dispose };
  }

  async #readText(request: Request, type: "json" | "form" | null, rule: BodyRule): Promise<Content> {
    const bytes = await readBytes(request, this.#maxBytes(request, rule));
    const fields = bytes.length === 0 && rule.mayBeEmpty ? {} : parseText(request, bytes, type, rule);
    return { fields, uploads: NO_UPLOADS, dispose: async () => {} };
  }

  #maxBytes(request: Request, { holdsRecordings = false }: BodyRule): number {
    const { maxBytes, uploads } = this.limits;
    const isLong = holdsRecordings && this.authenticator.acceptsHeaders(request);
    return isLong
      ? maxBytes + Math.min(Math.ceil((uploads.maxBytes * 4) / 3), MAX_INLINE_RECORDING_BYTES)
      : maxBytes;
  }
}

/** Reads and decompresses the body. If the body exceeds the limit, rejects at once and discards the rest. */
function readBytes(request: Request, maxBytes: number): Promise<Buffer> {
  if (Number(request.headers["content-length"]) > maxBytes) throw bodyTooLarge(maxBytes);
  const decoder = decoderOf(request);
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    const fail = (error: HttpError) => {
      chunks.length = 0;
      request.unpipe().resume();
      decoder?.destroy();
      reject(error);
    };
    const source = decoder === null ? request : request.pipe(decoder);
    source.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > maxBytes) fail(bodyTooLarge(maxBytes));
      else chunks.push(chunk);
    });
    source.on("end", () => resolve(Buffer.concat(chunks)));
    source.on("error", (error) => fail(new RequestError(`Unreadable body: ${error.message}`)));
    request.on("close", () => {
      if (!request.readableEnded) fail(clientDisconnected());
    });
  });
}

/** Decompressor for the Content-Encoding header; null if the body is not compressed. */
function decoderOf(request: Request): Transform | null {
  const encoding = (request.headers["content-encoding"] ?? "identity").trim().toLowerCase();
  if (encoding === "identity") return null;
  if (encoding === "gzip") return createGunzip();
  if (encoding === "deflate") return createInflate();
  if (encoding === "br") return createBrotliDecompress();
  throw new HttpError(415, `Unsupported Content-Encoding: ${encoding}; use gzip, deflate or br`);
}

/**
 * Body type that the Content-Type header names. null: there is no header; undefined: the type is unsupported.
 */
function namedType(request: Request): BodyType | null | undefined {
  const header = request.headers["content-type"];
  if (header === undefined) return null;
  const [mediaType = ""] = header.toLowerCase().split(";", 1);
  if (mediaType.trim().endsWith("+json")) return "json";
  return (Object.keys(TYPE_NAMES) as BodyType[]).find((type) => TYPE_NAMES[type] === mediaType.trim());
}

function parseText(request: Request, bytes: Buffer, type: "json" | "form" | null, rule: BodyRule): Fields {
  if (type === "json") return parseJson(decode(bytes, request), rule);
  const text = decode(bytes, request);
  // Detect JSON by its content, whatever the header says, because curl sends any body as a form by default.
  if (/^\s*[{[]/.test(text)) return parseJson(text, rule, " (hint: set 'Content-Type: application/json')");
  if (type === "form" || text.includes("=")) return parseForm(text);
  throw unsupported(request, rule);
}

function parseJson(text: string, { jsonField }: BodyRule, hint = ""): Fields {
  let value: unknown;
  try {
    value = parseClientJson(text, "The JSON payload");
  } catch (error) {
    if (error instanceof RequestError) throw error;
    throw new RequestError(`Malformed JSON payload${hint}: ${(error as Error).message}`);
  }
  if (jsonField !== undefined) return { [jsonField]: value };
  if (!isObject(value)) throw new RequestError(`JSON payload must be an object${hint}`);
  return value;
}

function parseForm(text: string): Fields {
  if (text.split("&", MAX_FIELDS + 1).length > MAX_FIELDS)
    throw new RequestError(`The request holds more than ${MAX_FIELDS} fields`);
  const fields: Record<string, unknown> = Object.create(null);
  for (const [name, value] of new URLSearchParams(text)) addFormField(fields, name, value);
  return fields;
}

function decode(bytes: Buffer, request: Request): string {
  const charset =
    /;\s*charset\s*=\s*"?([^\s";]+)/i.exec(request.headers["content-type"] ?? "")?.[1] ?? "utf-8";
  try {
    return new TextDecoder(charset, { fatal: true }).decode(bytes);
  } catch (error) {
    if (error instanceof RangeError) throw new HttpError(415, `Unsupported charset: ${charset}`);
    throw new RequestError(`The body is not valid ${charset} text`);
  }
}

function unsupported(request: Request, rule: BodyRule): HttpError {
  const sent = request.headers["content-type"] ?? "(missing)";
  const accepted = rule.types.map((type) => TYPE_NAMES[type]).join(", ");
  return new HttpError(415, `Unsupported Content-Type: ${sent}; use one of ${accepted}`);
}
