/** Reads a multipart body: text parts become fields, file parts are streamed to disk. */

import { rm } from "node:fs/promises";
import type { IncomingMessage } from "node:http";
import type { Readable } from "node:stream";
import busboy from "busboy";
import { describe, type Fields } from "../../parameters.js";
import type { Authenticator } from "../access/access.js";
import {
  mapUploadKinds,
  storeUpload,
  UPLOAD_FIELDS,
  type Upload,
  type UploadKind,
  type UploadLimits,
  type Uploads,
  uploadKind,
  uploadPath,
} from "../audio/uploads.js";
import { RequestError, StoreError, TooLargeError } from "../errors.js";
import { addFormField } from "./fields.js";

export const MAX_FIELDS = 1000;

/** What to do with the file parts of these names. "text": the text of the file is a field. */
export type FileParts = Readonly<Record<string, UploadKind | "text">>;

export interface MultipartOptions {
  authenticator: Authenticator;
  /** Called for each `ai_token` part; `isKey` says whether its value is a valid key. */
  onToken(isKey: boolean): void;
  /** Total size limit of text parts. */
  maxFieldBytes: number;
  /** Limits of file parts; null to discard all files. */
  uploads: UploadLimits | null;
  /** File parts whose names differ from `uploadKind`. */
  parts: FileParts;
}

export interface MultipartBody {
  fields: Fields;
  uploads: Uploads;
  paths: string[];
}

/**
 * Reads the body. Stores a file only if a valid key comes before it, in the headers or in an `ai_token` part;
 * discards other files. The caller must still check the key. After a failure, deletes the stored files and
 * discards the rest of the body, so that the client can read the response.
 * @throws RequestError for a malformed body, an exceeded limit, or a disconnected client
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
  await Promise.all(
    paths.map((path) =>
      rm(path, { force: true }).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== "ENOTDIR") throw error; // the folder was replaced by a file
      }),
    ),
  );
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

  constructor(
    private readonly request: IncomingMessage,
    private readonly options: MultipartOptions,
  ) {
    this.#parser = createParser(request, options);
    this.#mayStore = options.authenticator.acceptsHeaders(request);
  }

  async read(): Promise<MultipartBody> {
    const parser = this.#parser;
    const closed = new Promise<void>((resolve) => parser.once("close", resolve));
    parser.on("field", (name, value, info) => this.#takeField(name, value, info.valueTruncated));
    parser.on("file", (name, content, info) =>
      this.#writes.push(this.#takeFile(name, content, info.filename)),
    );
    parser.on("error", (error) => this.#fail(malformed(error)));
    parser.on("filesLimit", () =>
      this.#fail(new RequestError(`The request holds more than ${this.options.uploads?.maxFiles} files`)),
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
   * Feeds the body to the parser. Discards the rest of the body after a failure. Never rejects: errors of the
   * parser and its listeners become the failure of the request. With `pipe` they would be uncaught.
   */
  async #feed(closed: Promise<void>): Promise<void> {
    const parser = this.#parser;
    const write = (chunk: Buffer) => new Promise<unknown>((resolve) => parser.write(chunk, resolve));
    try {
      for await (const chunk of this.request) {
        if (this.#failure === undefined)
          await Promise.race([write(chunk), closed]).catch((e) => this.#fail(e));
      }
      // End the file streams explicitly. If the headers of a file part run into the closing boundary, the
      // parser waits forever for the file. Ending the stream makes the parser report the part as malformed.
      parser.end();
      for (const content of this.#contents) content.push(null);
    } catch {
      this.#fail(clientDisconnected());
    }
  }

  /** @param value undefined if the parser does not know the charset */
  #takeField(name: string | undefined, value: string | undefined, isTruncated = false): void {
    if (value === undefined) {
      this.#fail(
        new RequestError(
          `${describe(name ?? "")} must be text in UTF-8, UTF-16LE or ISO-8859-1, not another charset`,
        ),
      );
      return;
    }
    // Ignore parts without a name.
    if (name === undefined) return;
    this.#fieldBytes += Buffer.byteLength(name) + Buffer.byteLength(value);
    if (isTruncated || this.#fieldBytes > this.options.maxFieldBytes) {
      this.#fail(bodyTooLarge(this.options.maxFieldBytes));
      return;
    }
    if (name === "ai_token" && value !== "") {
      this.#mayStore = this.options.authenticator.accepts(value);
      this.options.onToken(this.#mayStore);
    }
    addFormField(this.#fields, name, value);
  }

  /** Stores or discards a file part; never rejects. */
  async #takeFile(field: string, content: Readable, clientName: string | undefined): Promise<void> {
    const { uploads, parts } = this.options;
    const kind = parts[field] ?? uploadKind(field);
    this.#contents.push(content);
    content.on("error", (error) => this.#fail(uploadFailure(error)));
    content.on("limit", () =>
      this.#fail(new TooLargeError(`${field} is larger than the limit of ${uploads?.maxBytes} bytes`)),
    );
    try {
      if (kind === "text") {
        await this.#takeText(field, content);
        return;
      }
      if (kind === null || uploads === null) {
        await drain(content);
        return;
      }
      const path = this.#mayStore ? uploadPath(uploads.directory, kind, clientName ?? "") : null;
      if (path !== null) this.paths.push(path);
      const bytes = path === null ? await drain(content) : await storeUpload(content, path);
      // Browsers send an empty part without a file name for an unused file input.
      if (bytes === 0 && !clientName) return;
      if (this.#received.has(field)) this.#fail(new RequestError(`${field} was sent more than once`));
      this.#received.set(field, { path });
    } catch (error) {
      this.#fail(uploadFailure(error));
    }
  }

  #uploads(): Uploads {
    const { parts } = this.options;
    return mapUploadKinds((kind) => {
      const named = Object.keys(parts).filter((field) => parts[field] === kind);
      return (
        [...named, ...UPLOAD_FIELDS[kind]].flatMap((field) => this.#received.get(field) ?? [])[0] ?? null
      );
    });
  }

  /** Reads a file part that holds the text of a field. */
  async #takeText(field: string, content: Readable): Promise<void> {
    const chunks: Buffer[] = [];
    let bytes = 0;
    for await (const chunk of content) {
      bytes += chunk.length;
      if (bytes <= this.options.maxFieldBytes) chunks.push(chunk);
    }
    const isWhole = bytes <= this.options.maxFieldBytes;
    if (isWhole) this.#takeField(field, Buffer.concat(chunks).toString());
    else this.#fail(bodyTooLarge(this.options.maxFieldBytes));
  }

  #fail(error: unknown): void {
    if (this.#failure !== undefined) return;
    this.#failure = error;
    // Destroy the parser on the next tick: it cannot be destroyed by its own callback.
    process.nextTick(() => this.#parser.destroy(new Error("aborted")));
  }
}

function createParser(
  request: IncomingMessage,
  { maxFieldBytes, uploads, parts }: MultipartOptions,
): busboy.Busboy {
  const texts = Object.values(parts).filter((kind) => kind === "text").length;
  try {
    return busboy({
      headers: request.headers,
      defParamCharset: "utf8",
      limits: {
        fieldSize: maxFieldBytes,
        fields: MAX_FIELDS,
        // busboy rejects a file of exactly `fileSize` bytes.
        fileSize: uploads ? uploads.maxBytes + 1 : Number.POSITIVE_INFINITY,
        files: (uploads?.maxFiles ?? Number.POSITIVE_INFINITY) + texts,
      },
    });
  } catch (error) {
    request.resume();
    throw malformed(error);
  }
}

export function bodyTooLarge(maxBytes: number): TooLargeError {
  return new TooLargeError(`The request body is larger than the limit of ${maxBytes} bytes`);
}

export function clientDisconnected(): RequestError {
  return new RequestError("The client disconnected before the body was complete");
}

async function drain(content: Readable): Promise<number> {
  let bytes = 0;
  for await (const chunk of content) bytes += chunk.length;
  return bytes;
}

function malformed(error: unknown): RequestError {
  return new RequestError(`Malformed multipart body: ${error instanceof Error ? error.message : error}`);
}

/** Converts an error of a file part: disk errors stay as they are, all others mean that the body is malformed. */
function uploadFailure(error: unknown): unknown {
  return error instanceof StoreError || (error instanceof Error && "syscall" in error)
    ? error
    : malformed(error);
}
