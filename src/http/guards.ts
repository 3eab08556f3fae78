/** Checks of requests, and answers to requests that fail. Each service sends errors in its own format. */
import type { ErrorRequestHandler, Request, RequestHandler, Response } from "express";
import { HttpError } from "./http-error.js";

/** Refuses several Host headers, because proxies disagree on which one is valid. */
export const requireOneHost: RequestHandler = ({ headersDistinct }, _response, next) => {
  const { host = [] } = headersDistinct;
  if (host.length > 1) throw new HttpError(400, "The request has more than one Host header");
  next();
};

/** Answers 404. Register it as the last route. */
export function notFound(detail: string): RequestHandler {
  return () => {
    throw new HttpError(404, detail);
  };
}

/** Answers 405. Register it with `router.all(path)` after the routes of that path. */
export function methodNotAllowed(...allowed: string[]): RequestHandler {
  return () => {
    throw new HttpError(405, "Method Not Allowed", { Allow: allowed.join(", ") });
  };
}

/** Whether express could not read the request, for example because the body is too large or the URL is malformed. */
export function isUnreadable(error: unknown): error is Error {
  const status = error instanceof Error && "status" in error ? Number(error.status) : 0;
  return status >= 400 && status < 500;
}

/** The application's last error handler. `send` is not called if a part of the response was already sent. */
export function errorHandler(
  failureOf: (error: unknown) => HttpError,
  log: (failure: HttpError, request: Request) => void,
  send: (response: Response, failure: HttpError) => void,
): ErrorRequestHandler {
  return (error, request, response, next) => {
    const failure = failureOf(error);
    log(failure, request);
    if (response.headersSent) next(error);
    else send(response.set(failure.headers), failure);
  };
}
