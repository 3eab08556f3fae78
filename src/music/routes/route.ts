/** Types and helper functions that all endpoints share. */

import { createHash } from "node:crypto";
import type { Request, RequestHandler, Response } from "express";
import type { Config } from "../../config.js";
import type { Fields } from "../../parameters.js";
import type { Authenticator } from "../access/access.js";
import type { Caller } from "../access/concurrency-limit.js";
import type { Parameters as Body, Operation } from "../openapi/document.js";
import { BODY_RULES, type BodyReader, type BodyRule, type RequestBody } from "../request/body.js";
import type { MusicService } from "../service.js";
import type { RandomSamples } from "../words/random-samples.js";

/**
 * Sends data in the envelope of all successful JSON responses. The ETag covers only the data, because the timestamp,
 * in milliseconds since the epoch, differs in every envelope. A repeated GET with this ETag gets 304 without a body.
 */
export function sendEnvelope(response: Response, data: unknown): void {
  const digest = createHash("sha1")
    .update(JSON.stringify(data) ?? "")
    .digest("base64url");
  response.set("ETag", `W/"${digest}"`).json(envelope(data));
}

export function envelope(data: unknown) {
  return { data, code: 200, error: null, timestamp: Date.now(), extra: null };
}

export interface RouteContext {
  config: Config;
  service: MusicService;
  authenticator: Authenticator;
  bodies: BodyReader;
  samples: RandomSamples;
}

export type Route = (context: RouteContext) => RequestHandler;

export interface Endpoint extends Operation {
  route: Route;
}

/** Endpoints by method and path, such as `GET /health`. */
export type Endpoints = Readonly<
  Record<`${"GET" | "POST" | "PUT" | "PATCH" | "DELETE"} /${string}`, Endpoint>
>;

type Untagged = Omit<Operation, "tag">;
type UntaggedEndpoint = Omit<Endpoint, "tag">;

/** Assigns endpoints to a section of the OpenAPI document. */
export function withTag<Name extends keyof Endpoints>(
  tag: Operation["tag"],
  endpoints: Readonly<Record<Name, UntaggedEndpoint>>,
): Readonly<Record<Name, Endpoint>> {
  const entries = Object.entries<UntaggedEndpoint>(endpoints);
  return Object.fromEntries(entries.map(([name, endpoint]) => [name, { tag, ...endpoint }])) as never;
}

interface GetOperation extends Untagged {
  run(context: RouteContext, request: Request): unknown;
}

/** Creates a GET endpoint: it checks the key, and wraps the result of `run` in the envelope. */
export function createGetEndpoint({ run, ...operation }: GetOperation): UntaggedEndpoint {
  return { ...operation, route: createGetRoute(run) };
}

export function createGetRoute(run: GetOperation["run"]): Route {
  return (context) => async (request, response) => {
    context.authenticator.authorize(request);
    sendEnvelope(response, await run(context, request));
  };
}

/**
 * Creates an endpoint that reads a request body and wraps the result of `run` in the envelope. `run` continues if
 * the client disconnects.
 */
export function command<Input>({
  run,
  rule,
  ...operation
}: Untagged & {
  body?: Body & ((fields: Fields) => Input);
  rule?: BodyRule;
  run(context: RouteContext, input: Input, request: Request): unknown;
}): UntaggedEndpoint {
  const { body } = operation;
  const route = commandRoute(
    (context, fields, request) => run(context, body?.(fields) as Input, request),
    rule,
  );
  return { ...operation, route };
}

export function commandRoute(
  run: (context: RouteContext, fields: Fields, request: Request) => unknown,
  rule: BodyRule = BODY_RULES.command,
): Route {
  return (context) => async (request, response) => {
    const { fields } = await context.bodies.read(request, rule);
    sendEnvelope(response, await run(context, fields, request));
  };
}

/** Route with the client's signal. Errors after the client has disconnected are ignored. */
export function abortableRoute(
  handle: (context: RouteContext, request: Request, response: Response, caller: Caller) => Promise<unknown>,
): Route {
  return (context) => async (request, response) => {
    const caller = callerOf(request, response);
    await handle(context, request, response, caller).catch((error: unknown) => {
      if (!caller.signal.aborted) throw error;
    });
  };
}

/** Like `command`, but `run` gets a signal that fires when the client disconnects. */
export function abortableCommand({
  run,
  rule,
  ...operation
}: Untagged & {
  rule: BodyRule;
  run(context: RouteContext, body: RequestBody, caller: Caller, request: Request): Promise<unknown>;
}): UntaggedEndpoint {
  const route = abortableRoute(async (context, request, response, caller) => {
    const body = await context.bodies.read(request, rule);
    sendEnvelope(response, await run(context, body, caller, request));
  });
  return { ...operation, route };
}

/**
 * Identifies the client of a request. The signal fires when the client disconnects or the response is complete.
 * Must be called before any long work, or a disconnect is missed.
 */
export function callerOf(request: Request, response: Response): Caller {
  const gone = new AbortController();
  response.on("close", () => gone.abort());
  const requestId = response.get("X-Request-Id");
  return { address: request.socket.remoteAddress ?? "", signal: gone.signal, requestId };
}
