/** Tests undocumented internals of BullMQ that the fleet relies on. */
import { createRequire } from "node:module";
import { Queue, Worker } from "bullmq";
import { expect } from "chai";
import { Redis } from "ioredis";
import manifest from "../../../package.json" with { type: "json" };
import { RedisServer } from "./redis-server.js";

describe("internals of BullMQ that the fleet relies on", () => {
  let server: RedisServer;
  let redis: Redis;

  before(async () => {
    server = await RedisServer.start();
    redis = new Redis(server.url, { maxRetriesPerRequest: null });
  });
  after(async () => {
    redis.disconnect();
    await server.kill();
  });

  it("BullMQ is pinned in package.json and installed in the version that these tests describe", () => {
    const installed = createRequire(import.meta.url)("bullmq/package.json") as { version: string };
    expect(manifest.dependencies.bullmq).to.equal("6.7.0");
    expect(installed.version).to.equal(manifest.dependencies.bullmq);
  });

  it("BullMQ keeps waiting jobs in `prioritized`, and a lock with an expiry for each running job", async () => {
    const options = { connection: redis, prefix: "contract" };
    const queue = new Queue<object, null, string>("songs", options);
    const lease = { autorun: false, skipStalledCheck: true, skipLockRenewal: true, lockDuration: 5_000 };
    const worker = new Worker<object, null, string>("songs", null, { ...options, ...lease });
    try {
      for (const [jobId, priority] of [
        ["second", 2],
        ["first", 1],
      ] as const)
        await queue.add("song", {}, { jobId, priority });
      expect(await redis.zrange(queue.toKey("prioritized"), "0", "-1")).to.deep.equal(["first", "second"]);
      const job = await worker.getNextJob("token", { block: false });
      expect(job?.id).to.equal("first");
      const lock = `${queue.toKey("first")}:lock`;
      expect(await redis.get(lock)).to.equal("token");
      expect(await redis.pttl(lock)).to.be.within(1, 5_000);
      expect(await redis.lrange(queue.toKey("active"), "0", "-1")).to.deep.equal(["first"]);
      await job?.moveToCompleted(null, "token", false);
      expect(await redis.exists(lock)).to.equal(0);
    } finally {
      await worker.close();
      await queue.close();
    }
  });

  it("BullMQ moves a job whose lock expired to the front of `wait`, so that it is taken next", async () => {
    const options = { connection: redis, prefix: "stalled" };
    // The queue passes these options to the script that moves stalled jobs. Their TypeScript type lacks them.
    const stalled = { maxStalledCount: 10, stalledInterval: 1 };
    const queue = new Queue<object, null, string>("songs", { ...options, ...stalled } as typeof options);
    const lease = { autorun: false, skipStalledCheck: true, skipLockRenewal: true };
    const worker = new Worker<object, null, string>("songs", null, { ...options, ...lease });
    try {
      for (const jobId of ["one", "two"]) await queue.add("song", {}, { jobId, priority: 1 });
      await worker.getNextJob("token", { block: false });
      await redis.del(`${queue.toKey("one")}:lock`);
      let moved: string[] = [];
      while (moved.length === 0) moved = await queue.getBackend().moveStalledJobsToWait();
      expect(moved).to.deep.equal(["one"]);
      expect(await redis.lpos(queue.toKey("wait"), "one")).to.equal(0);
      expect((await worker.getNextJob("token", { block: false }))?.id).to.equal("one");
    } finally {
      await worker.close();
      await queue.close();
    }
  });
});
