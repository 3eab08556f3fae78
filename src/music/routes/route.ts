/** Context and common handlers of endpoints. */

import type { Request, RequestHandler, Response } from "express";
import type { Config } from "../../config.js";
import type { Fields } from "../../parameters.js";
import type { Authenticator } from "../access/access.js";
import type { Caller } from "../access/concurrency-limit.js";
import type { Parameters as Body, Operation } from "../openapi/document.js";
import { BODY_RULES, type BodyReader, type BodyRule, type RequestBody } from "../request/body.js";
import type { MusicService } from "../service.js";
import type { RandomSamples } from "../words/random-samples.js";

/** Envelope of every successful JSON response; the timestamp is in milliseconds since the epoch. */
export function sendEnvelope(response: Response, data: unknown): void {
  response.json({ data, code: 200, error: null, timestamp: Date.now(), extra: null });
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

/** Tags endpoints with a section of the OpenAPI document. */
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

/** GET endpoint: checks the key and responds in the envelope. */
export function getEndpoint({ run, ...operation }: GetOperation): UntaggedEndpoint {
  return { ...operation, route: getRoute(run) };
}

export function getRoute(run: GetOperation["run"]): Route {
  return (context) => async (request, response) => {
    context.authenticator.authorize(request);
    sendEnvelope(response, await run(context, request));
  };
}

/** Endpoint with a body that responds in the envelope. The work continues if the client disconnects. */
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

/** Like `command`, but aborts when the client disconnects. */
export function abortableCommand({
  run,
  rule,
  ...operation
}: Untagged & {
  rule: BodyRule;
  run(context: RouteContext, body: RequestBody, caller: Caller, request: Request): Promise<unknown>;
}): UntaggedEndpoint {
  const route: Route = (context) => async (request, response) => {
    const caller = callerOf(request, response);
    try {
      const body = await context.bodies.read(request, rule);
      sendEnvelope(response, await run(context, body, caller, request));
    } catch (error) {
      // The client has disconnected.
      if (!caller.signal.aborted) throw error;
    }
  };
  return { ...operation, route };
}

/** The signal fires on disconnect and when the response is complete. Call this function before any long work. */
export function callerOf(request: Request, response: Response): Caller {
  const gone = new AbortController();
  response.on("close", () => gone.abort());
  const requestId = response.get("X-Request-Id");
  return { address: request.socket.remoteAddress ?? "", signal: gone.signal, requestId };
}
