/**
 * Recordings that tasks work on: which files a request may name, whether they hold what they should, and which part of
 * them a task generates anew.
 */
import { access, constants, copyFile, realpath, stat } from "node:fs/promises";
import { basename, join, resolve } from "node:path";
import { DURATION_SECONDS_RANGE } from "../../engine/metadata.js";
import { type Caller, ConcurrencyLimit } from "../concurrency-limit.js";
import { RequestError } from "../errors.js";
import { isWithin } from "../permitted-root.js";
import type { AudioInput, GenerationRequest } from "../request/schema.js";
import type { Shelf } from "../storage/shelf.js";
import { type AudioMeasures, DecodeError, measureAudio } from "./decode.js";
import { uploadPath } from "./uploads.js";

/** What clients find as `file` in results, whatever stands before it. */
const RESULT_URL = /\/v1\/audio\?(?:[^#]*&)?path=([^&#]*)/;

/** Recordings of new requests decoded at a time: jobs need the processor too. One is left to other clients. */
const DECODERS = { places: 3, placesPerAddress: 2, waitingPerAddress: 64, retryAfterSeconds: 10 };
/** What the renderer takes for silence. */
const SILENT_PEAK = 1e-6;
/** A latent frame, the least that can be encoded. */
const MIN_SOURCE_SECONDS = 0.04;

export interface AudioInputOptions {
  /** Folders that paths may point into beside the service's own; null: any. */
  roots: readonly string[] | null;
  /** Finished songs. Relative paths start here. */
  songs: Shelf;
  uploads: Shelf;
  maxSeconds: number;
}

export class AudioInputs {
  readonly #decoders = new ConcurrencyLimit(DECODERS);

  constructor(private readonly options: AudioInputOptions) {}

  /**
   * Checks a new request's recordings: paths are resolved, every file is decoded once, the window lies where it may.
   * @throws HttpError 400 where a recording cannot be worked on, 429 where too many of the caller wait, DecodeError
   * where the server is at fault, or the reason of the caller's signal
   */
  async admit(request: GenerationRequest, caller: Caller): Promise<GenerationRequest> {
    const located = await this.locate(request);
    const { sourceAudio, referenceAudio } = located;
    if (sourceAudio !== null) {
      const { seconds } = await this.#measure(sourceAudio, "src_audio", caller);
      if (seconds < MIN_SOURCE_SECONDS) {
        throw new RequestError(
          `src_audio lasts ${seconds.toFixed(3)} seconds; ${MIN_SOURCE_SECONDS} are the least`,
        );
      }
      repaintWindow(request, seconds);
    }
    if (referenceAudio !== null) {
      const { peak } = await this.#measure(referenceAudio, "reference_audio", caller);
      if (peak < SILENT_PEAK) {
        throw new RequestError("reference_audio is silent: it has no timbre to take; send another or none");
      }
    }
    return located;
  }

  /**
   * The request with real paths: at submission, and again before the job reads them, as files and links change.
   * @throws RequestError where a path names no file that may be read
   */
  async locate(request: GenerationRequest): Promise<GenerationRequest> {
    return {
      ...request,
      sourceAudio: await this.#locate(request.sourceAudio, "src_audio_path"),
      referenceAudio: await this.#locate(request.referenceAudio, "reference_audio_path"),
    };
  }

  /** Lets whatever machine runs the task have its recordings. @throws StoreError; what was stored is then removed */
  async publish(request: GenerationRequest): Promise<GenerationRequest> {
    if (this.options.uploads.store === null) return request;
    const published = { ...request };
    try {
      for (const kind of ["sourceAudio", "referenceAudio"] as const) {
        published[kind] = await this.#publish(request[kind], kind);
      }
      return published;
    } catch (error) {
      await this.release(published).catch(() => {});
      throw error;
    }
  }

  /** A file of this machine becomes an upload; songs are in the store already. */
  async #publish(
    input: AudioInput | null,
    kind: "sourceAudio" | "referenceAudio",
  ): Promise<AudioInput | null> {
    const { songs, uploads } = this.options;
    if (input === null || (!input.isUpload && isWithin(songs.directory, input.path))) return input;
    const path = input.isUpload ? input.path : uploadPath(uploads.directory, kind, input.path);
    if (!input.isUpload) await copyFile(input.path, path);
    await uploads.publish(path);
    return { path, isUpload: true };
  }

  /** Lets the files go that came with a request. @throws StoreError */
  async release(request: GenerationRequest): Promise<void> {
    const { uploads } = this.options;
    for (const path of ownFiles(request)) await uploads.remove(join(uploads.directory, basename(path)));
  }

  async #locate(input: AudioInput | null, parameter: string): Promise<AudioInput | null> {
    const { songs, uploads } = this.options;
    if (input === null || (input.isUpload && uploads.store === null)) return input;
    if (input.isUpload) {
      // The machine that accepted it may have its folder elsewhere.
      const path = join(uploads.directory, basename(input.path));
      if (await uploads.bring(path)) return { path, isUpload: true };
      throw new RequestError(`what was uploaded as ${parameter.replace(/_path$/, "")} is gone`);
    }
    assertPath(input.path, parameter);
    const candidate = resolve(songs.directory, pathIn(input.path, parameter));
    if (isWithin(songs.directory, candidate)) await songs.bring(candidate);
    const file = await realpath(candidate).catch(() => null);
    if (!(await this.#isAllowed(file ?? candidate))) {
      throw new RequestError(
        `${parameter} lies outside the directories that requests may name, the setting SVC_AUDIO_ROOTS`,
      );
    }
    if (file === null) throw new RequestError(`${parameter} names no file that exists`);
    if (!(await stat(file)).isFile()) throw new RequestError(`${parameter} names no regular file`);
    await access(file, constants.R_OK).catch(() => {
      throw new RequestError(`${parameter} names a file that this server may not read`);
    });
    return { path: file, isUpload: false };
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

  async #measure({ path }: AudioInput, name: string, caller: Caller): Promise<AudioMeasures> {
    const { maxSeconds } = this.options;
    const { signal } = caller;
    try {
      return await this.#decoders.run(caller, () => measureAudio({ path, name, maxSeconds, signal }));
    } catch (error) {
      if (!(error instanceof DecodeError && error.isFilesFault)) throw error;
      throw new RequestError(error.message, { cause: error });
    }
  }
}

/** The files that go when the task ends. */
export function ownFiles({ sourceAudio, referenceAudio }: GenerationRequest): string[] {
  return [sourceAudio, referenceAudio].flatMap((input) => (input?.isUpload ? input.path : []));
}

/** @throws RequestError for what people take for a path: the service fetches nothing, and no shell reads a `~` here */
function assertPath(value: string, parameter: string): void {
  const isUrl = /^([a-z][a-z\d+.-]*:\/\/|data:)/i.test(value) && !RESULT_URL.test(value);
  if (!isUrl && !value.startsWith("~")) return;
  throw new RequestError(
    `${parameter} must be an absolute path on the server, or the \`file\` of one of its results, not ` +
      `${isUrl ? "a URL" : "a path that starts with ~"}; to send the file itself, upload it`,
  );
}

/** The path itself, or the one in a result's URL: clients send `file` back. */
function pathIn(value: string, parameter: string): string {
  const [, encoded] = RESULT_URL.exec(value) ?? [];
  const path = encoded === undefined ? value : decoded(encoded, parameter);
  if (path.includes("\0")) throw new RequestError(`${parameter} must not contain a NUL character`);
  return path;
}

function decoded(text: string, parameter: string): string {
  try {
    return decodeURIComponent(text);
  } catch (error) {
    throw new RequestError(`${parameter} is not a URL of a result`, { cause: error });
  }
}

/** A latent frame: clients round lengths, and lossy formats change them by less. */
const TOLERANCE_SECONDS = 0.04;

export interface RepaintWindow {
  startSeconds: number;
  endSeconds: number;
}

/**
 * In seconds of the source; it may begin before the source and end after it, but not leave a gap. Null: all of it.
 * @throws RequestError where there is no such part
 */
export function repaintWindow(request: GenerationRequest, sourceSeconds: number): RepaintWindow | null {
  const { taskType, repaintingStartSeconds: start, repaintingEndSeconds: end } = request;
  if (taskType !== "repaint" && taskType !== "lego") return null;
  if (start === 0 && end === null) return null;
  const lasts = `the source, which lasts ${sourceSeconds.toFixed(2)} seconds`;
  if (start > sourceSeconds + TOLERANCE_SECONDS) {
    throw new RequestError(`repainting_start must not lie beyond ${lasts}, got ${start}`);
  }
  const startSeconds = Math.min(start, sourceSeconds);
  const endSeconds = end ?? sourceSeconds;
  if (startSeconds >= endSeconds) {
    throw new RequestError(`repainting_start ${start} leaves nothing of ${lasts}; set repainting_end`);
  }
  const songSeconds = Math.max(endSeconds, sourceSeconds) - Math.min(startSeconds, 0);
  if (songSeconds > DURATION_SECONDS_RANGE.max) {
    throw new RequestError(
      `repainting_start and repainting_end make a song of ${songSeconds.toFixed(2)} seconds; ${DURATION_SECONDS_RANGE.max} are the most`,
    );
  }
  return { startSeconds, endSeconds };
}
