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
import type { TaskEvent } from "../music/queue/task-events.js";
import type { TaskRow } from "../music/queue/task-row.js";
import type { generationSchema } from "../music/request/schema.js";
import type { taskMarks } from "../music/request/service-bodies.js";
import type { BodyOf } from "../parameters.js";

export type Task = TaskRow;
export type Song = TaskRow["songs"][number];
export type { TaskEvent };
export type AcceptedTask = z.output<typeof acceptedTask>;
export type RemovedTask = z.output<typeof removedTask>;
export type TaskPage = z.output<typeof taskPage>;
export type TaskMarks = z.input<typeof taskMarks>;

type Parameters = BodyOf<(typeof generationSchema)["shape"]>;

/** What POST /release_task takes; `GET /docs` of a server tells what each means. */
export type SongParameters = Omit<Parameters, "seed" | "audio_code_string" | "timesteps"> & {
  seed?: number | readonly number[];
  audio_code_string?: string | readonly string[] | readonly (readonly number[])[];
  timesteps?: string | readonly number[];
  /** Recordings that the task works on. */
  src_audio?: Blob;
  reference_audio?: Blob;
};

export interface ClientOptions {
  /** Address of the service; in a page, what served it is the default. */
  url?: string;
  /** SVC_API_KEY of the service. */
  key?: string;
  /** Seconds without any sign of life after which events are given up for polling, as behind a proxy that keeps them. */
  silenceSeconds?: number;
  /** Seconds for which a service that cannot be reached is waited for, as while it is started again. */
  patienceSeconds?: number;
}

export interface CallOptions {
  signal?: AbortSignal | undefined;
}

export interface TaskProgress {
  stage: string;
  /** 0 to 1. */
  progress: number;
  /** 1 for the next to start; null once the task has begun. */
  position: number | null;
}

export interface TaskFilter {
  state?: Task["state"];
  favorite?: boolean;
  /** Words that all stand in the title, the prompt or the lyrics. */
  search?: string;
  offset?: number;
  limit?: number;
}

/** The service refused; the message says why. */
export class CarillonError extends Error {
  constructor(
    readonly status: number,
    message: string,
    /** Where the service says when to try again. */
    readonly retryAfterSeconds: number | null,
  ) {
    super(message);
    this.name = "CarillonError";
  }
}

/** The task failed, or was cancelled; the message says why. */
export class TaskFailedError extends Error {
  constructor(readonly task: Task) {
    super(task.error ?? "The task failed");
    this.name = "TaskFailedError";
  }
}

const DEFAULT_URL = "http://127.0.0.1:8001";
const POLL_MS = 1000;

export class Carillon {
  readonly #url: string;
  readonly #headers: Record<string, string>;
  readonly #key: string | undefined;
  readonly #silenceMs: number;
  readonly #patienceMs: number;

  constructor({ url, key, silenceSeconds = 15, patienceSeconds = 60 }: ClientOptions = {}) {
    const own = typeof document === "undefined" ? DEFAULT_URL : location.origin;
    this.#url = (url ?? own).replace(/\/$/, "");
    this.#key = key;
    this.#headers = key === undefined ? {} : { Authorization: `Bearer ${key}` };
    this.#silenceMs = silenceSeconds * 1000;
    this.#patienceMs = patienceSeconds * 1000;
  }

  /**
   * Queues a song.
   * @param idempotencyKey all submissions under it are one task: repeat it where you cannot know whether one arrived
   * @throws CarillonError: 400 names the parameter at fault, 429 where the queue is full
   */
  async submit(
    parameters: SongParameters,
    { signal, idempotencyKey }: CallOptions & { idempotencyKey?: string } = {},
  ): Promise<AcceptedTask> {
    const headers = idempotencyKey === undefined ? {} : { "Idempotency-Key": idempotencyKey };
    const hasFiles = Object.values(parameters).some((value) => value instanceof Blob);
    const body = hasFiles ? formOf(parameters) : parameters;
    return this.#call("POST", "/release_task", { body, headers, signal });
  }

  /**
   * Resolves with the task once it has succeeded. It is followed by its events; where none arrive it is polled. A
   * service that is started again meanwhile goes on with the task.
   * @throws TaskFailedError, CarillonError, the signal's reason, or what `fetch` throws where the service is away for
   * longer than `patienceSeconds`
   */
  async wait(
    id: string,
    { signal, onProgress }: CallOptions & { onProgress?: (progress: TaskProgress) => void } = {},
  ): Promise<Task> {
    let isStreaming = true;
    let lastEventId = "";
    let aliveMs = Date.now();
    for (;;) {
      try {
        for await (const event of isStreaming ? this.events(id, { signal, lastEventId }) : []) {
          lastEventId = event.id;
          aliveMs = Date.now();
          if (event.event === "done" || event.event === "failed") return succeeded(event.data);
          onProgress?.(progressOf(event));
        }
        const task = await this.task(id, { signal });
        aliveMs = Date.now();
        if (task.end_time !== null) return succeeded(task);
        onProgress?.({ stage: task.stage, progress: task.progress, position: task.queue_position });
      } catch (error) {
        signal?.throwIfAborted();
        if (error instanceof TaskFailedError) throw error;
        if (error instanceof CarillonError && error.status < 500) throw error;
        if (error instanceof SilenceError) isStreaming = false;
        else if (Date.now() - aliveMs > this.#patienceMs) throw error;
      }
      await sleep(POLL_MS, signal);
    }
  }

  /** Submits and waits; where the signal fires, the task is cancelled. @throws as both do */
  async make(
    parameters: SongParameters,
    options: CallOptions & { idempotencyKey?: string; onProgress?: (progress: TaskProgress) => void } = {},
  ): Promise<Task> {
    const { task_id: id } = await this.submit(parameters, options);
    try {
      return await this.wait(id, options);
    } catch (error) {
      if (options.signal?.aborted) await this.cancel(id).catch(() => {});
      throw error;
    }
  }

  /**
   * What happens to a task, as it happens, from how it stands now to its end.
   * @param lastEventId goes on behind that event
   */
  async *events(
    id: string,
    { signal, lastEventId = "" }: CallOptions & { lastEventId?: string | undefined } = {},
  ): AsyncGenerator<TaskEvent, void> {
    const silence = new AbortController();
    const signals = signal === undefined ? [silence.signal] : [silence.signal, signal];
    const headers = { ...this.#headers, ...(lastEventId !== "" && { "Last-Event-ID": lastEventId }) };
    let timer: ReturnType<typeof setTimeout> | undefined;
    const listen = () => {
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(new SilenceError()), this.#silenceMs);
    };
    listen();
    try {
      const url = `${this.#url}/v1/tasks/${encodeURIComponent(id)}/events`;
      const response = await fetch(url, { headers, signal: AbortSignal.any(signals) });
      if (!response.ok) throw await errorOf(response);
      const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
      let text = "";
      for (;;) {
        const { value, done } = (await reader?.read()) ?? { done: true };
        if (done) return;
        listen();
        const blocks = (text + value).split("\n\n");
        text = blocks.pop() as string;
        for (const block of blocks) {
          const event = eventOf(block);
          if (event !== null) yield event;
        }
      }
    } catch (error) {
      // Platforms tell an abort by errors of their own.
      silence.signal.throwIfAborted();
      throw error;
    } finally {
      clearTimeout(timer);
      // Where nobody reads on, nothing is sent on.
      silence.abort();
    }
  }

  /** Tasks, the newest first. */
  list(filter: TaskFilter = {}, options: CallOptions = {}): Promise<TaskPage> {
    const query = new URLSearchParams(Object.entries(filter).map(([name, value]) => [name, String(value)]));
    return this.#call("GET", `/v1/tasks?${query}`, options);
  }

  task(id: string, options: CallOptions = {}): Promise<Task> {
    return this.#call("GET", `/v1/tasks/${encodeURIComponent(id)}`, options);
  }

  /** Names a task, or makes it a favourite. */
  mark(id: string, marks: TaskMarks, options: CallOptions = {}): Promise<Task> {
    return this.#call("PATCH", `/v1/tasks/${encodeURIComponent(id)}`, { body: marks, ...options });
  }

  /** Ends a task that waits or runs. @throws CarillonError 404 where it does neither */
  async cancel(id: string, options: CallOptions = {}): Promise<void> {
    await this.#call("POST", "/cancel_task", { body: { task_id: id }, ...options });
  }

  /** Cancels a task that waits or runs; removes a finished one with its songs. */
  delete(id: string, options: CallOptions = {}): Promise<RemovedTask> {
    return this.#call("DELETE", `/v1/tasks/${encodeURIComponent(id)}`, options);
  }

  /** The audio of a song. */
  async download(song: Pick<Song, "file">, { signal }: CallOptions = {}): Promise<Blob> {
    const headers = this.#headers;
    const response = await fetch(this.#url + song.file, { headers, ...(signal && { signal }) });
    if (!response.ok) throw await errorOf(response);
    return response.blob();
  }

  /**
   * The first song of a task while it is decoded: a wav file of unknown length, from when there is sound until the song is
   * whole, the task has failed or is cancelled, at most four minutes of it. Of a task that has succeeded it is its song.
   * @throws CarillonError 404 where there is nothing to hear, 501 of a fleet
   */
  async preview(id: string, { signal }: CallOptions = {}): Promise<ReadableStream<Uint8Array>> {
    const url = `${this.#url}/v1/tasks/${encodeURIComponent(id)}/preview`;
    const response = await fetch(url, { headers: this.#headers, ...(signal && { signal }) });
    if (!response.ok) throw await errorOf(response);
    return response.body as ReadableStream<Uint8Array>;
  }

  /** Where an audio element finds a song; it holds the key. */
  audioUrl(song: Pick<Song, "file">): string {
    return this.#url + song.file + this.#keyIn("&");
  }

  /** As `preview`, for an audio element; it holds the key. */
  previewUrl(id: string): string {
    return `${this.#url}/v1/tasks/${encodeURIComponent(id)}/preview${this.#keyIn("?")}`;
  }

  #keyIn(separator: string): string {
    return this.#key === undefined ? "" : `${separator}ai_token=${encodeURIComponent(this.#key)}`;
  }

  async #call<Data>(
    method: string,
    path: string,
    call: { body?: object; headers?: Record<string, string>; signal?: AbortSignal | undefined },
  ): Promise<Data> {
    const { body, headers = {}, signal } = call;
    const isForm = body instanceof FormData;
    const type = body === undefined || isForm ? {} : { "Content-Type": "application/json" };
    const response = await fetch(this.#url + path, {
      method,
      headers: { ...this.#headers, ...type, ...headers },
      ...(body !== undefined && { body: isForm ? body : JSON.stringify(body) }),
      ...(signal && { signal }),
    });
    if (!response.ok) throw await errorOf(response);
    return ((await response.json()) as { data: Data }).data;
  }
}

/** Nothing came for too long. */
class SilenceError extends Error {}

function succeeded(task: Task): Task {
  if (task.state !== "succeeded") throw new TaskFailedError(task);
  return task;
}

function progressOf(event: Exclude<TaskEvent, { event: "done" | "failed" }>): TaskProgress {
  const { data } = event;
  if ("position" in data) return { stage: "queued", progress: 0, position: data.position };
  return { stage: data.stage, progress: "progress" in data ? data.progress : 0, position: null };
}

/** Null for a block that holds no event, as signs of life do. */
function eventOf(block: string): TaskEvent | null {
  const fields = new Map(block.split("\n").map((line) => line.split(/: (.*)/s) as [string, string]));
  const data = fields.get("data");
  if (data === undefined) return null;
  return { id: fields.get("id"), event: fields.get("event"), data: JSON.parse(data) } as TaskEvent;
}

function formOf(parameters: object): FormData {
  const form = new FormData();
  for (const [name, value] of Object.entries(parameters)) {
    if (value === undefined || value === null) continue;
    // A list of numbers is one value, spelled with commas; of any other list every element is one.
    const isList = Array.isArray(value) && value.some((element) => typeof element !== "number");
    for (const part of isList ? value : [value])
      form.append(name, part instanceof Blob ? part : String(part));
  }
  return form;
}

async function errorOf(response: Response): Promise<CarillonError> {
  const text = await response.text();
  const seconds = Number(response.headers.get("retry-after"));
  return new CarillonError(
    response.status,
    detailOf(text) ?? response.statusText,
    seconds > 0 ? seconds : null,
  );
}

function detailOf(text: string): string | undefined {
  try {
    return (JSON.parse(text) as { detail?: string }).detail;
  } catch {
    // A proxy answers in its own words.
    return undefined;
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
