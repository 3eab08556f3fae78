import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect } from "chai";
import { withTimeLimit } from "../../src/system/time-limit.js";
import { failureOf } from "../failures.js";

const late = () => new Error("too late");
const forever = () => new Promise<never>(() => {});

describe("time limit of a wait", () => {
  it("returns the result of work that ends in time", async () => {
    expect(await withTimeLimit({ ms: 60_000, error: late }, async () => 7)).to.equal(7);
  });

  it("rejects at the limit even if the work ignores its signal", async () => {
    expect((await failureOf(withTimeLimit({ ms: 5, error: late }, forever))).message).to.equal("too late");
  });

  it("aborts the signal of the work at the limit", async () => {
    let seen: AbortSignal | undefined;
    const work = (signal: AbortSignal) => {
      seen = signal;
      return forever();
    };
    await failureOf(withTimeLimit({ ms: 5, error: late }, work));
    expect(seen?.reason).to.have.property("message", "too late");
  });

  it("gives work that makes progress its whole time again, until it stops", async () => {
    let steps = 0;
    const failure = await failureOf(
      withTimeLimit({ ms: 200, error: late }, (_signal, restart) => {
        const working = setInterval(() => {
          restart();
          if (++steps === 10) clearInterval(working);
        }, 40);
        return forever();
      }),
    );
    expect([failure.message, steps]).to.deep.equal(["too late", 10]);
  });

  it("rejects with the reason of the caller's signal, also if the work fails with another error", async () => {
    const caller = new AbortController();
    const work = (signal: AbortSignal) =>
      new Promise<never>((_resolve, reject) =>
        signal.addEventListener("abort", () => reject(new Error("socket hang up"))),
      );
    const failure = failureOf(withTimeLimit({ ms: 60_000, signal: caller.signal, error: late }, work));
    caller.abort(new Error("the caller left"));
    expect((await failure).message).to.equal("the caller left");
  });

  it("does not start work for a caller that has left", async () => {
    const limit = { ms: 60_000, signal: AbortSignal.abort(new Error("gone")), error: late };
    let started = false;
    const failure = await failureOf(
      withTimeLimit(limit, async () => {
        started = true;
      }),
    );
    expect([failure.message, started]).to.deep.equal(["gone", false]);
  });

  it("passes on the error of the work", async () => {
    const work = () => Promise.reject(new Error("broken"));
    expect((await failureOf(withTimeLimit({ ms: 60_000, error: late }, work))).message).to.equal("broken");
  });

  it("fires although the garbage collector runs meanwhile", async () => {
    const module = new URL("../../src/system/time-limit.ts", import.meta.url).href;
    const program = `
      const { withTimeLimit } = await import(${JSON.stringify(module)});
      const collecting = setInterval(() => gc(), 10);
      const caller = new AbortController();
      const limit = { ms: 300, signal: caller.signal, error: () => new Error("too late") };
      const idle = (signal) => new Promise((_, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason));
      });
      await withTimeLimit(limit, idle).catch((error) => console.log(error.message));
      clearInterval(collecting);`;
    const args = ["--expose-gc", "--import", "tsx", "--input-type=module", "--eval", program];
    const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: 60_000 });
    expect(stdout.trim()).to.equal("too late");
  });
});
