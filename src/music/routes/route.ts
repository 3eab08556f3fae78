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

/** The wrapper of every successful JSON answer. */
export interface Envelope<T> {
  data: T;
  code: 200;
  error: null;
  /** Milliseconds since the epoch. */
  timestamp: number;
  extra: null;
}

export function envelope<T>(data: T): Envelope<T> {
  return { data, code: 200, error: null, timestamp: Date.now(), extra: null };
}

export function sendEnvelope(response: Response, data: unknown): void {
  response.json(envelope(data));
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

/** Checks the key and answers in the envelope. */
export function reading(operation: Untagged, answer: Parameters<typeof readingRoute>[0]): UntaggedEndpoint {
  return { ...operation, route: readingRoute(answer) };
}

export function readingRoute(answer: (context: RouteContext, request: Request) => unknown): Route {
  return (context) => async (request, response) => {
    context.authenticator.authorize(request);
    sendEnvelope(response, await answer(context, request));
  };
}

/** Reads a body and answers in the envelope; what was asked for goes on where the client hangs up. */
export function command<Wish>(
  operation: Untagged & { body?: Body & ((fields: Fields) => Wish) },
  answer: (context: RouteContext, wish: Wish, request: Request) => unknown,
  rule?: BodyRule,
): UntaggedEndpoint {
  const { body } = operation;
  const route = commandRoute(
    (context, fields, request) => answer(context, body?.(fields) as Wish, request),
    rule,
  );
  return { ...operation, route };
}

export function commandRoute(
  answer: (context: RouteContext, fields: Fields, request: Request) => unknown,
  rule: BodyRule = BODY_RULES.command,
): Route {
  return (context) => async (request, response) => {
    const { fields } = await context.bodies.read(request, rule);
    sendEnvelope(response, await answer(context, fields, request));
  };
}

/** As `command`, for what is of use only to a client that waits: it ends where the client hangs up. */
export function whileHeld(
  operation: Untagged,
  answer: (context: RouteContext, body: RequestBody, caller: Caller, request: Request) => Promise<unknown>,
  rule: BodyRule,
): UntaggedEndpoint {
  const route: Route = (context) => async (request, response) => {
    const caller = callerOf(request, response);
    try {
      const body = await context.bodies.read(request, rule);
      sendEnvelope(response, await answer(context, body, caller, request));
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
