/** Results of jobs: songs and latents are parts of a multipart body, which are streamed from their files. */
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { Response } from "express";
import { tensorRange } from "../../engine/weight-file.js";
import type { AudioFiles } from "../audio/audio-files.js";
import { contentTypeOf } from "../audio/formats.js";
import type { SongResult, StoredFile, Task } from "../queue/store.js";
import type { SongPlan } from "../song/analysis.js";
import { type AceRequest, DEFAULTS } from "./ace-request.js";
import { describedRequest, filledRequests } from "./lm.js";

const LINE = "\r\n";

/** A part of a result: text, or bytes of a file. */
interface ResultPart {
  type: string;
  content: string | { path: string; begin: number; bytes: number };
}

async function audioPart(path: string): Promise<ResultPart> {
  return { type: contentTypeOf(path), content: { path, begin: 0, bytes: (await stat(path)).size } };
}

/** The values of latents without their header. */
function latentsPart(path: string): ResultPart {
  return { type: "application/octet-stream", content: { path, ...tensorRange(path, "latents") } };
}

/** Sends the result of a job. @throws HttpError 404 for a deleted file, StoreError, or the signal's reason */
export async function sendResult(
  response: Response,
  { id, request, result }: Task,
  audioFiles: AudioFiles,
  signal: AbortSignal,
  { withLatents = true } = {},
): Promise<void> {
  const { audioFiles: songs, analysis, latents } = result as SongResult;
  const fileOf = ({ name }: StoredFile) => audioFiles.localPath(audioFiles.pathOf(name), signal);
  const sent = { ...DEFAULTS, ...(request.original as Partial<AceRequest>) };
  switch (request.analysis) {
    case "plan": {
      const { plans } = analysis as { plans: SongPlan[] };
      response.json(filledRequests(sent, plans));
      return;
    }
    case "latents":
      return sendPart(response, latentsPart(await fileOf(latents as StoredFile)));
    case "audio":
      return sendPart(response, await audioPart(await fileOf(songs[0] as StoredFile)));
  }
  const parts: ResultPart[] = [];
  if (analysis !== null) parts.push(jsonPart([describedRequest(sent, analysis)]));
  if (latents && withLatents) parts.push(latentsPart(await fileOf(latents)));
  for (const song of songs) {
    parts.push(await audioPart(await fileOf(song)));
    if (song.latents && withLatents) parts.push(latentsPart(await fileOf(song.latents)));
  }
  if (!withLatents && parts.length === 1) return sendPart(response, parts[0] as ResultPart);
  await sendParts(response, parts, `carillon-${id}`);
}

function jsonPart(value: unknown): ResultPart {
  return { type: "application/json", content: JSON.stringify(value) };
}

/** Sends parts in order as multipart/mixed. @param boundary text that no part contains */
async function sendParts(response: Response, parts: readonly ResultPart[], boundary: string): Promise<void> {
  const heads = parts.map(({ type }) => `--${boundary}${LINE}Content-Type: ${type}${LINE}${LINE}`);
  const end = `--${boundary}--${LINE}`;
  const bytes = parts.reduce(
    (sum, part, index) => sum + (heads[index] as string).length + bytesOf(part) + LINE.length,
    end.length,
  );
  response.set("Content-Length", String(bytes)).type(`multipart/mixed; boundary=${boundary}`);
  async function* body() {
    for (const [index, part] of parts.entries()) {
      yield heads[index];
      yield* contentOf(part);
      yield LINE;
    }
    yield end;
  }
  await send(response, body());
}

/** Sends a single part as the whole body. */
async function sendPart(response: Response, part: ResultPart): Promise<void> {
  response.set("Content-Length", String(bytesOf(part))).type(part.type);
  await send(response, contentOf(part));
}

function bytesOf({ content }: ResultPart): number {
  return typeof content === "string" ? Buffer.byteLength(content) : content.bytes;
}

async function* contentOf({ content }: ResultPart): AsyncGenerator<string | Buffer> {
  if (typeof content === "string") yield content;
  else {
    const { path, begin, bytes } = content;
    yield* createReadStream(path, { start: begin, end: begin + bytes - 1 });
  }
}

/** Closes the connection if the client disconnects or a file is gone. */
async function send(response: Response, body: AsyncGenerator<unknown>): Promise<void> {
  await pipeline(Readable.from(body, { highWaterMark: 1 }), response).catch(() => response.destroy());
}
