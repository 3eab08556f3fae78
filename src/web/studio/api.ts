/** The service's public endpoints, as the page uses them. */

/** What a person has set of the parameters of POST /release_task, by their names; all else is left to the service. */
export type Parameters = Record<string, unknown>;

export interface Song {
  /** A relative URL. */
  file: string;
  bytes: number;
  seed: number;
  prompt: string;
  lyrics: string;
  caption: string;
  vocal_language: string;
  /** Only a task that is asked for by itself has them, and only where codes had a part. */
  audio_codes?: number[];
  /** Lines `[mm:ss.xx]text`, where the model can tell when they are sung. */
  lrc?: string;
  metas: { bpm?: number | string; duration?: number; keyscale?: string; timesignature?: string };
  generation_info: string;
  dit_model: string;
}

/** A row of GET /v1/tasks. Times are Unix seconds, shares from 0 to 1. */
export interface Task {
  task_id: string;
  task_type: string;
  state: "queued" | "running" | "succeeded" | "failed";
  stage: string;
  progress: number;
  progress_text: string;
  /** What can be heard of the first song while it is made. */
  preview_seconds: number;
  queue_position: number | null;
  create_time: number;
  start_time: number | null;
  title: string;
  favorite: boolean;
  prompt: string;
  lyrics: string;
  parameters: Parameters;
  uploads: string[];
  songs: Song[];
  analysis: Record<string, unknown> | null;
  lm_model: string;
  error: string | null;
  warnings: string[];
}

export interface TaskPage {
  tasks: Task[];
  total: number;
}

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
