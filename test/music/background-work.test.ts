import { expect } from "chai";
import { BackgroundWork, type Work } from "../../src/music/background-work.js";
import { RequestError } from "../../src/music/errors.js";
import { createLogger } from "../../src/system/log.js";

describe("background work", () => {
  let work: BackgroundWork<{ done: number }, string>;
  /** Ends when it is cancelled. */
  const endless = async (): Promise<Work<{ done: number }, string>> => ({
    progress: { done: 0 },
    run: (progress, signal) =>
      new Promise((_, reject) => {
        progress.done = 1;
        if (signal.aborted) reject(signal.reason);
        signal.addEventListener("abort", () => reject(signal.reason));
      }),
  });
  const ending = async (run: Work<object, string>["run"]) => ({ progress: { done: 0 }, run });
  const failureOf = (promise: Promise<unknown>) =>
    promise.then(
      () => expect.fail("it did not fail"),
      (error: Error) => error,
    );

  beforeEach(() => {
    work = new BackgroundWork("Sorting", createLogger("silent"));
  });

  it("a completed run keeps its result, and can be found by its id", async () => {
    const run = await work.start(() => ending(async () => "sorted"));
    expect(await run.finished).to.equal("sorted");
    expect(work.find(run.id)).to.include({ state: "completed", result: "sorted", failure: null });
    expect(work.latest).to.equal(run);
    expect(() => work.find("none"))
      .to.throw("Task not found")
      .with.property("status", 404);
  });

  it("refuses a second run while one is checked or in progress", async () => {
    const first = work.start(endless);
    expect(await failureOf(work.start(endless))).to.include({
      status: 400,
      message: "Sorting already in progress",
    });
    const run = await first;
    expect(run.progress).to.deep.equal({ done: 1 });
    expect(await failureOf(work.start(endless))).to.have.property("status", 400);
    await work.close();
  });

  it("starts another run after a refused request, a failed run and a cancelled one", async () => {
    const refused = work.start(async () => {
      throw new RequestError("no such folder");
    });
    expect(await failureOf(refused)).to.have.property("message", "no such folder");
    expect(work.latest).to.equal(undefined);
    const failed = await work.start(() =>
      ending(async () => {
        throw Object.assign(new Error("no room"), { code: "ENOSPC" });
      }),
    );
    expect(await failureOf(failed.finished)).to.have.property("status", 507);
    expect(failed).to.have.property("state", "failed");
    expect(failed.failure?.detail).to.equal("The server's disk is full");
    const cancelled = await work.start(endless);
    expect(work.cancel()).to.equal(true);
    await failureOf(cancelled.finished);
    expect(cancelled).to.have.property("state", "cancelled");
    expect(work.cancel()).to.equal(false);
    expect(await (await work.start(() => ending(async () => "sorted"))).finished).to.equal("sorted");
  });

  it("cancels a run whose request is still being checked", async () => {
    const starting = work.start(endless);
    expect(work.cancel()).to.equal(true);
    const run = await starting;
    await failureOf(run.finished);
    expect(run.state).to.equal("cancelled");
  });

  it("reports another failure of a cancelled run as a failure", async () => {
    const run = await work.start(() =>
      ending(async (_, signal) => {
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
        throw Object.assign(new Error("no room"), { code: "STORAGE" });
      }),
    );
    work.cancel();
    await failureOf(run.finished);
    expect(run.state).to.equal("failed");
    expect(run.failure?.detail).to.equal("no room");
  });

  it("closing cancels the run and refuses others, even one that is being checked", async () => {
    const run = await work.start(endless);
    await work.close();
    expect(run.state).to.equal("cancelled");
    expect(run.failure?.detail).to.equal("The server is stopping");
    expect(await failureOf(work.start(endless))).to.include({
      status: 503,
      message: "The server is stopping",
    });
  });

  it("keeps the status of the last 100 runs", async () => {
    const ids: string[] = [];
    for (let count = 0; count < 101; count++) {
      const run = await work.start(() => ending(async () => "sorted"));
      ids.push(run.id);
      await run.finished;
    }
    expect(() => work.find(ids[0] as string)).to.throw("Task not found");
    expect(work.find(ids[1] as string)).to.have.property("state", "completed");
  });
});
