/** What can be heard of a task: its songs, and the first of them while it is decoded. */
import { randomUUID } from "node:crypto";
import { mkdir, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import type { Request, Response } from "express";
import { SAMPLE_RATE } from "../../engine/types.js";
import { oneOf, parameter, requiredText } from "../../parameters.js";
import type { AudioFiles, FoundAudio } from "../audio/audio-files.js";
import { decodeAudio } from "../audio/decode.js";
import { AUDIO_PROFILES, contentTypeOf, encodeAudio } from "../audio/encode.js";
import { ConcurrencyLimit } from "../concurrency-limit.js";
import { HttpError, RequestError } from "../errors.js";
import { AUDIO_FORMATS, type AudioFormat } from "../request/schema.js";
import type { ObjectStore, StoredObject } from "../storage/object-store.js";
import { callerOf, type Route } from "./route.js";

/** A conversion takes a processor, and the memory of the song as samples. */
const CONVERSIONS = { places: 2, placesPerAddress: 1, waitingPerAddress: 32, retryAfterSeconds: 5 };

/** A finished song, also for HEAD; with `format` converted, to keep it. */
const route: Route = ({ authenticator, config, service }) => {
  const limit = new ConcurrencyLimit(CONVERSIONS);
  return async (request, response) => {
    const { path, format, ai_token: token } = request.query;
    authenticator.authorize(request, token);
    if (typeof path !== "string") throw new RequestError("path is missing");
    const found = await service.audioFiles.resolve(path);
    if (format === undefined) {
      if (found.stored === null) await sendAudio(request, response, found.path);
      else await sendStored(request, response, service.audioFiles, found, config.storageUrls);
      return;
    }
    const wanted = AUDIO_FORMATS.find((name) => name === format);
    if (wanted === undefined) {
      throw new RequestError(
        `format must be one of ${AUDIO_FORMATS.join(", ")}, got ${JSON.stringify(format)}`,
      );
    }
    const caller = callerOf(request, response);
    const converted = join(service.uploadsDirectory, `${randomUUID()}.${AUDIO_PROFILES[wanted].extension}`);
    try {
      const { signal } = caller;
      const file = await service.audioFiles.local(found.path);
      await limit.run(caller, () => convert(file, converted, wanted, config.sourceMaxSeconds, signal));
      // Without a name: pages then choose one.
      await sendAudio(request, response, converted, "attachment");
    } catch (error) {
      // Nobody is there to be told of it.
      if (!caller.signal.aborted) throw error;
    } finally {
      await rm(converted, { force: true });
    }
  };
};

export const audio = {
  summary: "The audio of a song, whole or by ranges",
  query: {
    shape: {
      path: parameter("path", requiredText, "what a result names in `file`"),
      format: parameter(
        "format",
        oneOf(AUDIO_FORMATS).optional(),
        "converts the song, from what it is stored as",
      ),
    },
  },
  answer: { media: "audio/*", description: "The audio" },
  errors: [403, 404, 416, 429],
  takesKeyInQuery: true,
  route,
};

async function convert(
  from: string,
  to: string,
  format: AudioFormat,
  maxSeconds: number,
  signal: AbortSignal,
) {
  const audio = await decodeAudio({ path: from, name: "path", maxSeconds, beyondMaximum: "cut", signal });
  const samplesPerChannel = audio.length / 2;
  await mkdir(dirname(to), { recursive: true });
  await encodeAudio({ audio, samplesPerChannel, sampleRate: SAMPLE_RATE, format, path: to, signal });
}

/** A song that lies in the object store: through this server, or from the store itself by a signed address. */
async function sendStored(
  request: Request,
  response: Response,
  { shelf }: AudioFiles,
  { path, stored }: FoundAudio,
  urls: "proxy" | "signed",
): Promise<void> {
  const store = shelf.store as ObjectStore;
  const name = shelf.objectName(path);
  const disposition = `inline; filename="${basename(path)}"`;
  if (urls === "signed") {
    const method = request.method === "HEAD" ? "HEAD" : "GET";
    const address = await store.signedUrl(name, disposition, method);
    response.set("Cache-Control", "no-store").redirect(307, address);
    return;
  }
  const { bytes, modifiedMs } = stored as StoredObject;
  response.set({ "Accept-Ranges": "bytes", "Last-Modified": new Date(modifiedMs).toUTCString() });
  const ranges = request.range(bytes);
  if (ranges === -1 && !SUFFIX_RANGE.test(request.headers.range ?? "")) {
    response.status(416).set("Content-Range", `bytes */${bytes}`).end();
    return;
  }
  // As a file: what is not one range of bytes is answered by the whole.
  const range =
    Array.isArray(ranges) && ranges.length === 1 && ranges.type === "bytes" ? ranges[0] : undefined;
  const content = request.method === "HEAD" ? null : await store.read(name, range ?? null);
  if (content === null && request.method !== "HEAD") throw new HttpError(404, "Audio file not found");
  response.set({
    "Content-Type": contentTypeOf(path),
    "Content-Disposition": disposition,
    "Cache-Control": "private, max-age=3600",
    "Content-Length": String(range === undefined ? bytes : range.end - range.start + 1),
  });
  if (range !== undefined) {
    response.status(206).set("Content-Range", `bytes ${range.start}-${range.end}/${bytes}`);
  }
  if (content === null) response.end();
  // A client that goes away, or a store that fails on the way, ends the connection.
  else await pipeline(content, response).catch(() => response.destroy());
}

/** The last bytes of a file; of one that is shorter, all of it (RFC 9110 14.1.2). */
const SUFFIX_RANGE = /^bytes=-0*[1-9]\d*$/;

async function sendAudio(
  request: Request,
  response: Response,
  file: string,
  disposition = `inline; filename="${basename(file)}"`,
): Promise<void> {
  const headers = {
    "Content-Type": contentTypeOf(file),
    "Content-Disposition": disposition,
    "Cache-Control": "private, max-age=3600",
  };
  const failure = await new Promise<(Error & { status?: number; code?: string }) | undefined>((resolve) => {
    response.sendFile(file, { dotfiles: "allow", cacheControl: false, headers }, resolve);
  });
  if (failure === undefined || failure.code === "ECONNABORTED") return;
  if (failure.status === 416 && SUFFIX_RANGE.test(request.headers.range ?? "")) {
    // The file is shorter than the suffix; without a range it is sent whole.
    delete request.headers.range;
    response.removeHeader("Content-Range");
    await sendAudio(request, response, file, disposition);
    return;
  }
  if (failure.status === 416) {
    // Content-Range is set; there is no body to send.
    response.removeHeader("Content-Disposition");
    response.status(416).end();
    return;
  }
  // The file may have expired since its path was checked.
  throw failure.status === 404 ? new HttpError(404, "Audio file not found") : failure;
}

/** Answers once there is something to hear; of a task that has ended by then, with the way to its first song. */
const previewRoute: Route =
  ({ authenticator, service }) =>
  async (request, response) => {
    const { ai_token: token } = request.query;
    authenticator.authorize(request, token);
    if (service.queue.isShared) {
      throw new HttpError(
        501,
        "A fleet's songs can be heard once they are finished: ask for the task's songs",
      );
    }
    const { signal } = callerOf(request, response);
    const id = String(request.params.id);
    try {
      const sound = await service.preview(id, signal);
      if (sound !== null && (request.method === "HEAD" || (await sound.begun(signal)))) {
        response.set({ "Content-Type": "audio/wav", "Cache-Control": "no-store", "X-Accel-Buffering": "no" });
        if (request.method === "HEAD") response.end();
        else await pipeline(sound.wav(signal), response);
        return;
      }
      const { songs } = await service.whenEnded(id, signal).then(() => service.task(id));
      const [song] = songs;
      if (song === undefined) throw new HttpError(404, "The task ended without a song to hear");
      const key = typeof token === "string" ? `&ai_token=${encodeURIComponent(token)}` : "";
      response.set("Cache-Control", "no-store").redirect(307, song.file + key);
    } catch (error) {
      // Nobody is there to be told of it.
      if (!signal.aborted) throw error;
    }
  };

export const preview = {
  summary: "The first song of a task, to be heard while it is decoded",
  answer: {
    media: "audio/wav",
    description:
      "16-bit stereo at 48 kHz, of unknown length, from the beginning on: it answers once there is sound, and ends with the song, after four minutes, or with the task. The level is the decoder's, lowered where it would exceed -1 dB. A task that has ended redirects (307) to its first song.",
  },
  errors: [404, 501],
  takesKeyInQuery: true,
  route: previewRoute,
};
