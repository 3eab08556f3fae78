/**
 * Header `Idempotency-Key`: a second submission with the same key gets the response of the first, and makes no
 * second task.
 */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { pipeline } from "node:stream/promises";
import { describe, isObject } from "../../parameters.js";
import { RequestError } from "../errors.js";
import type { RequestBody } from "./body.js";

const MAX_KEY_CHARACTERS = 255;

export interface SubmissionKey {
  /** Idempotency key with a prefix for the client, so that two clients can use the same key. */
  key: string;
  /** Hash of the fields (without `ai_token`) and of the uploaded files. */
  digest: string;
}

/** @throws RequestError for an empty or too long key */
export async function submissionKey(
  header: string | undefined,
  { fields, uploads, client }: RequestBody,
): Promise<SubmissionKey | null> {
  if (header === undefined) return null;
  const key = header.trim();
  if (key === "" || key.length > MAX_KEY_CHARACTERS) {
    throw new RequestError(
      `Idempotency-Key must be 1 to ${MAX_KEY_CHARACTERS} characters long, got ${describe(key)}`,
    );
  }
  const { ai_token, ...body } = fields;
  const hash = createHash("sha256").update(JSON.stringify(body, sortKeys));
  for (const [kind, upload] of Object.entries(uploads)) {
    if (upload?.path == null) continue;
    hash.update(`\n${kind}\n`);
    await pipeline(createReadStream(upload.path), hash, { end: false });
  }
  return { key: `${client} ${key}`.trim(), digest: hash.digest("hex") };
}

/** Replacer that sorts the keys of all nested objects, so that the key order does not change the hash. */
function sortKeys(_key: string, value: unknown): unknown {
  return isObject(value)
    ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
    : value;
}
