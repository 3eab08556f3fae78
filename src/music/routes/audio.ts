import { basename } from "node:path";
import type { Request, Response } from "express";
import { contentTypeOf } from "../audio/audio-files.js";
import { HttpError, RequestError } from "../errors.js";
import type { Route } from "./route.js";

/**
 * GET and HEAD /v1/audio: a finished song, whole or by ranges. The key may come as `ai_token` in the
 * query: an audio element cannot send headers.
 */
export const audio: Route =
  ({ authenticator, service }) =>
  async (request, response) => {
    const { path, ai_token: token } = request.query;
    authenticator.authorize(request, token);
    if (typeof path !== "string") throw new RequestError("path is missing");
    await sendAudio(request, response, await service.audioFiles.resolve(path));
  };

/** The last bytes of a file; of one that is shorter, all of it (RFC 9110 14.1.2). */
const SUFFIX_RANGE = /^bytes=-0*[1-9]\d*$/;

async function sendAudio(request: Request, response: Response, file: string): Promise<void> {
  const headers = {
    "Content-Type": contentTypeOf(file),
    "Content-Disposition": `inline; filename="${basename(file)}"`,
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
    await sendAudio(request, response, file);
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
