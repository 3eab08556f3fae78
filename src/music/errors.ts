/**
 * Errors of the music service's HTTP face: what a failure means to a client. Its text stands in `detail`, which the
 * interface names, and in `error`, where some clients look for it.
 */
import { dirname, isAbsolute } from "node:path";
import { fileURLToPath } from "node:url";
import type { ErrorRequestHandler, RequestHandler, Response } from "express";
import type { Config } from "../config.js";
import type { NativeErrorCode } from "../engine/addon.js";
import type { EngineErrorCode } from "../engine/errors.js";

/** A failure with the status and the message that the client gets. */
export class HttpError extends Error {
  constructor(
    readonly status: number,
    /** One line, shown to people. */
    readonly detail: string,
    readonly headers: Readonly<Record<string, string>> = {},
    options?: ErrorOptions,
  ) {
    super(detail, options);
    this.name = "HttpError";
  }
}

/** A request that the service refuses as it stands; the detail names the field at fault. */
export class RequestError extends HttpError {
  constructor(detail: string, options?: ErrorOptions) {
    super(400, detail, {}, options);
    this.name = "RequestError";
  }
}

/** What is done to one machine's models is refused where several serve. */
export function refuseInFleet(): never {
  throw new HttpError(
    501,
    "A fleet's servers do not do this, for it would change one machine alone: ask a server that works alone",
  );
}

/** A change that could not be made to last, for example because the disk is full. */
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
 * What the engine's codes mean to a client: 400 where it can mend the request. A model that the client
 * named itself is refused where that is known; here an absent one is the installation's fault.
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
    SLOT_UNAVAILABLE: 400,
    TOKENIZER: 500,
    PROMPT_TOO_LONG: 400,
    SONG_TOO_LONG: 400,
    ADAPTER: 400,
    LM_OUTPUT: 500,
    CLOSED: 500,
  } satisfies Record<NativeErrorCode | EngineErrorCode, number>),
);

/** A shortage of descriptors or processes passes as requests end. */
const BUSY_RETRY_SECONDS = "5";

/** What a thrown value means to the client. Unknown failures become a 500 that tells nothing of the inside. */
export function toHttpError(error: unknown): HttpError {
  if (error instanceof HttpError) return error;
  if (!(error instanceof Error)) return new HttpError(500, "Internal server error", {}, { cause: error });

  if (error instanceof StoreError) {
    return new HttpError(error.code === "DISK_FULL" ? 507 : 503, error.message, {}, { cause: error });
  }

  const { code, status } = error as Error & { code?: unknown; status?: unknown };
  if (code === "ENOSPC") return new HttpError(507, "The server's disk is full", {}, { cause: error });
  if (code === "SYSTEM_BUSY") {
    return new HttpError(
      503,
      firstLine(error.message),
      { "Retry-After": BUSY_RETRY_SECONDS },
      { cause: error },
    );
  }
  if (code === "FFMPEG_MISSING") return new HttpError(500, firstLine(error.message), {}, { cause: error });
  const engineStatus = ENGINE_STATUS.get(code);
  if (engineStatus !== undefined) {
    return new HttpError(engineStatus, firstLine(error.message), {}, { cause: error });
  }
  if (typeof status === "number" && status >= 400 && status < 500) {
    // Express found the URL unreadable.
    return new HttpError(400, firstLine(error.message), {}, { cause: error });
  }
  return new HttpError(500, "Internal server error", {}, { cause: error });
}

function firstLine(message: string): string {
  return message.split("\n", 1)[0] as string;
}

/**
 * The last handler of the application. Faults go to `log` with their cause, shortages (503, 507) as a line; the client
 * gets one line, as `shown` has it.
 */
export function errorHandler(
  log: (message: string, error: unknown) => void,
  shown: (detail: string) => string = (detail) => detail,
): ErrorRequestHandler {
  return (error, request, response, next) => {
    const failure = toHttpError(error);
    if (failure.status >= 500) {
      const isFault = failure.status === 500;
      const what = `${request.method} ${request.baseUrl}${request.path}: ${failure.detail}`;
      log(what, isFault ? (failure.cause ?? failure) : undefined);
    }
    if (response.headersSent) {
      next(error);
      return;
    }
    const detail = shown(failure.detail);
    const body = response.locals.speaksOpenAi === true ? openAiError(failure.status, detail) : detail;
    response.set(failure.headers).status(failure.status).json({ detail, error: body });
  };
}

/**
 * What clients are shown of a message. Whoever needs a key is a guest: the server's directories go by the names of
 * their settings there.
 */
export function detailFor(config: Config): (detail: string) => string {
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
  return (detail) => longestFirst.reduce((text, [path, name]) => text.replaceAll(path, name), detail);
}

/** From then on errors have the shape that clients of chat models read. */
export function speakOpenAi(response: Response): void {
  response.locals.speaksOpenAi = true;
}

function openAiError(status: number, detail: string) {
  const types: Readonly<Record<number, string>> = { 401: "authentication_error", 429: "rate_limit_error" };
  const type = types[status] ?? (status < 500 ? "invalid_request_error" : "server_error");
  return { message: detail, type, param: null, code: status };
}

/** For the end of the route table. */
export const notFound: RequestHandler = () => {
  throw new HttpError(404, "Not Found");
};

/** For `router.all(path)` after the routes of that path. */
export function methodNotAllowed(...allowed: string[]): RequestHandler {
  return () => {
    throw new HttpError(405, "Method Not Allowed", { Allow: allowed.join(", ") });
  };
}
