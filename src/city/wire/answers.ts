/**
 * Responses of the bridge. Numbers have at most three decimals; they never have an exponent and are never NaN
 * or -0. 64-bit integers are exact. A failure has an error status and the body `{"ok":false,"error":"..."}`.
 * Its error text is a single line.
 */

import { randomUUID } from "node:crypto";
import type { Response } from "express";
import { isUnreadable } from "../../http/guards.js";
import { HttpError } from "../../http/http-error.js";
import { RefusedError } from "../refusal.js";

export type Json = null | boolean | number | bigint | string | readonly Json[] | JsonObject | JsonText;
export interface JsonObject {
  readonly [key: string]: Json | undefined;
}

/** A value that is already JSON text. */
export class JsonText {
  constructor(readonly pieces: readonly string[]) {}
}

/** From this size on, JSON.stringify prints a number with an exponent. */
const EXPONENT_FROM = 1e21;

/**
 * Prefix of the placeholders that stand for values that JSON.stringify cannot print. The values replace their
 * placeholders afterwards. The prefix is random per process, so that no text from a client can contain it.
 */
const MARK = randomUUID();
const MARKED = new RegExp(`"${MARK}(\\d+)"`, "g");

/**
 * JSON text of a value, without undefined properties.
 * @throws RangeError for a number that JSON cannot hold
 */
export function writeJson(value: Json): string {
  return writeJsonPieces(value).join("");
}

/** JSON text of a value, in pieces: joining those of a long list would take longer than writing. */
export function writeJsonPieces(value: Json): string[] {
  const marked: (string | JsonText)[] = [];
  const text = JSON.stringify(value, (_key, part) => printable(part, marked));
  const pieces: string[] = [];
  let between = "";
  text.split(MARKED).forEach((part, i) => {
    const printed = i % 2 === 0 ? part : (marked[Number(part)] as string | JsonText);
    if (typeof printed === "string") {
      between += printed;
    } else {
      pieces.push(between, ...printed.pieces);
      between = "";
    }
  });
  return [...pieces, between];
}

/** @param marked receives the texts that must be printed verbatim */
function printable(part: unknown, marked: (string | JsonText)[]): unknown {
  if (typeof part === "bigint") return asIs(String(part), marked);
  if (part instanceof JsonText) return asIs(part, marked);
  if (typeof part !== "number") return part;
  if (!Number.isFinite(part)) throw new RangeError(`${part} is not a number that JSON can hold`);
  return Math.abs(part) < EXPONENT_FROM ? Math.round(part * 1000) / 1000 : asIs(String(BigInt(part)), marked);
}

function asIs(text: string | JsonText, marked: (string | JsonText)[]): string {
  return MARK + (marked.push(text) - 1);
}

const JSON_TYPE = "application/json; charset=utf-8";

export function sendJson(response: Response, status: number, body: JsonObject): void {
  sendJsonPieces(response, status, writeJsonPieces(body));
}

export function sendJsonPieces(response: Response, status: number, pieces: readonly string[]): void {
  sendBytes(response, status, JSON_TYPE, ...pieces.map((piece) => Buffer.from(piece)));
}

export function sendBytes(response: Response, status: number, type: string, ...parts: Buffer[]): void {
  response.statusCode = status;
  response.setHeader("Content-Type", type);
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  response.setHeader("Content-Length", length);
  for (const part of parts.slice(0, -1)) response.write(part);
  response.end(parts.at(-1));
}

/** The message of an unexpected error starts with the error's type name. */
export function toHttpError(error: unknown): HttpError {
  if (error instanceof HttpError) return error;
  if (error instanceof RefusedError) return new HttpError(500, error.message);
  if (isUnreadable(error)) return new HttpError(500, `The request could not be read: ${error.message}`);
  if (!(error instanceof Error)) return new HttpError(500, String(error), {}, { cause: error });
  return new HttpError(500, `${error.name}: ${error.message}`, {}, { cause: error });
}

const ROWS_PER_PIECE = 100;

/** Rows of a long list. Caches the text of each row until one of its inputs changes. */
export class RowCache<T extends object> {
  readonly #rows = new WeakMap<T, { readonly facts: readonly unknown[]; readonly text: string }>();

  /** @param factsOf the mutable inputs of a row, each a primitive or an immutable object */
  constructor(
    private readonly rowOf: (thing: T) => Json,
    private readonly factsOf: (thing: T) => readonly unknown[],
  ) {}

  write(things: readonly T[]): JsonText {
    const pieces: string[] = [];
    for (let at = 0; at < things.length; at += ROWS_PER_PIECE) {
      const texts = things.slice(at, at + ROWS_PER_PIECE).map((thing) => this.#textOf(thing));
      pieces.push((at === 0 ? "" : ",") + texts.join(","));
    }
    return new JsonText(["[", ...pieces, "]"]);
  }

  #textOf(thing: T): string {
    const facts = this.factsOf(thing);
    const known = this.#rows.get(thing);
    if (known?.facts.every((fact, i) => fact === facts[i])) return known.text;
    const text = writeJson(this.rowOf(thing));
    this.#rows.set(thing, { facts, text });
    return text;
  }
}
