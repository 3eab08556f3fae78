/** GET /v1/events, conditional lists and compression, which keep an idle page quiet. */
import { once } from "node:events";
import { get, type IncomingMessage } from "node:http";
import { expect } from "chai";
import { loadConfig } from "../../../src/config.js";
import { createMusicServer } from "../../../src/index.js";
import { createLogger } from "../../../src/system/log.js";
import { Client, type LiveServer, shortSong } from "../live-server.js";
import { stubEngine } from "../stub-engine.js";
import { temporaryDirectory } from "../tasks.js";

interface ChangeEvent {
  name: string;
  data: { task_id?: string; state?: string; title?: string; progress?: number };
}

describe("changes of all tasks", () => {
  const directory = temporaryDirectory();
  let server: LiveServer;
  let client: Client;

  before(async () => {
    const config = loadConfig({ SVC_API_PORT: "0", SVC_TMPDIR: directory });
    const music = await createMusicServer({
      config,
      engine: stubEngine(() => 300),
      log: createLogger("silent"),
    });
    client = new Client(music.url);
    server = { ...music, client };
  });
  after(() => server.close());

  async function send(path: string, headers: Record<string, string> = {}): Promise<IncomingMessage> {
    const [response] = (await once(get(server.url + path, { headers }), "response")) as [IncomingMessage];
    return response;
  }

  /** Opens the stream. @returns a function that waits for an event, and one that closes the stream */
  async function follow() {
    const response = await send("/v1/events", { "Accept-Encoding": "gzip, br" });
    expect(response.headers).to.include({ "content-type": "text/event-stream" });
    expect(response.headers).not.to.have.property("content-encoding");
    response.setEncoding("utf8");
    const events: ChangeEvent[] = [];
    let text = "";
    let wake = () => {};
    response.on("data", (piece: string) => {
      const blocks = (text + piece).split("\n\n");
      text = blocks.pop() as string;
      for (const block of blocks) {
        const [, name, data] = /event: (\w+)\ndata: (.*)/.exec(block) ?? [];
        if (name !== undefined) events.push({ name, data: JSON.parse(String(data)) });
      }
      wake();
    });
    const until = async (isWanted: (event: ChangeEvent) => boolean): Promise<ChangeEvent> => {
      for (;;) {
        const found = events.find(isWanted);
        if (found !== undefined) return found;
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    };
    return { until, close: () => response.destroy() };
  }

  it("streams a song's way, its new title and its deletion to a client that follows no task", async () => {
    const { until, close } = await follow();
    await until(({ name }) => name === "ready");
    const id = await client.submit({ ...shortSong, prompt: "a reel" });
    const of = (event: ChangeEvent) => event.data.task_id === id;
    await until((event) => of(event) && (event.data.state === "running" || event.name === "progress"));
    await until((event) => of(event) && event.name === "task" && event.data.state === "succeeded");
    await fetch(`${server.url}/v1/tasks/${id}`, {
      method: "PATCH",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ title: "Evening" }),
    });
    await until((event) => of(event) && event.data.title === "Evening");
    await client.delete(`/v1/tasks/${id}?state=succeeded`);
    await until((event) => of(event) && event.name === "removed");
    close();
  });

  it("answers 304 to a list that has not changed, and the list once it has", async () => {
    const path = "/v1/tasks?state=succeeded";
    const first = await send(path);
    first.resume();
    const etag = String(first.headers.etag);
    const same = await send(path, { "If-None-Match": etag });
    expect(same.statusCode).to.equal(304);
    await client.finished(await client.submit(shortSong));
    const changed = await send(path, { "If-None-Match": etag });
    changed.resume();
    expect(changed.statusCode).to.equal(200);
  });

  it("compresses lists and pages, and leaves audio as it is", async () => {
    const { file } = (await client.get("/v1/tasks?state=succeeded")).body.data.tasks[0].songs[0];
    const encoding = async (path: string) => {
      const response = await send(path, { "Accept-Encoding": "gzip, br" });
      response.resume();
      return response.headers["content-encoding"];
    };
    expect(await encoding("/v1/tasks")).to.equal("br");
    expect(await encoding("/studio/main.js")).to.equal("br");
    expect(await encoding(file)).to.equal(undefined);
  });

  it("lists songs without analyses, and analyses without songs", async () => {
    const id = await client.submit({ prompt: "a reel", analysis_only: true });
    while ((await client.get(`/v1/tasks/${id}`)).body.data.end_time === null) await fetch(server.url);
    const ids = async (query: string) =>
      (await client.get(`/v1/tasks?${query}`)).body.data.tasks.map(
        ({ task_id }: { task_id: string }) => task_id,
      );
    expect(await ids("analysis=false")).to.not.include(id);
    expect(await ids("analysis=true")).to.deep.equal([id]);
  });
});
