/** The client of the service, and types of its responses. It imports only types from the server. */
import type { z } from "zod";
import {
  type AcceptedTask,
  Carillon,
  type Song,
  type SongParameters,
  type Task,
} from "../../client/index.js";
import type * as answers from "../../music/openapi/answers.js";
import type { RetentionForecast } from "../../music/queue/retention.js";
import { forgetText, keepText, readText } from "./kept.js";
import { t } from "./language.js";

/** Parameters of POST /release_task that the user has set; the service fills in the rest. */
export type Parameters = Record<string, unknown>;

export type { Song, Task };
export type Retention = RetentionForecast;
export type SongSheet = z.output<typeof answers.songSheet>;
export type ModelInventory = z.output<typeof answers.modelInventory>;
export type AvailableAdapters = z.output<typeof answers.availableAdapters>;
export type AdapterStatus = z.output<typeof answers.adapterStatus>;
export type ModelPull = z.output<typeof answers.modelPullStatus>;
export type TrainingStatus = z.output<typeof answers.trainingStatus>;
export type DataSetSample = z.output<typeof answers.dataSetSample>;

export class UnreachableError extends Error {
  constructor() {
    super(t("The server cannot be reached."));
  }
}

/** Words the error of a server that cannot be reached. Other errors are in the words of the server. */
export function send(url: string, init: RequestInit): Promise<Response> {
  return fetch(url, init).catch(() => {
    throw new UnreachableError();
  });
}

export const carillon = new Carillon({ answerSeconds: 60, fetch: send });

/** For calls that answer when their work is done: loading a model, writing a text, preparing a data set. */
export const patient = new Carillon({ answerSeconds: 86_400, fetch: send });

/** Set while this browser has a session. The page cannot read the cookie itself. */
const SESSION_ITEM = "carillon-session";

export function hasSession(): boolean {
  return readText(SESSION_ITEM) !== null;
}

/** Exchanges the key for a cookie, so that no link carries the key. @throws CarillonError 401 for a wrong key */
export async function unlock(key: string): Promise<void> {
  await carillon.call("POST", "/v1/session", {}, { headers: { Authorization: `Bearer ${key}` } });
  keepText(SESSION_ITEM, "active");
}

export async function forgetKey(): Promise<void> {
  await carillon.call("DELETE", "/v1/session");
  forgetText(SESSION_ITEM);
}

/** A new key: submissions with the same key create one task, as browsers may repeat requests. */
export function idempotencyKey(): string {
  // `crypto.randomUUID` is missing on pages without TLS.
  const random = crypto.getRandomValues(new Uint32Array(4));
  return Array.from(random, (part) => part.toString(36)).join("-");
}

/** Queues a song. */
export function submit(parameters: Parameters, files: Record<string, File> = {}): Promise<AcceptedTask> {
  const all = { ...parameters, ...files } as SongParameters;
  return carillon.submit(all, { idempotencyKey: idempotencyKey() });
}
