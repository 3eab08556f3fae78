/** Model downloads by the service: /v1/models/pull. */
import { statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { lockDirectory } from "../../../src/system/directory-lock.js";
import { FakeHub } from "../../models/hub-server.js";
import { languageModelRepository, mainRepository } from "../../models/repositories.js";
import { type Client, type LiveServer, shortSong, startLiveServer } from "../live-server.js";
import { temporaryDirectory } from "../tasks.js";

const WEIGHTS = "acestep-v15-turbo/model.safetensors";

describe("downloads through /v1/models/pull", () => {
  const checkpoints = temporaryDirectory();
  let hub: FakeHub;
  let server: LiveServer;
  let client: Client;

  before(async () => {
    hub = await FakeHub.start();
    hub.repositories["ACE-Step/Ace-Step1.5"] = mainRepository();
    hub.repositories["ACE-Step/acestep-5Hz-lm-0.6B"] = languageModelRepository();
    server = await startLiveServer(temporaryDirectory(), {
      SVC_CHECKPOINTS: checkpoints,
      HF_ENDPOINT: hub.url,
      SVC_CONFIG_PATH2: "carillon-nano",
    });
    client = server.client;
  });
  after(() => server.close());

  const pull = (model: unknown) => client.post("/v1/models/pull", { model });
  const status = async () => (await client.get("/v1/models/pull")).body.data.pull;

  async function ended() {
    for (;;) {
      const state = await status();
      if (state.state !== "running") return state;
      await sleep(20);
    }
  }

  it("answers 400 to an invalid model name, and 404 to a cancellation if no download runs", async () => {
    const { data } = (await client.get("/v1/models/pull")).body;
    expect(data.pull).to.equal(null);
    expect(data.published).to.include("acestep-v15-turbo");
    const unknown = await pull("acestep-v99");
    expect(unknown.status).to.equal(400);
    expect(unknown.body.detail).to.include("There is no public model acestep-v99. Available: ");
    expect((await pull(undefined)).status).to.equal(400);
    expect((await client.delete("/v1/models/pull")).status).to.equal(404);
  });

  const received = () =>
    statSync(join(checkpoints, ".incomplete", WEIGHTS), { throwIfNoEntry: false })?.size ?? 0;

  it("a download reports progress; a second one is refused; a cancelled one can be resumed", async () => {
    hub.cuts[WEIGHTS] = { afterBytes: 300_000, hangs: true };
    expect((await pull("acestep-v15-turbo")).status).to.equal(200);
    for (;;) {
      const { state, done_bytes: done, total_bytes: total, file } = await status();
      expect(state).to.equal("running");
      expect(done).to.be.at.most(total);
      if (file === WEIGHTS && received() >= 300_000) break;
      await sleep(20);
    }
    for (const [model, words] of [
      ["acestep-v15-turbo", "acestep-v15-turbo is already being pulled: "],
      ["acestep-5Hz-lm-0.6B", "acestep-v15-turbo is being pulled: "],
    ]) {
      const refused = await pull(model);
      expect(refused.status).to.equal(409);
      expect(refused.body.detail).to.include(words);
    }
    const cancelled = await client.delete("/v1/models/pull");
    expect(cancelled.body.data.pull).to.include({ state: "cancelled", error: null });

    delete hub.cuts[WEIGHTS];
    hub.downloads.length = 0;
    await pull("acestep-v15-turbo");
    expect(await ended()).to.deep.include({
      state: "completed",
      new_folders: ["vae", "Qwen3-Embedding-0.6B", "acestep-v15-turbo"],
    });
    const resumed = hub.downloads.find(({ path }) => path === WEIGHTS);
    expect(resumed?.fromByte).to.be.above(0);
    await pull("acestep-v15-turbo");
    expect(await ended()).to.deep.include({ state: "completed", new_folders: [] });
  });

  it("a slot can be switched to a downloaded model without a restart", async () => {
    const switched = await client.post("/v1/init", { model: "acestep-v15-turbo", slot: 2 });
    expect(switched.status).to.equal(200);
    const { slots } = (await client.get("/v1/model_inventory")).body.data;
    expect(slots).to.deep.equal([
      { slot: 1, model: "carillon-nano", is_loaded: true },
      { slot: 2, model: "acestep-v15-turbo", is_loaded: true },
    ]);
    const song = await client.makeOne({ ...shortSong, model: "acestep-v15-turbo" });
    expect(song.dit_model).to.equal("acestep-v15-turbo");
  });

  it("the status of a failed download contains the reason", async () => {
    hub.repositories["someone/gone"] = { "README.md": Buffer.from("nothing") };
    await pull("someone/gone");
    const { state, error } = await ended();
    expect(state).to.equal("failed");
    expect(error).to.include("someone/gone has no model");
  });

  it("requests need the API key if one is set, and responses hide server directories", async () => {
    const settings = { SVC_CHECKPOINTS: checkpoints, HF_ENDPOINT: hub.url, SVC_API_KEY: "open sesame" };
    const guarded = await startLiveServer(temporaryDirectory(), settings);
    const lock = await lockDirectory(join(checkpoints, ".incomplete"), "SVC_CHECKPOINTS");
    try {
      for (const method of ["GET", "POST", "DELETE"]) {
        const refused = await fetch(`${guarded.url}/v1/models/pull`, { method });
        expect(refused.status).to.equal(401);
      }
      const key = { Authorization: "Bearer open sesame" };
      await guarded.client.post("/v1/models/pull", { model: "acestep-5Hz-lm-0.6B" }, key);
      for (;;) {
        const { state, error } = (await guarded.client.get("/v1/models/pull", key)).body.data.pull;
        if (state === "running") continue;
        expect(error).to.match(/^SVC_CHECKPOINTS.\.incomplete is in use by another Carillon/);
        break;
      }
    } finally {
      await lock.release();
      await guarded.close();
    }
  });
});
