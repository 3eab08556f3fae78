/** Answers of the bridge: exact in length. */
import type { Response } from "express";
import { type JsonObject, writeJson } from "./json.js";

export const JSON_TYPE = "application/json; charset=utf-8";

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
