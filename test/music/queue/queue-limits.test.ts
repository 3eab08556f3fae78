import { expect } from "chai";
import { longSong, oneSecondSong, serverForAll } from "../live-server.js";

describe("limits of a small queue", () => {
  const server = serverForAll({
    SVC_QUEUE_MAXSIZE: "2",
    SVC_AVG_JOB_SECONDS: "12",
  });
  const { client } = server;

  it("a full queue answers 429 with Retry-After; its waiting and running tasks can be cancelled", async () => {
    const running = await client.submit(longSong);
    await client.untilStarted(running);
    const waiting = [await client.submit(longSong), await client.submit(longSong)];
    const before = (await client.get("/v1/stats")).body.data;
    expect(before).to.deep.equal({
      jobs: { total: 3, queued: 2, running: 1, succeeded: 0, failed: 0 },
      queue_size: 2,
      queue_maxsize: 2,
      avg_job_seconds: 12,
    });

    const refusal = await client.post("/release_task", oneSecondSong);
    expect(refusal.status).to.equal(429);
    expect(refusal.body).to.deep.equal({
      detail: "Server busy: queue is full",
      error: "Server busy: queue is full",
      note: { code: "queue_full", values: {}, text: "Server busy: queue is full" },
    });
    expect(refusal.headers.get("retry-after")).to.equal("12");
    expect((await client.get("/v1/stats")).body.data).to.deep.equal(before);

    for (const id of [...waiting, running]) {
      expect((await client.post("/cancel_task", { task_id: id })).body.data).to.deep.equal({
        job_id: id,
        status: "cancelled",
      });
      const { item, records } = await client.query(id);
      expect(item).to.include({ status: 2, error: "Cancelled by user" });
      expect(records).to.have.length(1);
      expect(records[0]).to.include({ status: 2, stage: "failed", error: "Cancelled by user", file: "" });
    }
    expect((await client.get("/v1/stats")).body.data.jobs).to.include({ queued: 0, running: 0, failed: 3 });
  });

  it("cancelling an unknown task gives 404, and cancelling without an id 400", async () => {
    expect((await client.post("/cancel_task", { task_id: "nope" })).status).to.equal(404);
    expect((await client.post("/cancel_task", {})).status).to.equal(400);
  });

  it("answers /health while a song renders", async () => {
    const id = await client.submit(longSong);
    await client.untilStarted(id);
    for (let i = 0; i < 20; i++) expect((await client.get("/health")).body.data.status).to.equal("ok");
    expect((await client.query(id)).item.status).to.equal(0);
    await client.post("/cancel_task", { task_id: id });
  });
});
