import { basename } from "node:path";
import type { Response } from "express";
import { contentTypeOf } from "../audio-files.js";
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
    await sendAudio(response, await service.audioFiles.resolve(path));
  };

async function sendAudio(response: Response, file: string): Promise<void> {
  const headers = {
    "Content-Type": contentTypeOf(file),
    "Content-Disposition": `inline; filename="${basename(file)}"`,
    "Cache-Control": "private, max-age=3600",
  };
  const failure = await new Promise<(Error & { status?: number; code?: string }) | undefined>((resolve) => {
    response.sendFile(file, { dotfiles: "allow", cacheControl: false, headers }, resolve);
  });
  if (failure === undefined || failure.code === "ECONNABORTED") return;
  if (failure.status === 416) {
    // Content-Range is set; there is no body to send.
    response.removeHeader("Content-Disposition");
    response.status(416).end();
    return;
  }
  // The file may have expired since its path was checked.
  throw failure.status === 404 ? new HttpError(404, "Audio file not found") : failure;
}
