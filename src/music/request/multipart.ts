/** Reads a multipart body: text parts become fields, file parts go to disk while they arrive. */

import { rm } from "node:fs/promises";
import type { IncomingMessage } from "node:http";
import type { Readable } from "node:stream";
import busboy from "busboy";
import { describe } from "../../parameters.js";
import type { Authenticator } from "../access.js";
import {
  storeUpload,
  UPLOAD_FIELDS,
  type Upload,
  type UploadKind,
  type UploadLimits,
  type Uploads,
  uploadKind,
  uploadPath,
} from "../audio/uploads.js";
import { RequestError } from "../errors.js";
import type { Fields } from "./json.js";

export const MAX_FIELDS = 1000;

export interface MultipartOptions {
  authenticator: Authenticator;
  /** Bytes of all text parts together. */
  maxFieldBytes: number;
  /** Null: files are read and dropped. */
  uploads: UploadLimits | null;
}

export interface MultipartBody {
  fields: Fields;
  uploads: Uploads;
  /** Files written, whatever became of them. */
  paths: string[];
}

/**
 * Files are stored only once a valid key is known, from the headers or from an `ai_token` part that came
 * before them; other files are dropped. Whether the request is authorized is for the caller to decide.
 * On failure nothing stays on disk, and the rest of the body is read and dropped so that the client can
 * read the answer.
 * @throws RequestError where the body is malformed, exceeds a limit, or the client hung up
 */
export async function readMultipart(
  request: IncomingMessage,
  options: MultipartOptions,
): Promise<MultipartBody> {
  const reader = new MultipartReader(request, options);
  try {
    return await reader.read();
  } catch (error) {
    await removeFiles(reader.paths);
    throw error;
  }
}

export async function removeFiles(paths: readonly string[]): Promise<void> {
  await Promise.all(paths.map((path) => rm(path, { force: true })));
}

class MultipartReader {
  readonly paths: string[] = [];
  readonly #fields: Record<string, unknown> = Object.create(null);
  readonly #received = new Map<string, Upload>();
  readonly #contents: Readable[] = [];
  readonly #writes: Promise<void>[] = [];
  readonly #parser: busboy.Busboy;
  #fieldBytes = 0;
  #mayStore: boolean;
  #failure: unknown;

  readonly #request: IncomingMessage;
  readonly #options: MultipartOptions;

  constructor(request: IncomingMessage, options: MultipartOptions) {
    this.#request = request;
    this.#options = options;
    this.#parser = createParser(request, options);
    this.#mayStore = options.authenticator.acceptsHeaders(request);
  }

  async read(): Promise<MultipartBody> {
    const parser = this.#parser;
    const closed = new Promise<void>((resolve) => parser.once("close", resolve));
    parser.on("field", (name, value, info) => this.#takeField(name, value, info));
    parser.on("file", (name, content, info) =>
      this.#writes.push(this.#takeFile(name, content, info.filename)),
    );
    parser.on("error", (error) => this.#fail(malformed(error)));
    parser.on("filesLimit", () =>
      this.#fail(new RequestError(`The request holds more than ${this.#options.uploads?.maxFiles} files`)),
    );
    for (const limit of ["fieldsLimit", "partsLimit"] as const) {
      parser.on(limit, () =>
        this.#fail(new RequestError(`The request holds more than ${MAX_FIELDS} fields`)),
      );
    }
    void this.#feed(closed);
    await closed;
    await Promise.all(this.#writes);
    if (this.#failure !== undefined) throw this.#failure;
    return { fields: this.#fields, uploads: this.#uploads(), paths: this.paths };
  }

  /**
   * Gives the body to the parser, and after a failure to nobody. Never rejects: whatever the parser or a listener of
   * its events throws fails the request. A pipe would throw it where nobody can catch it.
   */
  async #feed(closed: Promise<void>): Promise<void> {
    const parser = this.#parser;
    const write = (chunk: Buffer) => new Promise<unknown>((resolve) => parser.write(chunk, resolve));
    try {
      for await (const chunk of this.#request) {
        if (this.#failure === undefined)
          await Promise.race([write(chunk), closed]).catch((e) => this.#fail(e));
      }
      // All bytes are seen. The parser would wait for ever for the end of a file part whose headers run straight into
      // the closing boundary; ended here, it is found to be malformed.
      parser.end();
      for (const content of this.#contents) content.push(null);
    } catch {
      this.#fail(clientHungUp());
    }
  }

  /** @param value undefined in spite of its type where the part names a charset that the parser does not know */
  #takeField(name: string | undefined, value: string | undefined, info: busboy.FieldInfo): void {
    if (value === undefined) {
      this.#fail(
        new RequestError(
          `${describe(name ?? "")} must be text in UTF-8, UTF-16LE or ISO-8859-1, not another charset`,
        ),
      );
      return;
    }
    // A part without a name is no field.
    if (name === undefined) return;
    this.#fieldBytes += Buffer.byteLength(name) + Buffer.byteLength(value);
    if (info.valueTruncated || this.#fieldBytes > this.#options.maxFieldBytes) {
      this.#fail(bodyTooLarge(this.#options.maxFieldBytes));
      return;
    }
    if (name === "ai_token" && value !== "") this.#mayStore = this.#options.authenticator.accepts(value);
    const earlier = this.#fields[name];
    if (earlier === undefined) this.#fields[name] = value;
    else this.#fields[name] = Array.isArray(earlier) ? [...earlier, value] : [earlier, value];
  }

  /** Settles when the part is dealt with; never rejects. */
  async #takeFile(field: string, content: Readable, clientName: string | undefined): Promise<void> {
    const { uploads } = this.#options;
    const kind = uploadKind(field);
    this.#contents.push(content);
    content.on("error", (error) => this.#fail(uploadFailure(error)));
    content.on("limit", () =>
      this.#fail(new RequestError(`${field} is larger than the limit of ${uploads?.maxBytes} bytes`)),
    );
    try {
      if (kind === null || uploads === null) {
        await drain(content);
        return;
      }
      const path = this.#mayStore ? uploadPath(uploads.directory, kind, clientName ?? "") : null;
      if (path !== null) this.paths.push(path);
      const bytes = path === null ? await drain(content) : await storeUpload(content, path);
      // Browsers send an empty, unnamed part for a file input that nobody touched.
      if (bytes > 0 || clientName) this.#received.set(field, { path });
    } catch (error) {
      this.#fail(uploadFailure(error));
    }
  }

  #uploads(): Uploads {
    const of = (kind: UploadKind) =>
      UPLOAD_FIELDS[kind].map((field) => this.#received.get(field)).find((upload) => upload !== undefined) ??
      null;
    return { referenceAudio: of("referenceAudio"), sourceAudio: of("sourceAudio") };
  }

  #fail(error: unknown): void {
    if (this.#failure !== undefined) return;
    this.#failure = error;
    // The parser may be in the middle of the call that found the fault, and does not survive a destroy then.
    process.nextTick(() => this.#parser.destroy(new Error("given up")));
  }
}

function createParser(request: IncomingMessage, { maxFieldBytes, uploads }: MultipartOptions): busboy.Busboy {
  try {
    return busboy({
      headers: request.headers,
      defParamCharset: "utf8",
      limits: {
        fieldSize: maxFieldBytes,
        fields: MAX_FIELDS,
        // busboy reports a file of exactly its limit as too large.
        fileSize: uploads ? uploads.maxBytes + 1 : Number.POSITIVE_INFINITY,
        files: uploads?.maxFiles ?? Number.POSITIVE_INFINITY,
      },
    });
  } catch (error) {
    request.resume();
    throw malformed(error);
  }
}

export function bodyTooLarge(maxBytes: number): RequestError {
  return new RequestError(`The request body is larger than the limit of ${maxBytes} bytes`);
}

export function clientHungUp(): RequestError {
  return new RequestError("The client hung up before the body was complete");
}

async function drain(content: Readable): Promise<number> {
  let bytes = 0;
  for await (const chunk of content) bytes += chunk.length;
  return bytes;
}

function malformed(error: unknown): RequestError {
  return new RequestError(`Malformed multipart body: ${error instanceof Error ? error.message : error}`);
}

/** A file part ends early because the client sent it so, or because the disk does not take it. */
function uploadFailure(error: unknown): unknown {
  return error instanceof Error && "syscall" in error ? error : malformed(error);
}
