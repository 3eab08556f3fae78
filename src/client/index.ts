/**
 * A client of the music service, for browsers and Node. It needs nothing but `fetch`.
 *
 * ```ts
 * import { Carillon } from "carillon/client";
 *
 * const carillon = new Carillon({ url: "http://127.0.0.1:8001" });
 * const { task_id } = await carillon.submit({ prompt: "slow bossa nova", audio_duration: 20, batch_size: 1 });
 * const task = await carillon.wait(task_id, { onProgress: ({ stage, progress }) => console.log(stage, progress) });
 * const audio = await carillon.download(task.songs[0]);
 * ```
 */
import type { z } from "zod";
import type { acceptedTask, removedTask, taskPage } from "../music/openapi/answers.js";
import type { ChangeEvent, TaskEvent } from "../music/queue/task-events.js";
import type { TaskRow } from "../music/queue/task-row.js";
import type { generationSchema } from "../music/request/schema.js";
import type { taskChanges } from "../music/request/service-bodies.js";
import type { Note } from "../notes.js";
import type { BodyOf } from "../parameters.js";
import { withTimeLimit } from "../system/time-limit.js";

export type Task = TaskRow;
export type Song = TaskRow["songs"][number];
export type { ChangeEvent, Note, TaskEvent };
export type AcceptedTask = z.output<typeof acceptedTask>;
export type RemovedTask = z.output<typeof removedTask>;
export type TaskPage = z.output<typeof taskPage>;
export type TaskChanges = z.input<typeof taskChanges>;

export type RetakeParameters = Pick<
  SongParameters,
  "seed" | "batch_size" | "src_audio" | "reference_audio" | "src_latents" | "ref_latents"
>;

type Parameters = BodyOf<(typeof generationSchema)["shape"]>;

/** Parameters of POST /release_task; `GET /docs` of a server describes them. */
export type SongParameters = Omit<
  Parameters,
  "seed" | "audio_code_string" | "timesteps" | "mp3_bitrate" | "repainting_windows"
> & {
  mp3_bitrate?: string | number;
  /** Start and end in seconds; null: end of the source. */
  repainting_windows?: readonly (readonly [number, number | null])[];
  /** Seeds above 2^53 - 1 must be strings. */
  seed?: number | string | readonly (number | string)[];
  audio_code_string?: string | readonly string[] | readonly (readonly number[])[];
  timesteps?: string | readonly number[];
  src_audio?: Blob;
  reference_audio?: Blob;
  /** Latents of an earlier song, instead of its audio. */
  src_latents?: Blob;
  ref_latents?: Blob;
};

export interface ClientOptions {
  /** Service address; the default in a page is the server that sent it. */
  url?: string;
  /** SVC_API_KEY of the service. */
  key?: string;
  /** If no event or heartbeat arrives for this many seconds, the client polls, because some proxies buffer events. */
  silenceSeconds?: number;
  /** Seconds to wait for the answer to a call; a call with files gets one second more for each 64 KiB. */
  answerSeconds?: number;
  /** Seconds to keep retrying while the service is unreachable, for example during a restart. */
  patienceSeconds?: number;
  /** Sends the requests; default: the global `fetch`. */
  fetch?: (url: string, init: RequestInit) => Promise<Response>;
}

export interface CallOptions {
  signal?: AbortSignal | undefined;
}

export interface MakeOptions extends CallOptions {
  idempotencyKey?: string;
  onProgress?: (progress: TaskProgress) => void;
}

export interface TaskProgress {
  stage: string;
  /** Progress from 0 to 1. */
  progress: number;
  /** Queue position, from 1; null once started. */
  position: number | null;
}

export interface TaskFilter {
  state?: Task["state"];
  favorite?: boolean;
  /** true: only analyses; false: only tasks that make songs. */
  analysis?: boolean;
  /** true: only tasks that expire after an hour; false: only others. */
  temporary?: boolean;
  /** Task id: only this task and its retakes. */
  retakes_of?: string;
  /** Words to find in title, prompt or lyrics; all must match. */
  search?: string;
  /** Only these tasks, comma-separated ids. */
  task_ids?: string;
  /** Order of the tasks; default: newest first. */
  sort?: "newest" | "oldest" | "title";
  offset?: number;
  limit?: number;
}

/** Error response of the service. */
export class CarillonError extends Error {
  constructor(
    readonly status: number,
    message: string,
    /** Seconds of the response's Retry-After header; null without one. */
    readonly retryAfterSeconds: number | null,
    /** The message with a code, if it has one. */
    readonly note?: Note,
    /** False if the response did not come from the service, such as the error page of a proxy. */
    readonly isExplained = true,
  ) {
    super(message);
    this.name = "CarillonError";
  }
}

/** The service did not answer a call in time. */
export class UnansweredError extends Error {}

/** No event or heartbeat arrived within `silenceSeconds`. */
class SilenceError extends Error {}

/** The task failed or was cancelled. */
export class TaskFailedError extends Error {
  constructor(readonly task: Task) {
    super(task.error ?? "The task failed");
    this.name = "TaskFailedError";
  }
}

interface Call extends CallOptions {
  headers?: Record<string, string>;
}

const DEFAULT_URL = "http://127.0.0.1:8001";
const POLL_MS = 1000;
/** Slowest upload that is waited for: 64 KiB a second. */
const UPLOAD_BYTES_PER_MS = 64;

export class Carillon {
  readonly #url: string;
  readonly #headers: Record<string, string>;
  readonly #key: string | undefined;
  readonly #silenceMs: number;
  readonly #answerMs: number;
  readonly #patienceMs: number;
  readonly #send: (url: string, init: RequestInit) => Promise<Response>;

  constructor({
    url,
    key,
    silenceSeconds = 15,
    answerSeconds = 120,
    patienceSeconds = 60,
    fetch: send,
  }: ClientOptions = {}) {
    const own = typeof document === "undefined" ? DEFAULT_URL : location.origin;
    this.#url = (url ?? own).replace(/\/$/, "");
    this.#key = key;
    this.#headers = key === undefined ? {} : { Authorization: `Bearer ${key}` };
    this.#silenceMs = silenceSeconds * 1000;
    this.#answerMs = answerSeconds * 1000;
    this.#patienceMs = patienceSeconds * 1000;
    this.#send = (url, init) => (send ?? fetch)(url, init);
  }

  /**
   * Queues a song.
   * @param idempotencyKey submissions with the same key create one task, so retries are safe
   * @throws CarillonError: 400 names the invalid parameter, 429: queue full
   */
  async submit(
    parameters: SongParameters,
    { signal, idempotencyKey }: CallOptions & { idempotencyKey?: string } = {},
  ): Promise<AcceptedTask> {
    const headers = idempotencyKey === undefined ? {} : { "Idempotency-Key": idempotencyKey };
    return this.call("POST", "/release_task", bodyOf(parameters), { headers, signal });
  }

  /**
   * Waits until the task has succeeded. Listens to events, or polls if none arrive. Survives a restart of the
   * service.
   * @throws TaskFailedError, CarillonError, the signal's reason, the exception of `onProgress`, or the error of `fetch`
   * after `patienceSeconds` without a connection
   */
  async wait(
    id: string,
    { signal, onProgress }: CallOptions & { onProgress?: (progress: TaskProgress) => void } = {},
  ): Promise<Task> {
    let isStreaming = true;
    let lastEventId = "";
    let aliveMs = Date.now();
    let thrown: { error: unknown } | undefined;
    const report = async (progress: TaskProgress) => {
      try {
        await onProgress?.(progress);
      } catch (error) {
        thrown = { error };
        throw error;
      }
    };
    for (;;) {
      try {
        for await (const event of isStreaming ? this.events(id, { signal, lastEventId }) : []) {
          lastEventId = event.id;
          aliveMs = Date.now();
          if (event.event === "done" || event.event === "failed") return succeeded(event.data);
          await report(progressOf(event));
        }
        const limit = this.#limit(this.#silenceMs, signal);
        const task = await withTimeLimit(limit, (signal) => this.task(id, { signal }));
        aliveMs = Date.now();
        if (task.end_time !== null) return succeeded(task);
        await report({ stage: task.stage, progress: task.progress, position: task.queue_position });
      } catch (error) {
        if (thrown !== undefined) throw thrown.error;
        signal?.throwIfAborted();
        if (error instanceof TaskFailedError) throw error;
        if (error instanceof CarillonError && error.status < 500) throw error;
        if (error instanceof SilenceError) isStreaming = false;
        else if (Date.now() - aliveMs > this.#patienceMs) throw error;
      }
      await sleep(POLL_MS, signal);
    }
  }

  /** Submits and waits; an abort cancels the task. @throws as `submit` and `wait` */
  async make(parameters: SongParameters, options: MakeOptions = {}): Promise<Task> {
    const { task_id: id } = await this.submit(parameters, options);
    try {
      return await this.wait(id, options);
    } catch (error) {
      if (options.signal?.aborted) {
        const limit = this.#limit(this.#silenceMs, undefined);
        await withTimeLimit(limit, (signal) => this.cancel(id, { signal })).catch(() => {});
      }
      throw error;
    }
  }

  /**
   * Encodes a recording with the VAE of a model, without rendering.
   * @param parameters such as `model`
   * @returns latents in a safetensors file, which `src_latents`, `ref_latents` and `decode` accept
   * @throws as `make`
   */
  async encode(recording: Blob, parameters: SongParameters = {}, options: MakeOptions = {}): Promise<Blob> {
    const task = await this.make({ ...parameters, encode_only: true, src_audio: recording }, options);
    return this.download({ file: task.analysis?.latents as string }, options);
  }

  /**
   * Decodes latents with the VAE of a model, without rendering.
   * @param parameters such as `audio_format` and `model`
   * @throws as `make`
   */
  async decode(latents: Blob, parameters: SongParameters = {}, options: MakeOptions = {}): Promise<Blob> {
    const task = await this.make({ ...parameters, decode_only: true, src_latents: latents }, options);
    return this.download(task.songs[0] as Song, options);
  }

  /**
   * Streams the events of a task, from its current state to its end.
   * @param lastEventId resumes after this event
   */
  async *events(
    id: string,
    { signal, lastEventId = "" }: CallOptions & { lastEventId?: string | undefined } = {},
  ): AsyncGenerator<TaskEvent, void> {
    const headers: Record<string, string> = lastEventId === "" ? {} : { "Last-Event-ID": lastEventId };
    yield* this.#stream<TaskEvent>(`/v1/tasks/${encodeURIComponent(id)}/events`, headers, signal);
  }

  /**
   * Streams the changes of all tasks. Missed changes are not repeated: read the lists again after `ready`.
   * @throws after `silenceSeconds` without an event or heartbeat, and the errors of `fetch`
   */
  async *changes({ signal }: CallOptions = {}): AsyncGenerator<ChangeEvent, void> {
    yield* this.#stream<ChangeEvent>("/v1/events", {}, signal);
  }

  async *#stream<Event>(
    path: string,
    headers: Record<string, string>,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<Event, void> {
    const closing = new AbortController();
    const limit = { ms: this.#silenceMs, signal, error: () => new SilenceError() };
    try {
      const response = await withTimeLimit(limit, () =>
        this.#fetch(path, { headers, signal: closing.signal }),
      );
      const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
      let text = "";
      for (;;) {
        const { value, done } = (await withTimeLimit(limit, async () => reader?.read())) ?? { done: true };
        if (done) return;
        const blocks = (text + value).split("\n\n");
        text = blocks.pop() as string;
        for (const block of blocks) {
          const event = eventOf(block);
          if (event !== null) yield event as Event;
        }
      }
    } finally {
      // Closes the stream also if the caller stops reading.
      closing.abort();
    }
  }

  /** Lists tasks, newest first. */
  list(filter: TaskFilter = {}, options: CallOptions = {}): Promise<TaskPage> {
    const query = new URLSearchParams(Object.entries(filter).map(([name, value]) => [name, String(value)]));
    return this.call("GET", `/v1/tasks?${query}`, undefined, options);
  }

  task(id: string, options: CallOptions = {}): Promise<Task> {
    return this.call("GET", `/v1/tasks/${encodeURIComponent(id)}`, undefined, options);
  }

  /**
   * Makes the song of a task again with new seeds, in a new task. `retake_of` of the new task is the id of
   * the original task, even for a retake of a retake.
   * @throws CarillonError 409 if the task used uploads, which must be sent again
   */
  retake(id: string, parameters: RetakeParameters = {}, options: CallOptions = {}): Promise<AcceptedTask> {
    return this.call("POST", `/v1/tasks/${encodeURIComponent(id)}/retake`, bodyOf(parameters), options);
  }

  /** Renames a task, marks it as favourite, or keeps a temporary one. */
  mark(id: string, changes: TaskChanges, options: CallOptions = {}): Promise<Task> {
    return this.call("PATCH", `/v1/tasks/${encodeURIComponent(id)}`, changes, options);
  }

  /** Cancels a waiting or running task. @throws CarillonError 404 if no waiting or running task has this id */
  async cancel(id: string, options: CallOptions = {}): Promise<void> {
    await this.call("POST", "/cancel_task", { task_id: id }, options);
  }

  /**
   * Removes a task if it is in the given state. Removing a succeeded task deletes its songs; removing a
   * queued or running task cancels it.
   * @throws CarillonError 409 in another state
   */
  delete(id: string, state: Task["state"], options: CallOptions = {}): Promise<RemovedTask> {
    return this.call("DELETE", `/v1/tasks/${encodeURIComponent(id)}?state=${state}`, undefined, options);
  }

  async download(song: Pick<Song, "file">, { signal: caller }: CallOptions = {}): Promise<Blob> {
    return withTimeLimit(this.#limit(this.#answerMs, caller), async (signal, restart) => {
      const { body, headers } = await this.#fetch(song.file, { signal });
      const restarting = new TransformStream<Uint8Array, Uint8Array>({
        transform: (piece, controller) => {
          restart();
          controller.enqueue(piece);
        },
      });
      return new Response(body?.pipeThrough(restarting), { headers }).blob();
    });
  }

  /**
   * Streams the first song of a task while it is decoded: a wav file of unknown length, at most four minutes.
   * Returns the song if the task is finished. Waits for the first audio without a time limit, as the task may be queued.
   * @throws CarillonError 404 if there is no audio yet, 501 in a fleet
   */
  async preview(id: string, { signal }: CallOptions = {}): Promise<ReadableStream<Uint8Array>> {
    const path = `/v1/tasks/${encodeURIComponent(id)}/preview`;
    return (await this.#fetch(path, { signal })).body as ReadableStream<Uint8Array>;
  }

  /** URL of a song for an audio element. It contains the API key. */
  audioUrl(song: Pick<Song, "file">): string {
    return this.#url + song.file + this.#keyIn("&");
  }

  /** URL of `preview` for an audio element. It contains the API key. */
  previewUrl(id: string): string {
    return `${this.#url}/v1/tasks/${encodeURIComponent(id)}/preview${this.#keyIn("?")}`;
  }

  #keyIn(separator: string): string {
    return this.#key === undefined ? "" : `${separator}ai_token=${encodeURIComponent(this.#key)}`;
  }

  /**
   * Calls any endpoint, also those without a method here; `GET /docs` of a server lists them.
   * @param body JSON, or a form or file
   * @returns `data` of the response's envelope, or the whole response if it has none
   * @throws CarillonError for an error response
   */
  async call<Data>(
    method: string,
    path: string,
    body?: object,
    { headers = {}, signal: caller }: Call = {},
  ): Promise<Data> {
    const isJson = body !== undefined && !(body instanceof FormData || body instanceof Blob);
    const limit = this.#limit(this.#answerMs + bytesOf(body) / UPLOAD_BYTES_PER_MS, caller);
    return withTimeLimit(limit, async (signal) => {
      const response = await this.#fetch(path, {
        method,
        headers: { ...(isJson && { "Content-Type": "application/json" }), ...headers },
        ...(body !== undefined && { body: isJson ? JSON.stringify(body) : (body as BodyInit) }),
        signal,
      });
      const answer = await answerOf(response);
      return "data" in answer ? answer.data : answer;
    });
  }

  /** @throws CarillonError for an error response */
  async #fetch(
    path: string,
    { signal, headers, ...init }: Call & Omit<RequestInit, keyof Call>,
  ): Promise<Response> {
    const options = { ...init, headers: { ...this.#headers, ...headers }, ...(signal && { signal }) };
    const response = await this.#send(this.#url + path, options);
    if (!response.ok) throw await errorOf(response);
    return response;
  }

  #limit(ms: number, signal: AbortSignal | undefined) {
    const error = () =>
      new UnansweredError(`${this.#url} did not answer within ${Number((ms / 1000).toFixed(1))} seconds`);
    return { ms, signal, error };
  }
}

function succeeded(task: Task): Task {
  if (task.state !== "succeeded") throw new TaskFailedError(task);
  return task;
}

function progressOf(event: Exclude<TaskEvent, { event: "done" | "failed" }>): TaskProgress {
  const { data } = event;
  if ("position" in data) return { stage: "queued", progress: 0, position: data.position };
  return { stage: data.stage, progress: "progress" in data ? data.progress : 0, position: null };
}

/** Parses a block of an event stream; null for blocks without data, such as heartbeats. */
function eventOf(block: string): object | null {
  const fields = new Map(block.split("\n").map((line) => line.split(/: (.*)/s) as [string, string]));
  const data = fields.get("data");
  if (data === undefined) return null;
  return { id: fields.get("id"), event: fields.get("event"), data: JSON.parse(data) };
}

/** Multipart form if there are files, else JSON. */
function bodyOf(parameters: object): object {
  if (!Object.values(parameters).some((value) => value instanceof Blob)) return parameters;
  const form = new FormData();
  for (const [name, value] of Object.entries(parameters)) {
    if (value === undefined || value === null) continue;
    for (const part of fieldsOf(value)) form.append(name, part);
  }
  return form;
}

/** Size of the files in a body. */
function bytesOf(body: unknown): number {
  if (body instanceof Blob) return body.size;
  return body instanceof FormData ? [...body.values()].reduce((sum, part) => sum + bytesOf(part), 0) : 0;
}

/** A list of objects becomes JSON, a list of numbers one comma-separated field, any other list repeated fields. */
function fieldsOf(value: unknown): (string | Blob)[] {
  if (value instanceof Blob) return [value];
  if (!Array.isArray(value)) return [String(value)];
  const hasObjects = value.some((element) => element instanceof Object && !Array.isArray(element));
  if (hasObjects) return [JSON.stringify(value)];
  return value.every((element) => typeof element === "number") ? [value.join()] : value.map(String);
}

async function errorOf(response: Response): Promise<CarillonError> {
  const { detail, note } = errorBodyOf(await response.text());
  const seconds = Number(response.headers.get("retry-after"));
  return new CarillonError(
    response.status,
    detail ?? `${response.status} ${response.statusText}`,
    seconds > 0 ? seconds : null,
    note,
    detail !== undefined,
  );
}

/** @throws CarillonError if the response is not JSON, such as the login page of a proxy */
async function answerOf(response: Response) {
  const { status } = response;
  return response.json().catch((error: Error) => {
    if (error.name === "AbortError") throw error;
    throw new CarillonError(status, `${status}: the response is not JSON`, null, undefined, false);
  });
}

function errorBodyOf(text: string): { detail?: string; note?: Note } {
  try {
    return JSON.parse(text);
  } catch {
    // The body is not JSON, for example the error page of a proxy.
    return {};
  }
}

function sleep(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, milliseconds);
    signal?.addEventListener("abort", stop, { once: true });
  });
}
