/**
 * HTTP errors of the music service. Responses have one line in `detail`, and the same line in `error` for clients
 * that read only `error`. Responses never contain a stack trace.
 */
import { dirname, isAbsolute } from "node:path";
import { fileURLToPath } from "node:url";
import type { ErrorRequestHandler, Response } from "express";
import type { Config } from "../config.js";
import type { NativeErrorCode } from "../engine/addon.js";
import type { EngineErrorCode } from "../engine/errors.js";
import { errorHandler, isUnreadable } from "../http/guards.js";
import { HttpError } from "../http/http-error.js";
import { noteOf } from "../notes.js";
import { UnusableFileError } from "../system/regular-file.js";

export { HttpError };

/** Invalid request (400); the detail names the field. */
export class RequestError extends HttpError {
  constructor(detail: string, options?: ErrorOptions) {
    super(400, detail, {}, options);
    this.name = "RequestError";
  }
}

/** A body, or a file in it, is too large. */
export class TooLargeError extends RequestError {}

/** Refuses endpoints that would change only one machine of a fleet. */
export function throwNotAvailableInFleet(): never {
  throw new HttpError(
    501,
    "Not available in a fleet, because it would change only one machine: use a standalone server",
  );
}

/** Failed write to the task store or the object store, for example on a full disk. */
export class StoreError extends Error {
  constructor(
    readonly code: "DISK_FULL" | "WRITE_FAILED" | "UNREACHABLE",
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.name = "StoreError";
  }
}

/**
 * HTTP status of engine errors: 400 if the client can fix the request. A missing model is a 500 here; `loadOrRefuse`
 * turns it into a 400 if the client named the model.
 */
const ENGINE_STATUS: ReadonlyMap<unknown, number> = new Map(
  Object.entries({
    BAD_ARGUMENT: 400,
    BAD_CHECKPOINT: 500,
    OUT_OF_MEMORY: 500,
    CANCELLED: 500,
    NOT_FINITE: 500,
    INTERNAL: 500,
    STORAGE: 500,
    DEVICE_LOST: 500,
    ADDON_MISSING: 500,
    MODEL_NOT_FOUND: 500,
    UNSUPPORTED_MODEL: 500,
    SLOT_UNAVAILABLE: 400,
    TOKENIZER: 500,
    PROMPT_TOO_LONG: 400,
    SONG_TOO_LONG: 400,
    ADAPTER: 400,
    OTHER_LATENTS: 400,
    LM_OUTPUT: 500,
    CLOSED: 500,
  } satisfies Record<NativeErrorCode | EngineErrorCode, number>),
);

export function serverStops(): HttpError {
  return new HttpError(503, "The server is stopping");
}

/** File descriptors and processes become available when other requests end. */
const BUSY_RETRY_SECONDS = "5";

/** Maps a thrown value to an HttpError. Unknown errors become a 500 without details. */
export function toHttpError(error: unknown): HttpError {
  if (error instanceof HttpError) return error;
  if (!(error instanceof Error)) return new HttpError(500, "Internal server error", {}, { cause: error });

  const answer = (status: number, detail = error.message.split("\n", 1)[0] as string, headers = {}) =>
    new HttpError(status, detail, headers, { cause: error });
  if (error instanceof StoreError) return answer(error.code === "DISK_FULL" ? 507 : 503, error.message);
  if (error instanceof UnusableFileError) return new RequestError(error.message, { cause: error });
  const { code } = error as NodeJS.ErrnoException;
  if (code === "ENOSPC") return answer(507, "The server's disk is full");
  if (code === "SYSTEM_BUSY") return answer(503, undefined, { "Retry-After": BUSY_RETRY_SECONDS });
  if (code === "FFMPEG_MISSING") return answer(500);
  const engineStatus = ENGINE_STATUS.get(code);
  if (engineStatus !== undefined) return answer(engineStatus);
  if (isUnreadable(error)) return answer(400);
  return answer(500, "Internal server error");
}

/** Logs server faults and responds to failures; `shown` filters the detail that the client gets. */
export function answerErrors(
  log: (message: string, error: unknown) => void,
  shown: (detail: string) => string = (detail) => detail,
): ErrorRequestHandler {
  return errorHandler(
    toHttpError,
    (failure, { method, baseUrl, path }) => {
      const fault = failure.status === 500 ? (failure.cause ?? failure) : undefined;
      if (failure.status >= 500) log(`${method} ${baseUrl}${path}: ${failure.detail}`, fault);
    },
    (response, failure) => {
      const detail = shown(failure.detail);
      const { errorBody = ownError }: { errorBody?: ErrorBody } = response.locals;
      response.status(failure.status).json(errorBody(failure.status, detail));
    },
  );
}

/**
 * Lookahead for the end of a path: `/tmp` matches before a slash, a colon or a full stop, but not in `/tmp2`,
 * `/tmp-x` or `/tmp.x`.
 */
const NAME_ENDS = String.raw`(?![\p{L}\p{N}_-]|\.[\p{L}\p{N}_])`;

/** Returns a filter for messages to clients. If an API key is set, it replaces server paths by names of settings. */
export function detailFilter(config: Config): (detail: string) => string {
  if (config.apiKey === "") return (detail) => detail;
  const { slot1Model, slot2Model, slot3Model, languageModel } = config;
  const models = [slot1Model, slot2Model, slot3Model, languageModel].flatMap((path) => path ?? []);
  const directories: [path: string, name: string][] = [
    [config.temporaryDirectory, "SVC_TMPDIR"],
    [config.storage?.directory ?? "", "SVC_STORAGE"],
    [config.checkpointsDirectory, "SVC_CHECKPOINTS"],
    [config.trainingRoot, "SVC_TRAINING_ROOT"],
    [config.homeDirectory, "SVC_HOME"],
    ...models.filter((path) => isAbsolute(path)).map((path): [string, string] => [dirname(path), "models"]),
    [fileURLToPath(new URL("../..", import.meta.url)).replace(/\/$/, ""), "carillon"],
    [process.cwd(), "."],
  ];
  const longestFirst = directories
    .filter(([path]) => path.length > 1)
    .sort(([a], [b]) => b.length - a.length);
  const names = longestFirst.map(([path, name]): [RegExp, string] => [
    new RegExp(path.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&") + NAME_ENDS, "gu"),
    name,
  ]);
  return (detail) => names.reduce((text, [path, name]) => text.replaceAll(path, name), detail);
}

/** Body of an error response. */
export type ErrorBody = (status: number, detail: string) => object;

const ownError: ErrorBody = (_status, detail) => {
  const note = noteOf(detail);
  return { detail, error: detail, ...(note.code !== "other" && { note }) };
};

/** Sets the format of errors of this response, for clients of other servers. */
export function setErrorBody(response: Response, body: ErrorBody): void {
  response.locals.errorBody = body;
}

/** Errors of OpenAI's interface. */
export const openAiError: ErrorBody = (status, detail) => {
  const types: Readonly<Record<number, string>> = { 401: "authentication_error", 429: "rate_limit_error" };
  const type = types[status] ?? (status < 500 ? "invalid_request_error" : "server_error");
  return { detail, error: { message: detail, type, param: null, code: status } };
};
