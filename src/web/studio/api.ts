/** The service's public endpoints, as the page uses them. Of the server it has types alone: what the endpoints answer. */
import type { z } from "zod";
import type { Song, Task, TaskPage } from "../../client/index.js";
import type * as answers from "../../music/openapi/answers.js";

/** What a person has set of the parameters of POST /release_task, by their names; all else is left to the service. */
export type Parameters = Record<string, unknown>;

export type { Song, Task };
export type SongSheet = z.output<typeof answers.songSheet>;
export type ModelInventory = z.output<typeof answers.modelInventory>;
export type AdapterStatus = z.output<typeof answers.adapterStatus>;
export type ModelPull = z.output<typeof answers.modelPull>;
export type TrainingStatus = z.output<typeof answers.trainingStatus>;
export type DataSetSample = z.output<typeof answers.dataSetSample>;

/** What the service refused, in its own words; status 0 where it could not be reached. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

const KEY_ITEM = "carillon-key";

export function storedKey(): string {
  return localStorage.getItem(KEY_ITEM) ?? "";
}

export function storeKey(key: string): void {
  localStorage.setItem(KEY_ITEM, key);
}

/** For what cannot send headers: audio elements, links and event sources. */
export function withKey(url: string): string {
  const key = storedKey();
  return key === "" ? url : `${url}${url.includes("?") ? "&" : "?"}ai_token=${encodeURIComponent(key)}`;
}

/** @returns `data` of the answer, or the whole of one that has no envelope */
export async function call<T>(
  method: string,
  path: string,
  body?: object,
  more: HeadersInit = {},
): Promise<T> {
  const headers = new Headers(more);
  const key = storedKey();
  if (key !== "") headers.set("Authorization", `Bearer ${key}`);
  const isForm = body instanceof FormData;
  if (body !== undefined && !isForm) headers.set("Content-Type", "application/json");
  const init: RequestInit = { method, headers };
  if (body !== undefined) init.body = isForm ? body : JSON.stringify(body);
  const response = await fetch(path, init).catch(() => {
    throw new ApiError(
      0,
      "The server cannot be reached. Your words are kept here; send them once it is back.",
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

// biome-ignore lint/suspicious/noExplicitAny: an answer's shape is what its endpoint promises
function readJson(text: string): any {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** Files go beside the parameters, by the names of their fields. A repeated submission under one name is one task. */
export function submit(
  parameters: Parameters,
  files: Record<string, File>,
  name: string,
): Promise<{ task_id: string }> {
  const headers = { "Idempotency-Key": name };
  if (Object.keys(files).length === 0) return call("POST", "/release_task", parameters, headers);
  const form = new FormData();
  for (const [field, value] of Object.entries(parameters)) {
    if (value === null || value === undefined) continue;
    for (const part of Array.isArray(value) ? value : [value]) form.append(field, String(part));
  }
  for (const [field, file] of Object.entries(files)) form.append(field, file);
  return call("POST", "/release_task", form, headers);
}

/** A name that nobody else gives. `crypto.randomUUID` is not there on pages of other machines without TLS. */
export function newName(): string {
  return Array.from(crypto.getRandomValues(new Uint32Array(4)), (part) => part.toString(36)).join("-");
}

export function listTasks(query: Record<string, string | number>): Promise<TaskPage> {
  const entries = Object.entries(query).map(([name, value]) => [name, String(value)]);
  return call("GET", `/v1/tasks?${new URLSearchParams(entries)}`);
}
