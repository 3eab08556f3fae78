/** Request bodies: bytes to the fields of a command. */
import { BridgeError } from "../errors.js";
import type { Body } from "./fields.js";

/**
 * An empty body has no fields. Bytes that are no UTF-8 are replaced, not refused: some clients send Latin-1.
 * @throws BridgeError 400 unless the body is a JSON object
 */
export function parseBody(bytes: Uint8Array): Body {
  const text = new TextDecoder().decode(bytes);
  if (text.trim() === "") return {};
  const value = parseJson(text);
  if (!isObject(value)) throw new BridgeError(400, "The body must be a JSON object");
  return value;
}

export function isObject(value: unknown): value is Body {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new BridgeError(400, `The body is not valid JSON: ${(error as Error).message}`);
  }
}
