import { statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import { expect } from "chai";
import { mcpServer, remoteService } from "../../src/mcp/server.js";
import { ServiceClient } from "../../src/mcp/service-client.js";
import { type Answer, bridgeForEach } from "../city/bridge.js";
import { fingerprint } from "../city/simulation/towns.js";
import { failureOf } from "../failures.js";
import { serverForAll, shortSong } from "../music/live-server.js";
import { temporaryDirectory } from "../music/tasks.js";

const cli = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));

type Transport = Parameters<Client["connect"]>[0];

async function agentOn(url: string, headers: Record<string, string> = {}): Promise<Client> {
  const client = new Client({ name: "test", version: "1" });
  const transport = new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { requestInit: { headers } });
  await client.connect(transport as Transport);
  return client;
}

/** Client of an in-process MCP server that may save files, for the music service at `url`. */
async function agentOfLocalServer(url: string): Promise<Client> {
  const music = new ServiceClient(url, { Authorization: "Bearer secret" });
  const client = new Client({ name: "test", version: "1" });
  const [own, other] = InMemoryTransport.createLinkedPair();
  await mcpServer({ music: remoteService(music), savesFiles: true }).connect(other);
  await client.connect(own);
  return client;
}

async function call(agent: Client, name: string, args: object = {}): Promise<Answer> {
  return agent.callTool({ name, arguments: args as Record<string, unknown> });
}

/** Calls a tool, expects success, and returns the JSON result. */
async function answerOf(agent: Client, name: string, args: object = {}): Promise<Answer> {
  const { content, isError } = await call(agent, name, args);
  expect(isError, content[0].text).to.not.equal(true);
  return JSON.parse(content[0].text);
}

async function errorOf(agent: Client, name: string, args: object = {}): Promise<string> {
  const { content, isError } = await call(agent, name, args);
  expect(isError, content[0].text).to.equal(true);
  return content[0].text;
}

describe("MCP on the city's port", () => {
  const bridge = bridgeForEach({ map: "highway" });
  let agent: Client;

  beforeEach(async () => {
    agent = await agentOn(bridge.client.url);
  });
  afterEach(() => agent.close());

  it("lists a tool for every command of the city, with the fields of the command's endpoint", async () => {
    const { tools } = await agent.listTools();
    const { paths } = await bridge.client.state("/openapi.json");
    for (const path of Object.keys(paths).filter((each) => each.startsWith("/commands/"))) {
      const name = `city_${path.replace("/commands/", "").replaceAll("-", "_")}`;
      const tool = tools.find((each) => each.name === name);
      const { schema } = paths[path].post.requestBody.content["application/json"];
      expect(Object.keys(tool?.inputSchema.properties ?? {}), name).to.deep.equal(
        Object.keys(schema.properties),
      );
    }
    const readOnly = tools.filter(({ annotations }) => annotations?.readOnlyHint).map(({ name }) => name);
    expect(readOnly).to.deep.equal(["city_read", "city_plan", "city_look"]);
  });

  it("lets a client read the city, plan and run a command, and advance time", async () => {
    const before = fingerprint(bridge.city);
    const road = { start: { x: 0, z: 0 }, end: { x: 80, z: 0 } };
    const plan = await answerOf(agent, "city_plan", { command: "build-road", fields: road });
    expect(plan).to.include({ ok: true, dryRun: true, cost: 400 });
    expect(fingerprint(bridge.city)).to.equal(before);
    const built = await answerOf(agent, "city_build_road", { ...road, opId: "first" });
    expect(await answerOf(agent, "city_build_road", { ...road, opId: "first" })).to.deep.equal(built);
    const { total } = await answerOf(agent, "city_read", {
      path: "/state/networks",
      query: { service: "Road" },
    });
    expect(total).to.equal((await bridge.client.state("/state/networks?service=Road")).total);
    const segment = await answerOf(agent, "city_read", { path: "/state/segments/{id}", id: built.segmentId });
    expect(segment.id).to.equal(built.segmentId);
    expect(await answerOf(agent, "city_advance", { days: 1 })).to.include({ ok: true, stoppedBy: "days" });
  });

  it("the tool city_look returns the map as an image", async () => {
    await bridge.client.road(0, 0, 80, 0);
    const { content } = await call(agent, "city_look", { size: 300, pixels: 64 });
    expect(content[0]).to.include({ type: "image", mimeType: "image/png" });
    expect(Buffer.from(content[0].data, "base64").subarray(1, 4).toString()).to.equal("PNG");
  });

  it("returns the reason for a rejected call", async () => {
    expect(await errorOf(agent, "city_bulldoze", { entityType: "building", id: 7 })).to.include("7");
    expect(await errorOf(agent, "city_plan", { command: "save" })).to.include("no dry run");
    expect(await errorOf(agent, "city_read", { path: "/secret" })).to.include("/secret");
    expect(await errorOf(agent, "city_read", { path: "/state/buildings/{id}" })).to.include("needs an id");
    expect(await errorOf(agent, "city_look", { mode: "Dreams" })).to.include("Dreams");
    expect(await errorOf(agent, "city_fly")).to.include("city_fly");
    bridge.game.unloadCity();
    expect(await errorOf(agent, "city_advance", { days: 1 })).to.include("No city is loaded");
  });

  it("answers 403 to the Origin header of another site, 400 to broken JSON, and 405 to GET", async () => {
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" });
    const headers = { "Content-Type": "application/json", Accept: "application/json, text/event-stream" };
    const ask = (more: object) =>
      fetch(`${bridge.client.url}/mcp`, { method: "POST", headers: { ...headers, ...more }, body });
    expect((await ask({ Origin: "https://page.example" })).status).to.equal(403);
    expect((await ask({})).status).to.equal(200);
    const broken = await fetch(`${bridge.client.url}/mcp`, { method: "POST", headers, body: "{" });
    expect(broken.status).to.equal(400);
    expect((await fetch(`${bridge.client.url}/mcp`)).status).to.equal(405);
    const batch = `[${Array(100).fill(body).join(",")}]`;
    const refused = await fetch(`${bridge.client.url}/mcp`, { method: "POST", headers, body: batch });
    expect([refused.status, (await refused.json()).error.message]).to.deep.equal([
      400,
      "A batch must have at most 10 messages, not 100",
    ]);
    const many = JSON.stringify({
      jsonrpc: "2.0",
      id: 1,
      method: "tools/call",
      params: Array(40_000).fill(1),
    });
    expect(
      (await fetch(`${bridge.client.url}/mcp`, { method: "POST", headers, body: many })).status,
    ).to.equal(400);
  });
});

describe("MCP on the music port", () => {
  const server = serverForAll({ SVC_API_KEY: "secret" });

  it("lets a client make, follow and fetch a song", async () => {
    const agent = await agentOn(server.client.url, { Authorization: "Bearer secret" });
    const { tools } = await agent.listTools();
    expect(tools.map(({ name }) => name)).to.deep.equal([
      "make_song",
      "follow_song",
      "fetch_song",
      "list_songs",
    ]);
    const make = tools[0]?.inputSchema.properties as Record<string, object>;
    expect(make).to.include.keys("prompt", "lyrics", "audio_duration");
    const { data } = await answerOf(agent, "make_song", shortSong);
    const row = (await answerOf(agent, "follow_song", { task_id: data.task_id, wait_seconds: 120 })).data;
    expect(row).to.include({ task_id: data.task_id, state: "succeeded" });
    const { content } = await call(agent, "fetch_song", { task_id: data.task_id, format: "wav" });
    expect(content[0].type).to.equal("audio");
    expect(Buffer.from(content[0].data, "base64").subarray(0, 4).toString()).to.equal("RIFF");
    expect((await answerOf(agent, "list_songs", { limit: 1 })).data.tasks).to.have.length(1);
    expect(await errorOf(agent, "fetch_song", { task_id: data.task_id, index: 5 })).to.include("index 5");
    expect(await errorOf(agent, "follow_song", { task_id: "nothing" })).to.include("detail");
    expect(await errorOf(agent, "make_song", { audio_duration: {} })).to.include("detail");
    await agent.close();

    const local = await agentOfLocalServer(server.client.url);
    const path = join(temporaryDirectory(), "song.mp3");
    const fetched = { task_id: data.task_id, path };
    expect((await call(local, "fetch_song", fetched)).content[0].text).to.include(path);
    expect(statSync(path).size).to.be.greaterThan(1000);
    expect(await errorOf(local, "fetch_song", fetched)).to.include("EEXIST");
    expect(await errorOf(local, "fetch_song", { ...fetched, path: "song.mp3" })).to.include(
      "must be absolute",
    );
    await local.close();
  });

  it("MCP requests require the API key", async () => {
    expect((await failureOf(agentOn(server.client.url))).message).to.match(/401|Unauthorized|ai_token/);
    const response = await fetch(`${server.client.url}/mcp`);
    expect([response.status, response.headers.get("allow")]).to.deep.equal([405, "POST"]);
  });
});

describe("the command carillon mcp", () => {
  const bridge = bridgeForEach({ map: "highway" });
  let agent: Client;

  beforeEach(async function () {
    this.timeout(60_000);
    agent = new Client({ name: "test", version: "1" });
    const env = { ...process.env, CITY_BRIDGE_PORT: new URL(bridge.client.url).port, SVC_API_PORT: "1" };
    const args = [cli, "mcp"];
    const transport = new StdioClientTransport({
      command: process.execPath,
      args,
      env: env as Record<string, string>,
    });
    await agent.connect(transport as Transport);
  });
  afterEach(() => agent.close());

  it("offers the tools of running services; a tool of a stopped service fails with the service's name", async () => {
    const names = (await agent.listTools()).tools.map(({ name }) => name);
    expect(names).to.include("city_advance").and.not.include("make_song");
    expect(await answerOf(agent, "city_advance", { days: 1 })).to.include({ ok: true });
    expect(await errorOf(agent, "make_song", { prompt: "x" })).to.include(
      "the music service at http://127.0.0.1:1",
    );
    bridge.game.unloadCity();
    expect(await errorOf(agent, "city_read", { path: "/state/summary" })).to.include("No city is loaded");
  });
});
