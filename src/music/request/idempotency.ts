/** The header `Idempotency-Key`: a client that repeats a submission, not knowing whether it arrived, gets the first one's answer. */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { pipeline } from "node:stream/promises";
import { describe } from "../../parameters.js";
import { RequestError } from "../errors.js";
import type { RequestBody } from "./body.js";
import { isObject } from "./json.js";

const MAX_KEY_CHARACTERS = 255;

/** What tells one submission from another. */
export interface SubmissionKey {
  key: string;
  /** Hash of the body, files included, the client's key to the service not. */
  digest: string;
}

/**
 * @param header what the request holds; undefined: no key
 * @throws RequestError for one that cannot be kept
 */
export async function submissionKey(
  header: string | undefined,
  { fields, uploads }: RequestBody,
): Promise<SubmissionKey | null> {
  if (header === undefined) return null;
  const key = header.trim();
  if (key === "" || key.length > MAX_KEY_CHARACTERS) {
    throw new RequestError(
      `Idempotency-Key must be 1 to ${MAX_KEY_CHARACTERS} characters long, got ${describe(key)}`,
    );
  }
  const { ai_token, ...body } = fields;
  const hash = createHash("sha256").update(JSON.stringify(inOrder(body)));
  for (const [kind, upload] of Object.entries(uploads)) {
    if (upload?.path == null) continue;
    hash.update(`\n${kind}\n`);
    await pipeline(createReadStream(upload.path), hash, { end: false });
  }
  return { key, digest: hash.digest("hex") };
}

/** With the names of every object sorted: clients write the same body in any order. */
function inOrder(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inOrder);
  if (!isObject(value)) return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([name, element]) => [name, inOrder(element)]));
}
