/** What every endpoint is given. */
import type { RequestHandler } from "express";
import type { Config } from "../../config.js";
import type { Authenticator } from "../auth.js";
import type { RandomSamples } from "../random-samples.js";
import type { BodyReader } from "../request/body.js";
import type { MusicService } from "../service.js";

export interface RouteContext {
  config: Config;
  service: MusicService;
  authenticator: Authenticator;
  bodies: BodyReader;
  samples: RandomSamples;
}

/** An endpoint: from what it works with to its handler. */
export type Route = (context: RouteContext) => RequestHandler;
