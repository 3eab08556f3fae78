/** Endpoints for the audio of a task: finished songs, and a preview of the first song. */
import { randomUUID } from "node:crypto";
import { rm, stat } from "node:fs/promises";
import { basename, dirname, extname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { create } from "content-disposition";
import type { Request, Response } from "express";
import { SAMPLE_RATE } from "../../engine/types.js";
import { namesOf, oneOf, parameter, requiredText } from "../../parameters.js";
import { ConcurrencyLimit } from "../access/concurrency-limit.js";
import type { AudioFiles, FoundAudio } from "../audio/audio-files.js";
import { decodeAudio } from "../audio/decode.js";
import { encodeAudio } from "../audio/encode.js";
import { AUDIO_FORMATS, AUDIO_PROFILES, contentTypeOf } from "../audio/formats.js";
import { HttpError, RequestError } from "../errors.js";
import { strictParser } from "../request/fields.js";
import { checkSampleRate, outputParameters } from "../request/output-parameters.js";
import { songFileName } from "../song/title.js";
import { makeFolder } from "../storage/file-storage.js";
import type { ObjectStore, StoredObject } from "../storage/object-store.js";
import { abortableRoute, type Route } from "./route.js";

/** Limits of concurrent conversions. Each conversion uses one CPU core, and memory for the decoded song. */
const CONVERSIONS = { places: 2, placesPerAddress: 1, waitingPerAddress: 32, retryAfterSeconds: 5 };

/** Codes of errors while a client reads a song and disconnects, as players do when the user seeks. */
const DISCONNECTED: readonly unknown[] = ["ECONNABORTED", "ECONNRESET", "EPIPE"];

const parseConversion = strictParser({
  format: parameter("format", oneOf(AUDIO_FORMATS).optional(), "Converts the song to this format."),
  ...outputParameters.shape,
});
const OUTPUT_NAMES = Object.values(outputParameters.shape).flatMap((type) => namesOf(type));

/** Sends a finished song (GET and HEAD). The parameter `format` converts it for download. */
const route: Route = (context) => {
  const { authenticator, config, service } = context;
  const limit = new ConcurrencyLimit(CONVERSIONS);
  return abortableRoute(async (_context, request, response, caller) => {
    const { signal } = caller;
    const { path, ai_token: token } = request.query;
    authenticator.authorize(request, token);
    if (typeof path !== "string")
      throw new RequestError(path === undefined ? "path is missing" : "path was sent more than once");
    const upload = await service.tasks.keptUpload(path, signal);
    const found = upload ?? (await service.audioFiles.resolve(path, signal));
    const { format, ...finish } = parseConversion(request.query);
    const song = await service.tasks.songIn(found.path);
    const named = (type: "inline" | "attachment", extension: string) =>
      create(song === null ? basename(found.path) : songFileName(song.title, song.version, extension), {
        type,
      });
    if (format === undefined) {
      const lone = OUTPUT_NAMES.find((name) => Object.hasOwn(request.query, name));
      if (lone !== undefined)
        throw new RequestError(`${lone} requires the parameter format, which converts the song`);
      const disposition = named("inline", extname(found.path).slice(1));
      if (found.stored === null) await sendAudio(request, response, found.path, disposition);
      else
        await sendStored(
          request,
          response,
          service.audioFiles,
          found,
          disposition,
          config.storageUrls,
          signal,
        );
      return;
    }
    checkSampleRate(format, finish);
    const { extension } = AUDIO_PROFILES[format];
    const converted = join(service.uploadsDirectory, `${randomUUID()}.${extension}`);
    try {
      const original = await service.audioFiles.localPath(found.path, signal);
      const tags = config.writesTags ? song?.tags : undefined;
      const limits = { maxSeconds: config.sourceMaxSeconds, beyondMaximum: "cut" } as const;
      await limit.run(caller, async () => {
        const audio = await decodeAudio({ path: original, name: "path", ...limits, signal });
        const sound = { audio, samplesPerChannel: audio.length / 2, sampleRate: SAMPLE_RATE };
        await makeFolder(dirname(converted));
        await encodeAudio({ ...sound, format, finish, tags, path: converted, signal });
      });
      await sendAudio(request, response, converted, named("attachment", extension));
    } finally {
      await rm(converted, { force: true });
    }
  })(context);
};

export const audioEndpoint = {
  summary: "Audio of a song; supports ranges",
  description:
    "Files carry title, prompt, lyrics, tempo, key and seed as tags unless SVC_AUDIO_TAGS=false. Without ffmpeg only wav and wav32 at 48 kHz can be written.",
  query: {
    shape: {
      path: parameter(
        "path",
        requiredText,
        "`file` of a result, or a kept upload of a task's `parameters` (`upload:NAME`).",
      ),
      ...parseConversion.shape,
    },
  },
  answer: { media: "audio/*", description: "The audio" },
  errors: [403, 404, 416, 429],
  takesKeyInQuery: true,
  route,
};

/** Sends a song from the object store: as a proxy, or by a redirect to a signed URL. */
async function sendStored(
  request: Request,
  response: Response,
  { storage }: AudioFiles,
  { path, stored }: FoundAudio,
  disposition: string,
  urls: "proxy" | "signed",
  signal: AbortSignal,
): Promise<void> {
  const store = storage.store as ObjectStore;
  const name = storage.objectName(path);
  if (urls === "signed") {
    const method = request.method === "HEAD" ? "HEAD" : "GET";
    const address = await store.signedUrl(name, disposition, method);
    response.set("Cache-Control", "no-store").redirect(307, address);
    return;
  }
  const { bytes, modifiedMs } = stored as StoredObject;
  response.set({ "Accept-Ranges": "bytes", "Last-Modified": new Date(modifiedMs).toUTCString() });
  dropLongSuffix(request, bytes);
  const ranges = request.range(bytes);
  if (ranges === -1) {
    response.status(416).set("Content-Range", `bytes */${bytes}`).end();
    return;
  }
  // A request for several ranges gets the whole song, as it does for local files.
  const range =
    Array.isArray(ranges) && ranges.length === 1 && ranges.type === "bytes" ? ranges[0] : undefined;
  const content = request.method === "HEAD" ? null : await store.read(name, range ?? null, signal);
  if (content === null && request.method !== "HEAD") throw new HttpError(404, "Audio file not found");
  response.set({
    ...headersOf(path, disposition),
    "Content-Length": String(range === undefined ? bytes : range.end - range.start + 1),
  });
  if (range !== undefined) {
    response.status(206).set("Content-Range", `bytes ${range.start}-${range.end}/${bytes}`);
  }
  if (content === null) response.end();
  // Closes the connection if the client disconnects or the store fails.
  else await pipeline(content, response).catch(() => response.destroy());
}

/** A suffix range such as `bytes=-500` that is longer than the file means the whole file (RFC 9110, 14.1.2). */
function dropLongSuffix({ headers }: Request, bytes: number): void {
  const [, suffix] = /^bytes=-(\d+)$/.exec(headers.range ?? "") ?? [];
  if (Number(suffix) > bytes) delete headers.range;
}

function headersOf(path: string, disposition: string): Record<string, string> {
  return {
    "Content-Type": contentTypeOf(path),
    "Content-Disposition": disposition,
    "Cache-Control": "private, max-age=3600",
  };
}

async function sendAudio(
  request: Request,
  response: Response,
  file: string,
  disposition: string,
): Promise<void> {
  const headers = headersOf(file, disposition);
  // If the song has expired since the path was resolved, `sendFile` reports it.
  dropLongSuffix(request, (await stat(file).catch(() => null))?.size ?? 0);
  const failure = await new Promise<(Error & { status?: number; code?: string }) | undefined>((resolve) => {
    response.sendFile(file, { dotfiles: "allow", cacheControl: false, headers }, resolve);
  });
  if (failure === undefined || DISCONNECTED.includes(failure.code)) return;
  if (failure.status === 416) {
    // A 416 response has no body. `sendFile` has already set Content-Range.
    response.removeHeader("Content-Disposition");
    response.status(416).end();
    return;
  }
  throw failure.status === 404 ? new HttpError(404, "Audio file not found") : failure;
}

/** Sends the preview when the first audio exists. Redirects to the first song if the task has ended. */
const previewRoute = abortableRoute(async ({ authenticator, service }, request, response, { signal }) => {
  const { ai_token: token } = request.query;
  authenticator.authorize(request, token);
  if (service.queue.isShared) {
    throw new HttpError(501, "A fleet has no previews: wait until the song is finished");
  }
  const id = String(request.params.id);
  const sound = await service.tasks.preview(id, signal);
  if (sound !== null && (request.method === "HEAD" || (await sound.hasAudio(signal)))) {
    response.set({ "Content-Type": "audio/wav", "Cache-Control": "no-store", "X-Accel-Buffering": "no" });
    if (request.method === "HEAD") response.end();
    else await pipeline(sound.wav(signal), response);
    return;
  }
  const { songs } = await service.tasks.whenEnded(id, signal).then(() => service.tasks.get(id));
  const [song] = songs;
  if (song === undefined) throw new HttpError(404, "The task ended without a song");
  const key = typeof token === "string" ? `&ai_token=${encodeURIComponent(token)}` : "";
  response.set("Cache-Control", "no-store").redirect(307, song.file + key);
});

export const previewEndpoint = {
  summary: "Preview of the first song of a task while it is decoded",
  answer: {
    media: "audio/wav",
    description:
      "16-bit stereo at 48 kHz, of unknown length. Responds when audio is available and ends with the song, after four minutes, or with the task. The level is the decoder's, lowered if it would exceed -1 dB, and the end does not fade. For an ended task, redirects (307) to its first song.",
  },
  errors: [404, 501],
  takesKeyInQuery: true,
  route: previewRoute,
};
