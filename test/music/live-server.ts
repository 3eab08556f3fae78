/** Starts a real server with the real engine and the built-in model, and provides a client for tests. */
import { setTimeout as sleep } from "node:timers/promises";
import { loadConfig } from "../../src/config.js";
import { createEngine, createMusicServer, type MusicServer } from "../../src/index.js";
import type { SongMetas } from "../../src/music/queue/store.js";
import type { TaskEvent } from "../../src/music/queue/task-events.js";
import type { ResultRecord, TaskStatusItem } from "../../src/music/queue/task-status.js";
import { createLogger } from "../../src/system/log.js";
import { freePort } from "../local-server.js";
import { checkAnswer, checkComponent } from "./openapi-check.js";
import { temporaryDirectory } from "./tasks.js";

const POLL_INTERVAL_MS = 20;

/** The shortest song without codes and source. The format is WAV, because MP3 encoding takes longer than rendering. */
export const shortSong = {
  prompt: "a short song",
  audio_duration: 10,
  inference_steps: 1,
  batch_size: 1,
  audio_format: "wav" as const,
};
const { audio_duration: _, ...anyLength } = shortSong;
/** A song of a second, which the server makes fastest. Its codes set its length and replace source and plan. */
export const oneSecondSong = {
  ...anyLength,
  audio_code_string: [1, 2, 3, 4, 5].map((code) => `<|audio_code_${code}|>`).join(""),
  use_audio_codes: true,
};
/** A song that a test can cancel: rendering takes long, but each step is short, so a cancellation acts soon. */
export const longSong = { prompt: "a long song", audio_duration: 120, inference_steps: 20, batch_size: 8 };

export interface Answer {
  status: number;
  headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: tests read whatever the server answers
  body: any;
}

type FormPart = string | number | boolean | File;
export type FormFields = Record<string, FormPart | FormPart[]>;

export interface FinishedTask {
  item: TaskStatusItem;
  records: ResultRecord[];
}

/** Record of a finished song. */
export type SongRecord = ResultRecord & { metas: SongMetas };

/** Client of the HTTP API. */
export class Client {
  constructor(public url: string) {}

  async get(path: string, headers: Record<string, string> = {}): Promise<Answer> {
    return readAnswer("GET", await fetch(this.url + path, { headers }));
  }

  async delete(path: string, headers: Record<string, string> = {}): Promise<Answer> {
    return readAnswer("DELETE", await fetch(this.url + path, { method: "DELETE", headers }));
  }

  /** Streams the events of a task until the server ends the stream. */
  async *events(id: string, headers: Record<string, string> = {}): AsyncGenerator<TaskEvent> {
    const response = await fetch(`${this.url}/v1/tasks/${id}/events`, { headers });
    if (response.status !== 200) throw new Error(`the event stream answered ${response.status}`);
    let text = "";
    for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      const blocks = (text + chunk).split("\n\n");
      text = blocks.pop() as string;
      for (const block of blocks) {
        const fields = Object.fromEntries(block.split("\n").map((line) => line.split(/: (.*)/s)));
        if (!("event" in fields)) continue;
        const event = { ...fields, data: JSON.parse(fields.data) } as TaskEvent;
        if (event.event === "done" || event.event === "failed") checkComponent("Task", event.data);
        yield event;
      }
    }
  }

  post(path: string, body: unknown, headers: Record<string, string> = {}): Promise<Answer> {
    return this.#send("POST", path, body, headers);
  }

  patch(path: string, body: unknown, headers: Record<string, string> = {}): Promise<Answer> {
    return this.#send("PATCH", path, body, headers);
  }

  async #send(method: string, path: string, body: unknown, headers: Record<string, string>): Promise<Answer> {
    return readAnswer(
      method,
      await fetch(this.url + path, {
        method,
        headers: { "Content-Type": "application/json", ...headers },
        body: JSON.stringify(body),
      }),
    );
  }

  /** Sends a multipart form. Each element of a list becomes a field of the list's name. */
  async postForm(path: string, fields: FormFields, headers: Record<string, string> = {}): Promise<Answer> {
    const form = new FormData();
    for (const [name, value] of Object.entries(fields)) {
      for (const part of Array.isArray(value) ? value : [value]) {
        form.append(name, part instanceof File ? part : String(part));
      }
    }
    return readAnswer("POST", await fetch(this.url + path, { method: "POST", headers, body: form }));
  }

  /** Submits a task and returns its id. Uses a multipart form if a parameter is a file, else JSON. */
  async submit(parameters: object): Promise<string> {
    const hasFiles = Object.values(parameters).some((value) => value instanceof File);
    const { status, body } = hasFiles
      ? await this.postForm("/release_task", parameters as FormFields)
      : await this.post("/release_task", parameters);
    if (status !== 200) throw new Error(`refused with ${status}: ${body.detail}`);
    return body.data.task_id;
  }

  async query(id: string): Promise<FinishedTask> {
    const { body } = await this.post("/query_result", { task_id_list: [id] });
    const item = body.data[0] as TaskStatusItem;
    const records = JSON.parse(item.result);
    for (const record of records) checkComponent("ResultRecord", record);
    return { item, records };
  }

  /** Follows the event stream until the task ends. Polling would take too much processor time. */
  async finished(id: string, onEvent: (event: TaskEvent) => void = () => {}): Promise<FinishedTask> {
    for await (const event of this.events(id)) onEvent(event);
    return this.query(id);
  }

  /** Polls until the task is no longer waiting. */
  async untilStarted(id: string): Promise<void> {
    while ((await this.query(id)).records[0]?.stage === "queued") await sleep(POLL_INTERVAL_MS);
  }

  /** Submits a task and returns the records of its songs. @throws Error if the task fails */
  async make(parameters: object): Promise<SongRecord[]> {
    const { item, records } = await this.finished(await this.submit(parameters));
    if (item.status !== 1) throw new Error(`the task failed: ${item.error}`);
    return records as SongRecord[];
  }

  /** Like `make`, for a single song. */
  async makeOne(parameters: object): Promise<SongRecord> {
    const [song, ...others] = await this.make({ ...parameters, batch_size: 1 });
    if (song === undefined || others.length > 0) throw new Error(`${others.length + 1} songs instead of one`);
    return song;
  }

  async download(record: { file: string }): Promise<Buffer> {
    const response = await fetch(this.url + record.file);
    if (response.status !== 200) throw new Error(`the download answered ${response.status}`);
    return Buffer.from(await response.arrayBuffer());
  }
}

/** Reads a response. Checks JSON against the OpenAPI document. */
async function readAnswer(method: string, response: Response): Promise<Answer> {
  const { status, headers, url } = response;
  const text = await response.text();
  if (!headers.get("content-type")?.includes("json")) return { status, headers, body: text };
  const body = JSON.parse(text);
  checkAnswer(method, url, status, body);
  return { status, headers, body };
}

export interface LiveServer extends MusicServer {
  client: Client;
}

/**
 * Starts a server before the tests of the enclosing suite, and closes it afterwards. The returned object has only
 * `client` at first; its other properties are set when the server starts.
 */
export function serverForAll(settings: Record<string, string> = {}, directory?: string): LiveServer {
  const client = new Client("");
  const server = { client } as LiveServer;
  before(async () => {
    Object.assign(server, await startLiveServer(directory ?? temporaryDirectory(), settings), { client });
    client.url = server.url;
  });
  after(() => server.close?.());
  return server;
}

/**
 * Starts a server that keeps its files in `directory`.
 * @param settings environment variables
 * @param log receives the messages of the engine
 */
export async function startLiveServer(
  directory: string,
  settings: Record<string, string> = {},
  log: (message: string) => void = () => {},
): Promise<LiveServer> {
  const own = { SVC_API_PORT: String(await freePort()), SVC_TMPDIR: directory, SVC_DEVICE: "cpu" };
  const config = loadConfig({ ...own, ...settings });
  const engine = createEngine(config, log);
  const server = await createMusicServer({ config, engine, log: createLogger("silent") });
  return {
    ...server,
    client: new Client(server.url),
    close: async () => {
      await server.close();
      await engine.close();
    },
  };
}
