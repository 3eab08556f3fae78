/** Jobs of acestep.cpp's clients in a fleet: gateways accept and answer, a worker with the real engine computes. */
import { expect } from "chai";
import { AceClient, formOf, type Part, partsOf } from "../music/acestep-cpp/ace-client.js";
import { RedisServer } from "../music/fleet/redis-server.js";
import { type LiveServer, startLiveServer } from "../music/live-server.js";
import { temporaryDirectory } from "../music/tasks.js";

const short = {
  caption: "a short song",
  lyrics: "[Instrumental]",
  duration: 10,
  inference_steps: 1,
  seed: 3,
};

describe("jobs of acestep.cpp's clients in a fleet", () => {
  const storage = `file://${temporaryDirectory()}`;
  const servers: LiveServer[] = [];
  let redis: RedisServer;
  let near: AceClient;
  let far: AceClient;

  before(async () => {
    redis = await RedisServer.start();
    const settings = { SVC_REDIS_URL: redis.url, SVC_STORAGE: storage };
    for (const role of ["gateway", "gateway", "all"]) {
      servers.push(await startLiveServer(temporaryDirectory(), { ...settings, SVC_ROLE: role }));
    }
    const [first, second] = servers as [LiveServer, LiveServer];
    [near, far] = [new AceClient(first), new AceClient(second)];
    for (const { client } of [first, second]) {
      while ((await client.get("/v1/stats")).body.data.workers.length !== 1);
    }
  });
  after(async () => {
    for (const server of servers) await server.close();
    await redis.kill();
  });

  it("lists the models of the workers", async () => {
    const { models } = (await near.get("/props")).body;
    expect(models).to.deep.include({ dit: ["carillon-nano-turbo"], lm: ["carillon-nano/lm"] });
  });

  it("the result of a job that one gateway accepted comes from another", async () => {
    const id = await near.submit("/synth", { ...short, output_format: "wav16" });
    const [here, there] = [await near.resultOf(id), await far.resultOf(id)];
    expect(there.body.equals(here.body)).to.equal(true);
    const [audio, latents] = partsOf(there) as [Part, Part];
    const encoded = await far.resultOf(await near.submit("/vae", formOf({ audio: audio.bytes })));
    expect(encoded.body.length).to.equal(latents.bytes.length);
    const decoding = formOf({ src_latents: latents.bytes, request: { output_format: "wav16" } });
    const decoded = await near.resultOf(await far.submit("/vae", decoding));
    expect(decoded.headers.get("content-type")).to.equal("audio/wav");
    const described = await far.parts("/understand", formOf({ src_latents: latents.bytes }));
    expect(described[1]?.bytes.equals(latents.bytes)).to.equal(true);
    const cover = formOf({ request: { ...short, task_type: "cover" }, src_latents: latents.bytes });
    expect(await far.parts("/synth", cover)).to.have.length(2);
  });

  it("the language model of a worker plans", async () => {
    const [plan] = (await far.resultOf(await near.submit("/lm", { ...short, lm_seed: 5 }))).body;
    expect(plan.audio_codes.split(",")).to.have.length(50);
  });

  it("another gateway cancels a job, running or waiting", async () => {
    const long = { ...short, duration: 240, inference_steps: 50, synth_batch_size: 9 };
    const ids = [await near.submit("/synth", long), await near.submit("/synth", long)];
    for (const id of ids.toReversed()) {
      const answer = await far.send("POST", `/job?id=${id}&cancel=1`);
      expect(answer.body).to.deep.equal({ status: "cancelled" });
      expect((await near.get(`/job?id=${id}`)).body).to.deep.equal({ status: "cancelled" });
    }
  });
});
