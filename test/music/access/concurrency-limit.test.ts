import { expect } from "chai";
import { type Caller, ConcurrencyLimit } from "../../../src/music/access/concurrency-limit.js";
import { HttpError } from "../../../src/music/errors.js";

describe("limit on concurrent calls", () => {
  const options = { places: 3, placesPerAddress: 2, waitingPerAddress: 3, retryAfterSeconds: 10 };

  /** Makes calls that run until `end`, and records the order in which they start. */
  class CallRecorder {
    readonly limit = new ConcurrencyLimit(options);
    readonly started: string[] = [];
    readonly #ends = new Map<string, () => void>();

    async call(name: string, signal = new AbortController().signal): Promise<void> {
      const caller: Caller = { address: name.replace(/\d+$/, ""), signal };
      await this.limit.run(caller, () => {
        this.started.push(name);
        return new Promise<void>((resolve) => this.#ends.set(name, resolve));
      });
    }

    async end(name: string): Promise<void> {
      this.#ends.get(name)?.();
      for (let turn = 0; turn < 10; turn++) await Promise.resolve();
    }
  }

  it("the limit applies per address; waiting addresses take turns, each in the order of its calls", async () => {
    const calls = new CallRecorder();
    for (const name of ["many1", "many2", "many3", "many4", "many5", "one1", "other1"]) void calls.call(name);
    expect(calls.started).to.deep.equal(["many1", "many2", "one1"]);
    await calls.end("many1");
    expect(calls.started.at(-1)).to.equal("many3");
    await calls.end("many2");
    expect(calls.started.at(-1)).to.equal("other1");
    await calls.end("one1");
    expect(calls.started.at(-1)).to.equal("many4");
    await calls.end("other1");
    expect(calls.started.at(-1)).to.equal("many4");
    await calls.end("many3");
    expect(calls.started.at(-1)).to.equal("many5");
  });

  it("only the address with too many waiting calls gets status 429", async () => {
    const calls = new CallRecorder();
    for (let index = 1; index <= 5; index++) void calls.call(`many${index}`);
    const failure = await calls.call("many6").catch((error: unknown) => error);
    expect(failure).to.be.instanceOf(HttpError).and.include({ status: 429 });
    expect((failure as HttpError).headers).to.deep.equal({ "Retry-After": "10" });
    void calls.call("one1");
    expect(calls.started).to.deep.equal(["many1", "many2", "one1"]);
  });

  it("waiting calls of disconnected clients are dropped", async () => {
    const calls = new CallRecorder();
    const gone = new AbortController();
    const reason = new Error("gone");
    void calls.call("many1");
    void calls.call("many2");
    const leaving = calls.call("many3", gone.signal).catch((error: unknown) => error);
    void calls.call("many4");
    gone.abort(reason);
    expect(await leaving).to.equal(reason);
    await calls.end("many1");
    expect(calls.started).to.deep.equal(["many1", "many2", "many4"]);
    const late = await calls.call("one1", gone.signal).catch((error: unknown) => error);
    expect(late).to.equal(reason);
  });
});
