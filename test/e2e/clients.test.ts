import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import type { TaskStatusItem } from "../../src/music/queue/task-status.js";
import { Client, type LiveServer, type SongRecord, serverForAll } from "../music/live-server.js";
import { KEYED_SERVER_CLIENTS, OPEN_SERVER_CLIENTS, type PublicClient } from "./public-clients.js";

const POLL_INTERVAL_MS = 50;

function bodyOf({ encoding, song }: PublicClient): { body: string | FormData; type: Record<string, string> } {
  if (encoding === "json")
    return { body: JSON.stringify(song), type: { "Content-Type": "application/json" } };
  const body = new FormData();
  for (const [name, value] of Object.entries(song)) {
    if (value instanceof Blob) body.append(name, value, value.size > 0 ? "silence.wav" : "");
    else body.append(name, String(value));
  }
  return { body, type: {} };
}

/** Makes a song in the same steps as every client: submits a task, polls until the task ends, and downloads. */
async function makeSong(url: string, client: PublicClient): Promise<[SongRecord[], TaskStatusItem]> {
  const { headers } = client;
  const { body, type } = bodyOf(client);
  const submitted = await fetch(`${url}/release_task`, {
    method: "POST",
    headers: { ...headers, ...type },
    body,
  });
  // biome-ignore lint/suspicious/noExplicitAny: the clients read the response without types
  const answer = (await submitted.json()) as any;
  expect(answer, JSON.stringify(answer)).to.include({ code: 200, error: null });
  const id: string = answer.data.task_id;
  for (;;) {
    const polled = await fetch(`${url}/query_result`, {
      method: "POST",
      headers: { ...headers, "Content-Type": "application/json" },
      body: JSON.stringify({ task_id_list: [id] }),
    });
    const item = ((await polled.json()) as { data: [TaskStatusItem] }).data[0];
    if (item.status !== 0) return [JSON.parse(item.result), item];
    await sleep(POLL_INTERVAL_MS);
  }
}

function testClient(client: PublicClient, server: () => LiveServer): void {
  it(`${client.name} makes and downloads its songs`, async () => {
    const url = server().url + (client.base ?? "");
    await client.sendOtherRequests(new Client(url), client.headers);
    const [songs, item] = await makeSong(url, client);
    expect(item.status, item.error).to.equal(1);
    client.checkFields(songs, item);
    for (const song of songs) {
      const audio = await fetch(url + (client.download?.(song) ?? song.file), { headers: client.headers });
      expect(audio.status).to.equal(200);
      expect(audio.headers.get("content-type")).to.match(/^audio\//);
      expect((await audio.arrayBuffer()).byteLength).to.equal(Number(audio.headers.get("content-length")));
    }
  });
}

for (const { what, settings, clients } of [
  // The client studio.html is opened as a local file, so its origin is "null".
  { what: "without a key", settings: { SVC_ALLOWED_ORIGINS: "null" }, clients: OPEN_SERVER_CLIENTS },
  { what: "with a key", settings: { SVC_API_KEY: "k1" }, clients: KEYED_SERVER_CLIENTS },
]) {
  describe(`public clients with a server ${what}`, () => {
    const server = serverForAll(settings);
    for (const client of clients) testClient(client, () => server);
  });
}
