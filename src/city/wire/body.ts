/** Request bodies: bytes to the fields of a command. */
import { BridgeError } from "../errors.js";
import type { Body } from "./fields.js";

/** Commands need four; what goes deeper is no command, and reading it costs more the deeper it is. */
const MAX_DEPTH = 32;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPENING = new Set(Buffer.from("[{"));
const CLOSING = new Set(Buffer.from("]}"));

/**
 * An empty body has no fields. Bytes that are no UTF-8 are replaced, not refused: some clients send Latin-1.
 * @throws BridgeError 400 unless the body is a JSON object of at most MAX_DEPTH levels
 */
export function parseBody(bytes: Uint8Array): Body {
  const text = new TextDecoder().decode(bytes);
  if (text.trim() === "") return {};
  if (isDeeperThan(MAX_DEPTH, bytes)) {
    throw new BridgeError(400, `The body is nested deeper than ${MAX_DEPTH} levels`);
  }
  const value = parseJson(text);
  if (!isObject(value)) throw new BridgeError(400, "The body must be a JSON object");
  return value;
}

export function isObject(value: unknown): value is Body {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Counts the brackets outside texts, ahead of any parser. */
function isDeeperThan(maxDepth: number, json: Uint8Array): boolean {
  let depth = 0;
  let isInText = false;
  for (let i = 0; i < json.length; i++) {
    const byte = json[i] as number;
    if (isInText && byte === BACKSLASH) i++;
    else if (byte === QUOTE) isInText = !isInText;
    else if (!isInText && OPENING.has(byte) && ++depth > maxDepth) return true;
    else if (!isInText && CLOSING.has(byte)) depth--;
  }
  return false;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new BridgeError(400, `The body is not valid JSON: ${(error as Error).message}`);
  }
}
