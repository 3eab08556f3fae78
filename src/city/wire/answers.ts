/**
 * Answers of the bridge: JSON with at most three decimals, whole 64-bit integers, never an exponent, NaN or -0; and what
 * a failure means to a client: a status and one line, always `{"ok":false,"error":"..."}`.
 */
import { randomUUID } from "node:crypto";
import type { Response } from "express";
import { CommandRefusedError } from "../game.js";

export type Json = null | boolean | number | bigint | string | readonly Json[] | JsonObject | JsonText;
export interface JsonObject {
  readonly [key: string]: Json | undefined;
}

/** What is JSON already, written by `writeJson` some time ago. */
export class JsonText {
  constructor(readonly text: string) {}
}

/** Numbers from here on would get an exponent. */
const EXPONENT_FROM = 1e21;

/**
 * Stands before the number of a text that JSON.stringify cannot print itself, and is replaced by that afterwards. Drawn
 * anew per process, so that no text from a client can hold it.
 */
const MARK = randomUUID();
const MARKED = new RegExp(`"${MARK}(\\d+)"`, "g");

/**
 * The text of a value; properties that are undefined are left out.
 * @throws RangeError for a number that JSON cannot hold
 */
export function writeJson(value: Json): string {
  const texts: string[] = [];
  const text = JSON.stringify(value, (_key, part) => printable(part, texts));
  return texts.length === 0 ? text : text.replace(MARKED, (_mark, index) => texts[Number(index)] as string);
}

/** @param texts gets what has to be printed as it is */
function printable(part: unknown, texts: string[]): unknown {
  if (typeof part === "bigint") return asIs(String(part), texts);
  if (part instanceof JsonText) return asIs(part.text, texts);
  if (typeof part !== "number") return part;
  if (!Number.isFinite(part)) throw new RangeError(`${part} is not a number that JSON can hold`);
  return Math.abs(part) < EXPONENT_FROM ? Math.round(part * 1000) / 1000 : asIs(String(BigInt(part)), texts);
}

function asIs(text: string, texts: string[]): string {
  return MARK + (texts.push(text) - 1);
}

const JSON_TYPE = "application/json; charset=utf-8";

export function sendJson(response: Response, status: number, body: JsonObject): void {
  sendJsonText(response, status, writeJson(body));
}

export function sendJsonText(response: Response, status: number, text: string): void {
  sendBytes(response, status, JSON_TYPE, Buffer.from(text));
}

export function sendBytes(response: Response, status: number, contentType: string, bytes: Buffer): void {
  response.statusCode = status;
  response.setHeader("Content-Type", contentType);
  response.setHeader("Content-Length", bytes.length);
  response.end(bytes);
}

export class BridgeError extends Error {
  constructor(
    readonly status: number,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.name = "BridgeError";
  }
}

/** A field that the bridge cannot use; refusals have status 500 as those of the game have. */
export class FieldError extends BridgeError {
  constructor(message: string) {
    super(500, message);
    this.name = "FieldError";
  }
}

/** Anything thrown, as the client gets it. What nobody foresaw keeps the name of its type in front. */
export function toBridgeError(error: unknown): BridgeError {
  if (error instanceof BridgeError) return error;
  if (error instanceof CommandRefusedError) return new BridgeError(500, error.message);
  if (isUnreadable(error)) {
    return new BridgeError(500, `The request could not be read: ${error.message}`);
  }
  if (!(error instanceof Error)) return new BridgeError(500, String(error), { cause: error });
  return new BridgeError(500, `${error.name}: ${error.message}`, { cause: error });
}

/** What express makes of a body that is too large, ends early or is packed in an unknown way: not our fault. */
function isUnreadable(error: unknown): error is Error {
  return (
    error instanceof Error && "status" in error && Number(error.status) >= 400 && Number(error.status) < 500
  );
}
