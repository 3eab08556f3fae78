/** What endpoints are given, and the ways in which most of them answer. */
import type { Request, RequestHandler, Response } from "express";
import type { Config } from "../../config.js";
import type { Authenticator } from "../access.js";
import type { Caller } from "../concurrency-limit.js";
import type { Parameters as Body, Operation } from "../openapi/document.js";
import { BODY_RULES, type BodyReader, type BodyRule, type RequestBody } from "../request/body.js";
import type { Fields } from "../request/json.js";
import type { MusicService } from "../service.js";
import type { RandomSamples } from "../words/random-samples.js";

/** The wrapper of every successful JSON answer; its time is in milliseconds since the epoch. */
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

/** From what an endpoint works with to its handler. */
export type Route = (context: RouteContext) => RequestHandler;

/** An endpoint, and what the interface's description says of it. */
export interface Endpoint extends Operation {
  route: Route;
}

/** By method and path. */
export type Endpoints = Readonly<
  Record<`${"GET" | "POST" | "PUT" | "PATCH" | "DELETE"} /${string}`, Endpoint>
>;

type Untagged = Omit<Operation, "tag">;
type UntaggedEndpoint = Omit<Endpoint, "tag">;

/** Endpoints of one section of the description. */
export function section<Name extends keyof Endpoints>(
  tag: Operation["tag"],
  endpoints: Readonly<Record<Name, UntaggedEndpoint>>,
): Readonly<Record<Name, Endpoint>> {
  const entries = Object.entries<UntaggedEndpoint>(endpoints);
  return Object.fromEntries(entries.map(([name, endpoint]) => [name, { tag, ...endpoint }])) as never;
}

interface Reading extends Untagged {
  run(context: RouteContext, request: Request): unknown;
}

/** Checks the key and answers in the envelope. */
export function reading({ run, ...operation }: Reading): UntaggedEndpoint {
  return { ...operation, route: readingRoute(run) };
}

export function readingRoute(run: Reading["run"]): Route {
  return (context) => async (request, response) => {
    context.authenticator.authorize(request);
    sendEnvelope(response, await run(context, request));
  };
}

/** Reads a body and answers in the envelope; what was asked for goes on where the client hangs up. */
export function command<Wish>({
  run,
  rule,
  ...operation
}: Untagged & {
  body?: Body & ((fields: Fields) => Wish);
  rule?: BodyRule;
  run(context: RouteContext, wish: Wish, request: Request): unknown;
}): UntaggedEndpoint {
  const { body } = operation;
  const route = commandRoute(
    (context, fields, request) => run(context, body?.(fields) as Wish, request),
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

/** As `command`, for what is of use only to a client that waits: it ends where the client hangs up. */
export function whileHeld({
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
      // Nobody is there to be told of it.
      if (!caller.signal.aborted) throw error;
    }
  };
  return { ...operation, route };
}

/**
 * Whoever sent the request; the signal fires once it has hung up, and when all of the answer is sent. Ask for it before
 * anything takes long. Behind a proxy all clients have one address.
 */
export function callerOf(request: Request, response: Response): Caller {
  const gone = new AbortController();
  response.on("close", () => gone.abort());
  const requestId = response.get("X-Request-Id");
  return { address: request.socket.remoteAddress ?? "", signal: gone.signal, requestId };
}
