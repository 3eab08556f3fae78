/** Stores songs and uploads in an S3 bucket or a compatible object store. */
import { createWriteStream } from "node:fs";
import { mkdir, open } from "node:fs/promises";
import { dirname } from "node:path";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { S3Client } from "@aws-sdk/client-s3";
import { writeAtomically } from "../../system/atomic-file.js";
import { ConfigError } from "../../system/config-error.js";
import { contentTypeOf } from "../audio/formats.js";
import { StoreError } from "../errors.js";

/** Maximum attempts per request; the SDK waits longer after each. */
const MAX_ATTEMPTS = 4;
const CONNECT_MS = 5_000;
/** Lifetime of signed URLs. A page uses a URL at once, but a download may start later. */
const URL_SECONDS = 3600;

export interface StoredObject {
  bytes: number;
  modifiedMs: number;
}

/** Range of bytes; `start` and `end` are both included. */
export interface ByteRange {
  start: number;
  end: number;
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
    try {
      await client.send(new s3.HeadBucketCommand({ Bucket: bucket }));
    } catch (error) {
      client.destroy();
      throw new ConfigError("SVC_STORAGE", `SVC_STORAGE: ${refusal(location, error)}`);
    }
    return store;
  }

  close(): void {
    this.client.destroy();
  }

  /** @throws StoreError, like all other methods of this class */
  async put(name: string, path: string): Promise<void> {
    await this.#send(async () => {
      const file = await open(path);
      try {
        const { size } = await file.stat();
        const body = file.createReadStream({ autoClose: false });
        // Ignore errors of the stream here: the request reports them. Without a listener, an early error would
        // end the process.
        body.on("error", () => {});
        const content = { Body: body, ContentLength: size, ContentType: contentTypeOf(name) };
        await this.client.send(new this.s3.PutObjectCommand({ ...this.#key(name), ...content }));
      } finally {
        await file.close();
      }
    });
  }

  async putText(name: string, text: string): Promise<void> {
    await this.#send(() =>
      this.client.send(new this.s3.PutObjectCommand({ ...this.#key(name), Body: text })),
    );
  }

  /** Returns size and date of an object; null if there is no such object. */
  async head(name: string): Promise<StoredObject | null> {
    return this.#send(async () => {
      const found = await this.client.send(new this.s3.HeadObjectCommand(this.#key(name))).catch(absent);
      if (found === null) return null;
      return { bytes: found.ContentLength ?? 0, modifiedMs: found.LastModified?.getTime() ?? 0 };
    });
  }

  async read(name: string, range: ByteRange | null = null): Promise<Readable | null> {
    return this.#send(async () => {
      const Range = range === null ? undefined : `bytes=${range.start}-${range.end}`;
      const found = await this.client
        .send(new this.s3.GetObjectCommand({ ...this.#key(name), Range }))
        .catch(absent);
      return (found?.Body as Readable | undefined) ?? null;
    });
  }

  /** Copies an object to a file atomically. Returns false if there is no such object. */
  async fetch(name: string, path: string): Promise<boolean> {
    const content = await this.read(name);
    if (content === null) return false;
    await mkdir(dirname(path), { recursive: true });
    await writeAtomically(path, (partial) =>
      this.#send(() => pipeline(content, createWriteStream(partial, { flags: "wx", mode: 0o600 }))),
    );
    return true;
  }

  /** Removes an object. It is no error if there is no such object. */
  async remove(name: string): Promise<void> {
    await this.#send(() => this.client.send(new this.s3.DeleteObjectCommand(this.#key(name))));
  }

  /** Lists the objects whose names start with `prefix`. */
  async *list(prefix: string): AsyncGenerator<StoredObject & { name: string }> {
    let ContinuationToken: string | undefined;
    do {
      const page = await this.#send(() =>
        this.client.send(
          new this.s3.ListObjectsV2Command({
            Bucket: this.bucket,
            Prefix: this.prefix + prefix,
            ContinuationToken,
          }),
        ),
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
    return this.#send(() => getSignedUrl(this.client, command, { expiresIn: URL_SECONDS }));
  }

  #key(name: string) {
    return { Bucket: this.bucket, Key: this.prefix + name };
  }

  async #send<T>(request: () => Promise<T>): Promise<T> {
    try {
      return await request();
    } catch (error) {
      if (error instanceof Error && "code" in error && error.code === "ENOSPC") throw error;
      throw new StoreError("UNREACHABLE", refusal(this.location, error), { cause: error });
    }
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
