/** Input recordings of tasks: resolves paths inside permitted directories, and checks the content. */
import { createWriteStream } from "node:fs";
import { copyFile, link, realpath, rm, stat } from "node:fs/promises";
import { basename, isAbsolute, join, resolve } from "node:path";
import { pipeline } from "node:stream/promises";
import { SAMPLE_RATE } from "../../engine/types.js";
import { say } from "../../notes.js";
import { describe } from "../../parameters.js";
import { UnusableFileError } from "../../system/regular-file.js";
import { type Caller, ConcurrencyLimit } from "../access/concurrency-limit.js";
import { RequestError } from "../errors.js";
import { type AudioInput, type GenerationRequest, INPUTS, inputsOf } from "../request/generation-request.js";
import { type FileStorage, makeFolder } from "../storage/file-storage.js";
import { isWithin } from "../storage/permitted-root.js";
import { pathFromResultUrl, RESULT_URL_PATTERN } from "./audio-files.js";
import { DecodeError, measureAudio, openRecording } from "./decode.js";
import { readLatents } from "./latents-file.js";
import { repaintWindows } from "./repaint-windows.js";
import { referencedUpload, uploadFieldName, uploadPath } from "./uploads.js";

/**
 * Limits the decoding of recordings in new requests, so that no client occupies all decoders and most of the
 * CPU stays free for jobs.
 */
const DECODERS = { places: 3, placesPerAddress: 2, waitingPerAddress: 64, retryAfterSeconds: 10 };
/** How long a request waits for free file descriptors. */
const REQUEST_WAIT = { maxWaitSeconds: 3, signal: undefined };
/** Peak below which the renderer treats audio as silence. */
const SILENT_PEAK = 1e-6;
/** One latent frame, the shortest audio that can be encoded. */
const MIN_SOURCE_SECONDS = 0.04;

export interface AudioInputOptions {
  /** Directories that may contain the paths of requests, besides the service's own directories; null: any. */
  roots: readonly string[] | null;
  /** Finished songs; relative paths start in this folder. */
  songs: FileStorage;
  uploads: FileStorage;
  maxSeconds: number;
  /** Deletes uploads that no task has. */
  discard(objectNames: readonly string[]): Promise<void>;
}

export class AudioInputs {
  readonly #decoders = new ConcurrencyLimit(DECODERS);

  constructor(private readonly options: AudioInputOptions) {}

  /**
   * A new request may name uploads of other tasks. Makes hard links to these uploads, so that the request
   * keeps them when the other tasks are removed.
   * @throws RequestError if an upload is gone, StoreError, or the signal's reason
   */
  async claim(request: GenerationRequest, signal: AbortSignal): Promise<GenerationRequest> {
    const claimed = { ...request };
    try {
      for (const name of INPUTS) claimed[name] = await this.#claim(request[name], signal);
      return claimed;
    } catch (error) {
      await this.unclaim(request, claimed);
      throw error;
    }
  }

  async #claim(input: AudioInput | null, signal: AbortSignal): Promise<AudioInput | null> {
    const { uploads } = this.options;
    if (input === null) return null;
    if (input.isUpload) return { ...input, bytes: (await stat(input.path)).size };
    const kept = referencedUpload(uploads.directory, input.path);
    if (kept === null) return input;
    const { kind } = input;
    const path = uploadPath(uploads.directory, kind, kept);
    if (!(await uploads.fetch(kept, signal)) || !(await isLinked(kept, path))) {
      throw new RequestError(say("recording_gone", { path: describe(input.path) }));
    }
    return { kind, path, isUpload: true, bytes: (await stat(path)).size };
  }

  /** Removes the links that `claim` made for a request, if the request was not accepted. */
  async unclaim(request: GenerationRequest, claimed: GenerationRequest): Promise<void> {
    for (const name of INPUTS) {
      const path = claimed[name]?.path;
      if (path !== undefined && path !== request[name]?.path) await rm(path, { force: true });
    }
  }

  /**
   * Checks a new request's recordings: resolves paths, decodes every file once, and checks windows.
   * @throws HttpError 400 for an unusable recording, 429 if too many requests of the caller are waiting, FfmpegError
   * for a server fault, or the signal's reason
   */
  async admit(request: GenerationRequest, caller: Caller): Promise<GenerationRequest> {
    const located = await this.locate(request, caller.signal);
    const { source, reference } = located;
    if (source !== null) {
      const { seconds } = await this.#measure(source, caller);
      if (source.kind === "sourceAudio" && seconds < MIN_SOURCE_SECONDS) {
        throw new RequestError(
          say("recording_too_short", {
            name: "src_audio",
            seconds: seconds.toFixed(3),
            min: MIN_SOURCE_SECONDS,
          }),
        );
      }
      repaintWindows(request, seconds);
    }
    if (reference !== null) {
      const { peak } = await this.#measure(reference, caller);
      if (peak !== null && peak < SILENT_PEAK) {
        throw new RequestError(say("recording_silent", { name: "reference_audio" }));
      }
    }
    return located;
  }

  /**
   * Returns the request with real paths. Called again when the job runs, because files and links may have changed.
   * @throws RequestError if a path is not a readable file, StoreError, or the signal's reason
   */
  async locate(request: GenerationRequest, signal: AbortSignal): Promise<GenerationRequest> {
    const located = { ...request };
    for (const name of INPUTS) located[name] = await this.#locate(request[name], signal);
    return located;
  }

  /**
   * Copies the recordings to the object store, so that the worker of the task can read them. Removes the copies if one
   * of them fails.
   * @throws StoreError, or the signal's reason
   */
  async publish(request: GenerationRequest, signal: AbortSignal): Promise<GenerationRequest> {
    if (this.options.uploads.store === null) return request;
    const published = { ...request };
    try {
      for (const name of INPUTS) published[name] = await this.#publish(request[name], signal);
      return published;
    } catch (error) {
      await this.release(published);
      throw error;
    }
  }

  /** Copies a recording to the object store, unless it is a song, which is stored already. */
  async #publish(input: AudioInput | null, signal: AbortSignal): Promise<AudioInput | null> {
    const { songs, uploads } = this.options;
    if (input === null || (!input.isUpload && isWithin(songs.directory, input.path))) return input;
    const { kind } = input;
    const path = input.isUpload ? input.path : uploadPath(uploads.directory, kind, input.path);
    try {
      if (!input.isUpload) {
        await makeFolder(uploads.directory);
        const file = await openRecording(input.path, REQUEST_WAIT);
        await pipeline(file.createReadStream(), createWriteStream(path, { flags: "wx" }), { signal });
      }
      await uploads.publish(path, signal);
      return { kind, path, isUpload: true, bytes: (await stat(path)).size };
    } catch (error) {
      // The store may have the object although its answer was lost.
      await this.options.discard([uploads.objectName(path)]);
      throw error;
    }
  }

  /** Removes the uploads of a request whose task was not accepted. Never rejects. */
  async release(request: GenerationRequest): Promise<void> {
    await this.options.discard(this.objectNames(request));
  }

  /** Names of the request's uploads in the storage. */
  objectNames(request: GenerationRequest): string[] {
    return uploadPathsOf(request).map((path) => this.options.uploads.objectName(path));
  }

  /**
   * Local path of a kept upload that a client refers to; null if there is none.
   * @throws StoreError, or the signal's reason
   */
  async keptUpload(value: string, signal: AbortSignal): Promise<string | null> {
    const { uploads } = this.options;
    const path = referencedUpload(uploads.directory, value);
    return path !== null && (await uploads.fetch(path, signal)) ? path : null;
  }

  async #locate(input: AudioInput | null, signal: AbortSignal): Promise<AudioInput | null> {
    const { songs, uploads } = this.options;
    if (input === null || (input.isUpload && uploads.store === null)) return input;
    const { kind } = input;
    const name = uploadFieldName(kind);
    if (input.isUpload) {
      // The gateway that accepted the task wrote this path. Its upload folder may differ from ours.
      const path = join(uploads.directory, basename(input.path));
      if (await uploads.fetch(path, signal)) return { kind, path, isUpload: true };
      throw new RequestError(`the upload ${name} is no longer stored; send it again`);
    }
    const parameter = `${name}_path`;
    assertPath(input.path, parameter);
    const candidate = resolve(songs.directory, pathFromResultUrl(input.path, parameter));
    if (isWithin(songs.directory, candidate)) await songs.fetch(candidate, signal);
    const file = await realpath(candidate).catch(() => null);
    if (!(await this.#isAllowed(file ?? candidate))) {
      throw new RequestError(
        `${parameter} is outside the server's allowed directories: upload the file as ${name}, or allow its directory (SVC_AUDIO_ROOTS)`,
      );
    }
    const path = file ?? candidate;
    try {
      await (await openRecording(path, REQUEST_WAIT)).close();
    } catch (error) {
      if (!(error instanceof UnusableFileError)) throw error;
      const sentence =
        error.reason === "absent"
          ? say("recording_absent", { name: parameter, advice: whereToLook(input.path, name) })
          : `${parameter} names a path that ${error.fault}`;
      throw new RequestError(sentence, { cause: error });
    }
    return { kind, path, isUpload: false };
  }

  async #isAllowed(path: string): Promise<boolean> {
    const { roots, songs, uploads } = this.options;
    if (roots === null) return true;
    for (const root of [songs.directory, uploads.directory, ...roots]) {
      const real = await realpath(root).catch(() => null);
      if (real !== null && isWithin(real, path)) return true;
    }
    return false;
  }

  /** Decodes a recording, or reads latents, whose peak is unknown. */
  async #measure(
    { kind, path }: AudioInput,
    caller: Caller,
  ): Promise<{ seconds: number; peak: number | null }> {
    const { maxSeconds } = this.options;
    const { signal } = caller;
    const name = uploadFieldName(kind);
    if (kind === "sourceLatents" || kind === "referenceLatents") {
      const { samples } = await this.#decoders.run(caller, () => readLatents(path, name, maxSeconds));
      return { seconds: samples / SAMPLE_RATE, peak: null };
    }
    try {
      return await this.#decoders.run(caller, () => measureAudio({ path, name, maxSeconds, signal }));
    } catch (error) {
      if (!(error instanceof DecodeError)) throw error;
      throw new RequestError(error.message, { cause: error });
    }
  }
}

/** Makes a hard link, or a copy on a file system without hard links. False if `from` does not exist. */
function isLinked(from: string, to: string): Promise<boolean> {
  return link(from, to)
    .catch(() => copyFile(from, to))
    .then(
      () => true,
      () => false,
    );
}

/** Paths of the uploaded files of a request, which are removed with its task. */
export function uploadPathsOf(request: GenerationRequest): string[] {
  return inputsOf(request).flatMap(({ isUpload, path }) => (isUpload ? path : []));
}

/** Says where the server looks for a path, because clients send paths of their own machine. */
function whereToLook(path: string, name: string): string {
  const isRelative = !isAbsolute(path) && !RESULT_URL_PATTERN.test(path);
  const start = isRelative ? ", where relative paths start in the folder of songs" : "";
  return `${start}: to send a file of another machine, upload it as ${name}`;
}

/** @throws RequestError for URLs and `~` paths, which are not supported */
function assertPath(value: string, parameter: string): void {
  const isUrl = /^([a-z][a-z\d+.-]*:\/\/|data:)/i.test(value) && !RESULT_URL_PATTERN.test(value);
  if (!isUrl && !value.startsWith("~")) return;
  throw new RequestError(
    `${parameter} must be an absolute path on the server, or the \`file\` of one of its results, not ` +
      `${isUrl ? "a URL" : "a path that starts with ~"}; to send the file itself, upload it`,
  );
}
