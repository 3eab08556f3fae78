import { pipeline } from "node:stream/promises";
import { HttpError } from "../errors.js";
import { callerOf, type Route } from "./route.js";

/** Answers once there is something to hear; of a task that has ended by then, with the way to its first song. */
const route: Route =
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
  route,
};
