/** Client of the service's public endpoints. It imports only types from the server. */
import type { z } from "zod";
import type { Song, Task, TaskPage } from "../../client/index.js";
import type * as answers from "../../music/openapi/answers.js";
import type { RetentionForecast } from "../../music/queue/retention.js";
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

/** An error of the service; status 0 if it could not be reached. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

/** Set while this browser has a session. The page cannot read the cookie itself. */
const SESSION_ITEM = "carillon-session";

export function hasSession(): boolean {
  return localStorage.getItem(SESSION_ITEM) !== null;
}

/** Exchanges the key for a cookie, so that no link carries the key. @throws ApiError 401 for a wrong key */
export async function unlock(key: string): Promise<void> {
  await callApi("POST", "/v1/session", {}, { Authorization: `Bearer ${key}` });
  localStorage.setItem(SESSION_ITEM, "active");
}

export async function forgetKey(): Promise<void> {
  await callApi("DELETE", "/v1/session");
  localStorage.removeItem(SESSION_ITEM);
}

/** Sends a request. @returns `data` of the response's envelope, or the whole response if it has no envelope */
export async function callApi<T>(
  method: string,
  path: string,
  body?: object,
  more: HeadersInit = {},
): Promise<T> {
  const headers = new Headers(more);
  // Form data and files are sent unchanged.
  const isJson = body !== undefined && !(body instanceof FormData || body instanceof Blob);
  if (isJson) headers.set("Content-Type", "application/json");
  const init: RequestInit = { method, headers };
  if (body !== undefined) init.body = isJson ? JSON.stringify(body) : (body as BodyInit);
  const response = await fetch(path, init).catch(() => {
    throw new ApiError(
      0,
      t("The server cannot be reached. Your words are kept here; send them once it is back."),
    );
  });
  const text = await response.text();
  const answer = readJson(text);
  if (!response.ok) {
    throw new ApiError(
      response.status,
      String(answer?.detail ?? answer?.error ?? `${response.status} ${text}`),
    );
  }
  return (answer?.data ?? answer) as T;
}

// biome-ignore lint/suspicious/noExplicitAny: each endpoint has its own response type
function readJson(text: string): any {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** Sends files as multipart fields. Submissions with the same idempotency key create one task. */
export function submit(
  parameters: Parameters,
  files: Record<string, File>,
  idempotencyKey: string,
): Promise<{ task_id: string }> {
  const headers = { "Idempotency-Key": idempotencyKey };
  if (Object.keys(files).length === 0) return callApi("POST", "/release_task", parameters, headers);
  const form = new FormData();
  for (const [field, value] of Object.entries(parameters)) {
    if (value === null || value === undefined) continue;
    for (const part of Array.isArray(value) ? value : [value]) form.append(field, String(part));
  }
  for (const [field, file] of Object.entries(files)) form.append(field, file);
  return callApi("POST", "/release_task", form, headers);
}

/** `crypto.randomUUID` is missing on pages without TLS. */
export function newIdempotencyKey(): string {
  return Array.from(crypto.getRandomValues(new Uint32Array(4)), (part) => part.toString(36)).join("-");
}

export function listTasks(query: Record<string, string | number>): Promise<TaskPage> {
  const entries = Object.entries(query).map(([name, value]) => [name, String(value)]);
  return callApi("GET", `/v1/tasks?${new URLSearchParams(entries)}`);
}
