import { createServer, type Server } from "node:http";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { expect } from "chai";
import express, { type Express } from "express";
import { pino } from "pino";
import { Carillon, type Song } from "../../src/client/index.js";
import {
  createEngine,
  createMusicServer,
  DirectoryInUseError,
  loadConfig,
  type MusicEngine,
  router,
} from "../../src/index.js";
import { listenLocally } from "../local-server.js";
import { oneSecondSong } from "./live-server.js";
import { stubEngine } from "./stub-engine.js";
import { temporaryDirectory } from "./tasks.js";

describe("router", () => {
  const directory = temporaryDirectory();
  const configOf = (home: string) => loadConfig({ SVC_HOME: join(directory, home), SVC_DEVICE: "cpu" });
  const engines: MusicEngine[] = [];
  const servers: Server[] = [];

  function routerAt(home: string) {
    const config = configOf(home);
    const engine = createEngine(config);
    engines.push(engine);
    return router({ config, engine });
  }

  async function listen(app: Express) {
    const server = createServer(app);
    servers.push(server);
    return listenLocally(server);
  }

  after(async () => {
    for (const server of servers) server.close().closeAllConnections();
    await Promise.all(engines.map((engine) => engine.close()));
  });

  it("an application can mount two routers under different paths", async () => {
    const [quiet, loud] = [routerAt("quiet"), routerAt("loud")];
    const app = express();
    app.use("/quiet", quiet).use("/loud", loud);
    app.get("/health", (_request, response) => void response.send("the application's own"));
    const { url } = await listen(app);
    const clients = [`${url}/quiet`, `${url}/loud`].map((at) => new Carillon({ url: at }));
    const tasks = await Promise.all(clients.map((client) => client.make(oneSecondSong)));
    expect(tasks.map(({ songs }) => songs.length)).to.deep.equal([1, 1]);
    const [client] = clients as [Carillon];
    const audio = await client.download((tasks[0] as (typeof tasks)[0]).songs[0] as Song);
    expect((await audio.arrayBuffer()).byteLength).to.be.above(100_000);
    expect(await (await fetch(`${url}/health`)).text()).to.equal("the application's own");
    const health = await fetch(`${url}/quiet/health`);
    expect(await health.json()).to.have.nested.property("data.loaded_model", "carillon-nano");
    const refused = await fetch(`${url}/loud/nowhere`);
    expect(refused.status).to.equal(404);
    expect(await refused.json()).to.have.property("detail");
    await Promise.all([quiet.close(), loud.close()]);
  });

  it("answers /health while the models load", async () => {
    const music = routerAt("loading");
    let isReady = false;
    void music.ready.then(() => {
      isReady = true;
    });
    const { url } = await listen(express().use("/music", music));
    const health = await fetch(`${url}/music/health`);
    expect(health.status).to.equal(200);
    expect(await health.json()).to.have.nested.property("data.models_initialized", false);
    expect(isReady).to.equal(false);
    await music.ready;
    await music.close();
  });

  it("may be closed twice, logs nothing, and then refuses requests", async () => {
    const lines: string[] = [];
    const log = pino({ level: "warn" }, { write: (line: string) => lines.push(line) });
    const parts = { config: configOf("closed"), engine: stubEngine(() => 0), log };
    for (const wait of [false, true]) {
      const music = router(parts);
      const { url } = await listen(express().set("env", "test").use("/music", music));
      await music.ready;
      await new Carillon({ url: `${url}/music` }).submit(oneSecondSong);
      const first = music.close(0);
      if (wait) await first;
      await music.close(0);
      await first;
      expect((await fetch(`${url}/music/v1/tasks`)).status).to.equal(503);
    }
    const config = loadConfig({ SVC_HOME: join(directory, "closed server"), SVC_API_PORT: "0" });
    const server = await createMusicServer({ ...parts, config });
    await server.close(0);
    await server.close(0);
    expect(lines).to.deep.equal([]);
  });

  it("`ready` rejects with the reason if the model cannot be loaded, and closing the router unlocks the directory", async () => {
    const config = loadConfig({
      SVC_HOME: join(directory, "broken"),
      SVC_DEVICE: "cpu",
      SVC_CONFIG_PATH: "no-such-model",
    });
    for (let attempt = 0; attempt < 2; attempt++) {
      const engine = createEngine(config);
      engines.push(engine);
      const broken = router({ config, engine });
      // Express prints errors unless `env` is "test".
      const { url } = await listen(express().set("env", "test").use("/music", broken));
      const failure = await broken.ready.catch((error: Error) => error);
      expect(failure).to.be.instanceOf(Error).and.have.property("message").that.includes("no-such-model");
      expect((await fetch(`${url}/music/health`)).status).to.equal(500);
      await broken.close();
    }
  });

  it("a failed start reaches requests, and does not end an application that does not await `ready`", async () => {
    const config = loadConfig({ SVC_HOME: join(directory, "broken"), SVC_CONFIG_PATH: "no-such-model" });
    const engine = createEngine(config);
    engines.push(engine);
    const unhandled: unknown[] = [];
    const note = (reason: unknown) => unhandled.push(reason);
    const others = process.listeners("unhandledRejection");
    process.removeAllListeners("unhandledRejection").on("unhandledRejection", note);
    try {
      const broken = router({ config, engine });
      const { url } = await listen(express().set("env", "test").use("/music", broken));
      while ((await fetch(`${url}/music/health`)).status !== 500) await setImmediate();
      await setImmediate();
      expect(unhandled).to.deep.equal([]);
      await broken.close();
    } finally {
      process.removeAllListeners("unhandledRejection");
      for (const other of others) process.on("unhandledRejection", other);
    }
  });

  it("reports a body parser that runs before the router, and a directory that another router uses", async () => {
    const first = routerAt("one");
    const { url } = await listen(express().use(express.json()).use("/music", first));
    const answer = await fetch(`${url}/music/release_task`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(oneSecondSong),
    });
    expect(answer.status).to.equal(500);
    expect(await answer.text()).to.contain("before express.json()");
    await first.ready;
    const second = routerAt("one");
    const failure = await second.ready.catch((error: unknown) => error);
    expect(failure).to.be.instanceOf(DirectoryInUseError);
    await second.close();
    await first.close();
  });
});
