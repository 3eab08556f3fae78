/** Stores songs and uploads in an S3 bucket or a compatible object store. */
import { createWriteStream } from "node:fs";
import { mkdir, open } from "node:fs/promises";
import { dirname } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { S3Client } from "@aws-sdk/client-s3";
import { writeAtomically } from "../../system/atomic-file.js";
import { ConfigError } from "../../system/config-error.js";
import { withTimeLimit } from "../../system/time-limit.js";
import { contentTypeOf } from "../audio/formats.js";
import { StoreError } from "../errors.js";

/** Maximum attempts per request; the SDK waits longer after each. */
const MAX_ATTEMPTS = 4;
const CONNECT_MS = 5_000;
/** Time limit of a request with its retries, and of each PROGRESS_BYTES of a transfer. */
const SILENCE_SECONDS = 30;
const PROGRESS_BYTES = 64 * 1024;
/** Lifetime of signed URLs. A page uses a URL at once, but a download may start later. */
const URL_SECONDS = 3600;

export interface StoredObject {
  bytes: number;
  modifiedMs: number;
}

/**
 * Access to a bucket. A new object becomes visible only when it is complete. Names contain letters, digits, `-`,
 * `.`, `_` and `/`.
 */
export class ObjectStore {
  private constructor(
    private readonly s3: typeof import("@aws-sdk/client-s3"),
    private readonly client: S3Client,
    /** Value of SVC_STORAGE, for error messages. */
    readonly location: string,
    private readonly bucket: string,
    private readonly prefix: string,
  ) {}

  /**
   * Credentials, region and endpoint come from the SDK's environment (AWS_ACCESS_KEY_ID, AWS_REGION,
   * AWS_ENDPOINT_URL_S3 and others).
   * @param location s3://bucket or s3://bucket/prefix
   * @throws ConfigError if the SDK is not installed or the bucket is unreachable
   */
  static async open(location: string): Promise<ObjectStore> {
    const { hostname: bucket, pathname } = new URL(location);
    const s3 = await import("@aws-sdk/client-s3").catch(() => {
      throw new ConfigError(
        "SVC_STORAGE",
        `SVC_STORAGE is ${location}, which needs a package that is not installed: npm install @aws-sdk/client-s3 @aws-sdk/s3-request-presigner`,
      );
    });
    const client = new s3.S3Client({
      maxAttempts: MAX_ATTEMPTS,
      // Self-hosted stores have no separate host name for each bucket.
      forcePathStyle: Boolean(process.env.AWS_ENDPOINT_URL_S3 ?? process.env.AWS_ENDPOINT_URL),
      // Some compatible stores do not support trailing checksums.
      requestChecksumCalculation: "WHEN_REQUIRED",
      responseChecksumValidation: "WHEN_REQUIRED",
      requestHandler: { connectionTimeout: CONNECT_MS },
    });
    const prefix = pathname.replace(/^\/+|\/+$/g, "");
    const store = new ObjectStore(s3, client, location, bucket, prefix === "" ? "" : `${prefix}/`);
    const look = (abortSignal: AbortSignal) =>
      client.send(new s3.HeadBucketCommand({ Bucket: bucket }), { abortSignal });
    await store.#send(undefined, look).catch((error: StoreError) => {
      client.destroy();
      throw new ConfigError("SVC_STORAGE", `SVC_STORAGE: ${error.message}`);
    });
    return store;
  }

  close(): void {
    this.client.destroy();
  }

  /**
   * @param signal ends the request, like in the other methods of this class
   * @throws StoreError if the store fails, or does not answer in time; the signal's reason. So do all other methods.
   */
  async put(name: string, path: string, signal?: AbortSignal): Promise<void> {
    await this.#send(signal, async (abortSignal, restart) => {
      const file = await open(path);
      try {
        const { size } = await file.stat();
        const body = Readable.from(pieces(file.createReadStream({ autoClose: false }), restart));
        // Ignore errors of the stream here: the request reports them. Without a listener, an early error would
        // end the process.
        body.on("error", () => {});
        const content = { Body: body, ContentLength: size, ContentType: contentTypeOf(name) };
        await this.client.send(new this.s3.PutObjectCommand({ ...this.#key(name), ...content }), {
          abortSignal,
        });
      } finally {
        await file.close();
      }
    });
  }

  async putText(name: string, text: string): Promise<void> {
    await this.#send(undefined, (abortSignal) =>
      this.client.send(new this.s3.PutObjectCommand({ ...this.#key(name), Body: text }), { abortSignal }),
    );
  }

  /** Returns size and date of an object; null if there is no such object. */
  async head(name: string, signal?: AbortSignal): Promise<StoredObject | null> {
    return this.#send(signal, async (abortSignal) => {
      const command = new this.s3.HeadObjectCommand(this.#key(name));
      const found = await this.client.send(command, { abortSignal }).catch(absent);
      if (found === null) return null;
      return { bytes: found.ContentLength ?? 0, modifiedMs: found.LastModified?.getTime() ?? 0 };
    });
  }

  /** Returns the content of an object, or the bytes from `start` to `end`; null if there is no such object. */
  async read(
    name: string,
    range: { start: number; end: number } | null,
    signal: AbortSignal | undefined,
  ): Promise<Readable | null> {
    const Range = range === null ? undefined : `bytes=${range.start}-${range.end}`;
    const found = await this.#send(signal, (abortSignal) =>
      this.client
        .send(new this.s3.GetObjectCommand({ ...this.#key(name), Range }), { abortSignal })
        .catch(absent),
    );
    if (found === null) return null;
    const body = found.Body as Readable;
    // The reader of `content` gets this error. Without a listener, an early one would end the process.
    body.on("error", () => {});
    const content = Readable.from(this.#received(body, signal), { objectMode: false });
    return content.on("close", () => body.destroy());
  }

  /** Yields the pieces of a body. The time limit counts only while it waits for the store, not for the reader. */
  async *#received(body: Readable, signal: AbortSignal | undefined): AsyncGenerator<Buffer, void> {
    const received = body[Symbol.asyncIterator]();
    let waitedMs = 0;
    let bytes = 0;
    for (;;) {
      const startMs = performance.now();
      const { value, done } = await this.#send(
        signal,
        () => received.next(),
        SILENCE_SECONDS * 1000 - waitedMs,
      );
      if (done) return;
      waitedMs += performance.now() - startMs;
      bytes += (value as Buffer).length;
      if (bytes >= PROGRESS_BYTES) waitedMs = bytes = 0;
      yield value;
    }
  }

  /** Copies an object to a file atomically. Returns false if there is no such object. */
  async fetch(name: string, path: string, signal?: AbortSignal): Promise<boolean> {
    const content = await this.read(name, null, signal);
    if (content === null) return false;
    await mkdir(dirname(path), { recursive: true });
    await writeAtomically(path, (partial) =>
      pipeline(content, createWriteStream(partial, { flags: "wx", mode: 0o600 })),
    );
    return true;
  }

  /** Removes an object. It is no error if there is no such object. */
  async remove(name: string, signal?: AbortSignal): Promise<void> {
    await this.#send(signal, (abortSignal) =>
      this.client.send(new this.s3.DeleteObjectCommand(this.#key(name)), { abortSignal }),
    );
  }

  /** Lists the objects whose names start with `prefix`. */
  async *list(prefix: string, signal?: AbortSignal): AsyncGenerator<StoredObject & { name: string }> {
    let ContinuationToken: string | undefined;
    do {
      const query = { Bucket: this.bucket, Prefix: this.prefix + prefix, ContinuationToken };
      const page = await this.#send(signal, (abortSignal) =>
        this.client.send(new this.s3.ListObjectsV2Command(query), { abortSignal }),
      );
      for (const { Key = "", Size = 0, LastModified } of page.Contents ?? []) {
        yield { name: Key.slice(this.prefix.length), bytes: Size, modifiedMs: LastModified?.getTime() ?? 0 };
      }
      ContinuationToken = page.NextContinuationToken;
    } while (ContinuationToken !== undefined);
  }

  /** Returns a URL that anyone can use for an hour, with this HTTP method only. */
  async signedUrl(name: string, disposition: string, method: "GET" | "HEAD" = "GET"): Promise<string> {
    const { getSignedUrl } = await import("@aws-sdk/s3-request-presigner");
    const target = {
      ...this.#key(name),
      ResponseContentDisposition: disposition,
      ResponseContentType: contentTypeOf(name),
    };
    const { GetObjectCommand, HeadObjectCommand } = this.s3;
    const command = method === "HEAD" ? new HeadObjectCommand(target) : new GetObjectCommand(target);
    // The credentials of the signature may come from a server.
    return this.#send(undefined, () => getSignedUrl(this.client, command, { expiresIn: URL_SECONDS }));
  }

  #key(name: string) {
    return { Bucket: this.bucket, Key: this.prefix + name };
  }

  async #send<T>(
    signal: AbortSignal | undefined,
    request: (signal: AbortSignal, restart: () => void) => Promise<T>,
    ms = SILENCE_SECONDS * 1000,
  ): Promise<T> {
    const error = () =>
      new StoreError(
        "UNREACHABLE",
        `the storage ${this.location} did not answer within ${SILENCE_SECONDS} seconds; check AWS_ENDPOINT_URL_S3 and AWS_REGION`,
      );
    try {
      return await withTimeLimit({ ms, signal, error }, request);
    } catch (failure) {
      signal?.throwIfAborted();
      if (failure instanceof StoreError) throw failure;
      if (failure instanceof Error && "code" in failure && failure.code === "ENOSPC") throw failure;
      throw new StoreError("UNREACHABLE", refusal(this.location, failure), { cause: failure });
    }
  }
}

/** Reports each piece when the next one is asked for, which is when the store has taken it. */
async function* pieces(content: Readable, onTaken: () => void): AsyncGenerator<Buffer, void> {
  for await (const piece of content) {
    yield piece;
    onTaken();
  }
}

function absent(error: unknown): null {
  if (statusOf(error) === 404) return null;
  throw error;
}

function statusOf(error: unknown): number | undefined {
  return (error as { $metadata?: { httpStatusCode?: number } }).$metadata?.httpStatusCode;
}

/** Error text of one line that says what failed and which settings to check. It contains no credentials. */
function refusal(location: string, error: unknown): string {
  const { name, message, code } = error as Error & { code?: string };
  const status = statusOf(error);
  if (status === 404) return `the bucket ${location} does not exist`;
  if (status === 403 || status === 401 || name === "CredentialsProviderError") {
    return `the storage ${location} rejects the credentials (${name}); check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY`;
  }
  const reason = [code ?? name, message].filter(Boolean).join(": ").split("\n", 1)[0];
  return `the storage ${location} does not answer (${reason}); check AWS_ENDPOINT_URL_S3 and AWS_REGION`;
}
