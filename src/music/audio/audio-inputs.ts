/** Input recordings of tasks: resolves paths inside permitted directories, and checks the content. */
import { createWriteStream } from "node:fs";
import { copyFile, link, realpath, rm, stat } from "node:fs/promises";
import { basename, isAbsolute, join, resolve } from "node:path";
import { pipeline } from "node:stream/promises";
import { SAMPLE_RATE, type SongLatents } from "../../engine/types.js";
import { describe } from "../../parameters.js";
import { UnusableFileError } from "../../system/regular-file.js";
import { type Caller, ConcurrencyLimit } from "../access/concurrency-limit.js";
import { RequestError } from "../errors.js";
import type { AudioInput, GenerationRequest } from "../request/schema.js";
import { type FileStorage, makeFolder } from "../storage/file-storage.js";
import { isWithin } from "../storage/permitted-root.js";
import { pathFromResultUrl, RESULT_URL_PATTERN } from "./audio-files.js";
import { type AudioMeasures, DecodeError, measureAudio, openRecording } from "./decode.js";
import { readLatents } from "./latents-file.js";
import { repaintWindows } from "./repaint-windows.js";
import { referencedUpload, UPLOAD_KINDS, type UploadKind, uploadFieldName, uploadPath } from "./uploads.js";

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
      for (const kind of UPLOAD_KINDS) claimed[kind] = await this.#claim(request[kind] ?? null, kind, signal);
      return claimed;
    } catch (error) {
      await this.unclaim(request, claimed);
      throw error;
    }
  }

  async #claim(input: AudioInput | null, kind: UploadKind, signal: AbortSignal): Promise<AudioInput | null> {
    const { uploads } = this.options;
    const kept = input === null || input.isUpload ? null : referencedUpload(uploads.directory, input.path);
    if (kept !== null) {
      const path = uploadPath(uploads.directory, kind, kept);
      if (!(await uploads.fetch(kept, signal)) || !(await isLinked(kept, path))) {
        throw new RequestError(
          `the recording ${describe(input?.path)} is no longer stored: send the file again`,
        );
      }
      return { path, isUpload: true, bytes: (await stat(path)).size };
    }
    if (input === null || !input.isUpload) return input;
    return { ...input, bytes: (await stat(input.path)).size };
  }

  /** Removes the links that `claim` made for a request, if the request was not accepted. */
  async unclaim(request: GenerationRequest, claimed: GenerationRequest): Promise<void> {
    for (const kind of UPLOAD_KINDS) {
      const path = claimed[kind]?.path;
      if (path !== undefined && path !== request[kind]?.path) await rm(path, { force: true });
    }
  }

  /**
   * Checks a new request's recordings: resolves paths, decodes every file once, and checks windows.
   * @throws HttpError 400 for an unusable recording, 429 if too many requests of the caller are waiting, DecodeError
   * for a server fault, or the signal's reason
   */
  async admit(request: GenerationRequest, caller: Caller): Promise<GenerationRequest> {
    const located = await this.locate(request, caller.signal);
    const { sourceAudio, referenceAudio, sourceLatents, referenceLatents } = located;
    if (sourceLatents) {
      const { samples } = await this.#inspect(sourceLatents, "src_latents", caller);
      repaintWindows(request, samples / SAMPLE_RATE);
    }
    if (referenceLatents) await this.#inspect(referenceLatents, "ref_latents", caller);
    if (sourceAudio !== null) {
      const { seconds } = await this.#measure(sourceAudio, "src_audio", caller);
      if (seconds < MIN_SOURCE_SECONDS) {
        throw new RequestError(
          `src_audio lasts ${seconds.toFixed(3)} seconds; the minimum is ${MIN_SOURCE_SECONDS}`,
        );
      }
      repaintWindows(request, seconds);
    }
    if (referenceAudio !== null) {
      const { peak } = await this.#measure(referenceAudio, "reference_audio", caller);
      if (peak < SILENT_PEAK) {
        throw new RequestError("reference_audio is silent and has no timbre; send another file or none");
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
    for (const kind of UPLOAD_KINDS)
      located[kind] = await this.#locate(request[kind] ?? null, uploadFieldName(kind), signal);
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
      for (const kind of UPLOAD_KINDS)
        published[kind] = await this.#publish(request[kind] ?? null, kind, signal);
      return published;
    } catch (error) {
      await this.release(published);
      throw error;
    }
  }

  /** Copies a recording to the object store, unless it is a song, which is stored already. */
  async #publish(
    input: AudioInput | null,
    kind: UploadKind,
    signal: AbortSignal,
  ): Promise<AudioInput | null> {
    const { songs, uploads } = this.options;
    if (input === null || (!input.isUpload && isWithin(songs.directory, input.path))) return input;
    const path = input.isUpload ? input.path : uploadPath(uploads.directory, kind, input.path);
    try {
      if (!input.isUpload) {
        await makeFolder(uploads.directory);
        const file = await openRecording(input.path, REQUEST_WAIT);
        await pipeline(file.createReadStream(), createWriteStream(path, { flags: "wx" }), { signal });
      }
      await uploads.publish(path, signal);
      return { path, isUpload: true, bytes: (await stat(path)).size };
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

  async #locate(input: AudioInput | null, name: string, signal: AbortSignal): Promise<AudioInput | null> {
    const { songs, uploads } = this.options;
    if (input === null || (input.isUpload && uploads.store === null)) return input;
    if (input.isUpload) {
      // The gateway that accepted the task wrote this path. Its upload folder may differ from ours.
      const path = join(uploads.directory, basename(input.path));
      if (await uploads.fetch(path, signal)) return { path, isUpload: true };
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
      const advice = error.reason === "absent" ? whereToLook(input.path, name) : "";
      throw new RequestError(`${parameter} names a path that ${error.fault}${advice}`, { cause: error });
    }
    return { path, isUpload: false };
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

  #inspect({ path }: AudioInput, name: string, caller: Caller): Promise<SongLatents> {
    return this.#decoders.run(caller, () => readLatents(path, name, this.options.maxSeconds));
  }

  async #measure({ path }: AudioInput, name: string, caller: Caller): Promise<AudioMeasures> {
    const { maxSeconds } = this.options;
    const { signal } = caller;
    try {
      return await this.#decoders.run(caller, () => measureAudio({ path, name, maxSeconds, signal }));
    } catch (error) {
      if (!(error instanceof DecodeError && error.isInputFault)) throw error;
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
  return UPLOAD_KINDS.map((kind) => request[kind]).flatMap((input) => (input?.isUpload ? input.path : []));
}

/** Says where the server looks for a path, because clients send paths of their own machine. */
function whereToLook(path: string, name: string): string {
  const isRelative = !isAbsolute(path) && !RESULT_URL_PATTERN.test(path);
  const start = isRelative ? ", where relative paths start in the folder of songs" : "";
  return ` on the server${start}: to send a file of another machine, upload it as ${name}`;
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
