import { expect } from "chai";
import { pino } from "pino";
import { loadConfig } from "../../src/config.js";
import { createMusicServer, type MusicServer } from "../../src/index.js";
import { Client, oneSecondSong } from "./live-server.js";
import { stubEngine } from "./stub-engine.js";
import { temporaryDirectory } from "./tasks.js";

describe("metrics and log lines of a server", () => {
  const lines: Record<string, unknown>[] = [];
  let music: MusicServer;
  let client: Client;

  before(async () => {
    const config = loadConfig({ SVC_API_PORT: "0", SVC_TMPDIR: temporaryDirectory(), SVC_API_KEY: "k1" });
    const log = pino({ level: "debug" }, { write: (line: string) => lines.push(JSON.parse(line)) });
    music = await createMusicServer({ config, engine: stubEngine(() => 20), log });
    client = new Client(music.url);
  });

  after(() => music.close());

  const key = { "X-API-Key": "k1" };

  /** Value of a metric. */
  async function sample(name: string): Promise<number> {
    const { status, body } = await client.get("/metrics", key);
    expect(status).to.equal(200);
    const line = (body as string).split("\n").find((text) => text.startsWith(`${name} `));
    expect(line, name).to.be.a("string");
    return Number(line?.split(" ").at(-1));
  }

  it("metrics require the API key", async () => {
    expect((await client.get("/metrics")).status).to.equal(401);
  });

  it("metrics count tasks, stages and audio; log lines of a task have its request id", async () => {
    expect(await sample('carillon_tasks{state="succeeded"}')).to.equal(0);
    const answer = await client.post("/release_task", oneSecondSong, key);
    const task = answer.body.data.task_id;
    const request = answer.headers.get("x-request-id");
    for (;;) {
      const { body } = await client.get(`/v1/tasks/${task}`, key);
      if (body.data.status !== 0) break;
    }
    const { body } = await client.get(`/v1/tasks/${task}`, key);
    expect(await sample('carillon_tasks{state="succeeded"}')).to.equal(1);
    expect(await sample('carillon_tasks_ended_total{task_type="text2music",outcome="succeeded"}')).to.equal(
      1,
    );
    expect(await sample('carillon_job_seconds_count{task_type="text2music"}')).to.equal(1);
    expect(await sample('carillon_stage_seconds_count{stage="Preparing inputs"}')).to.equal(1);
    expect(await sample('carillon_stage_seconds_sum{stage="Preparing inputs"}')).to.be.above(0);
    expect(await sample("carillon_audio_bytes")).to.equal(body.data.songs[0].bytes);
    expect(await sample("carillon_queue_length")).to.equal(0);
    expect(await sample('carillon_gpu_memory_bytes{device="cuda:0",state="used"}')).to.equal(1e9);
    expect(await sample("process_resident_memory_bytes")).to.be.above(1e6);
    expect(await sample("nodejs_eventloop_lag_seconds")).to.be.at.least(0);
    const taskLines = lines.filter((line) => line.task === task);
    expect(taskLines.map(({ msg }) => msg)).to.include.members([
      "task accepted",
      "task started",
      "stage begins",
      "stage ended",
      "task ended",
    ]);
    for (const line of taskLines) expect(line.request, String(line.msg)).to.equal(request);
    expect(JSON.stringify(lines)).to.not.include("k1");
  });
});
