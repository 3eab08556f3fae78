import { expect } from "chai";
import { loadConfig } from "../../../src/config.js";
import { createMusicServer, type MusicServer } from "../../../src/index.js";
import { createLogger } from "../../../src/system/log.js";
import { Client, shortSong } from "../live-server.js";
import { stubEngine } from "../stub-engine.js";
import { temporaryDirectory } from "../tasks.js";

/** Every way to submit a task, with the key in a header or in the body. */
describe("the client of a task", () => {
  const headers = { Authorization: "Bearer k2" };
  const chat = {
    messages: [{ role: "user", content: "a waltz" }],
    audio_config: { duration: 10, format: "wav" },
    inference_steps: 1,
  };
  let server: MusicServer;
  let client: Client;

  before(async () => {
    const settings = { SVC_API_PORT: "0", SVC_TMPDIR: temporaryDirectory(), SVC_API_KEY: "k1" };
    const config = loadConfig({ ...settings, SVC_API_KEYS: "k2,k3" });
    server = await createMusicServer({ config, engine: stubEngine(() => 0), log: createLogger("silent") });
    client = new Client(server.url);
  });
  after(() => server.close());

  async function newest(): Promise<string> {
    return (await client.get("/v1/tasks?limit=1", headers)).body.data.tasks[0].task_id;
  }

  const ways: Record<string, () => Promise<unknown>> = {
    "POST /release_task": () => client.post("/release_task", shortSong, headers),
    "POST /release_task, key in JSON": () => client.post("/release_task", { ...shortSong, ai_token: "k2" }),
    "POST /release_task, key in a form": () =>
      client.postForm("/release_task", { ...shortSong, ai_token: "k2" }),
    "POST /release_task, key in the body beside another one": () =>
      client.post("/release_task", { ...shortSong, ai_token: "k2" }, { Authorization: "Bearer k3" }),
    "a retake": async () => client.post(`/v1/tasks/${await newest()}/retake`, {}, headers),
    "a retake, key in the body": async () =>
      client.post(`/v1/tasks/${await newest()}/retake`, { ai_token: "k2" }),
    "a chat completion": () => client.post("/v1/chat/completions", chat, headers),
    "a chat completion, key in the body": () =>
      client.post("/v1/chat/completions", { ...chat, ai_token: "k2" }, { "X-API-Key": "k3" }),
    "the tool of agents": () =>
      client.post(
        "/mcp",
        {
          jsonrpc: "2.0",
          id: 1,
          method: "tools/call",
          params: { name: "make_song", arguments: { prompt: "a waltz", audio_duration: 10 } },
        },
        { ...headers, Accept: "application/json, text/event-stream" },
      ),
  };
  for (const [way, submit] of Object.entries(ways)) {
    it(`is the one whose key submitted it: ${way}`, async () => {
      const before = (await client.get("/v1/stats", headers)).body.data.jobs.total;
      await submit();
      expect((await client.get("/v1/stats", headers)).body.data.jobs.total).to.equal(before + 1);
      expect((await server.service.queue.get(await newest()))?.share).to.equal("key 2");
    });
  }
});
