import { expect } from "chai";
import { type Caller, ConcurrencyLimit } from "../../../src/music/access/concurrency-limit.js";
import { HttpError } from "../../../src/music/errors.js";

describe("ConcurrencyLimit", () => {
  const options = { places: 3, placesPerAddress: 2, waitingPerAddress: 3, retryAfterSeconds: 10 };

  /** Calls that end on request; records the order in which they start. */
  class Workshop {
    readonly limit = new ConcurrencyLimit(options);
    readonly begun: string[] = [];
    readonly #ends = new Map<string, () => void>();

    async call(name: string, signal = new AbortController().signal): Promise<void> {
      const caller: Caller = { address: name.replace(/\d+$/, ""), signal };
      await this.limit.run(caller, () => {
        this.begun.push(name);
        return new Promise<void>((resolve) => this.#ends.set(name, resolve));
      });
    }

    async end(name: string): Promise<void> {
      this.#ends.get(name)?.();
      for (let turn = 0; turn < 10; turn++) await Promise.resolve();
    }
  }

  it("limits places per address, serves addresses in turn and keeps the order of each", async () => {
    const shop = new Workshop();
    for (const name of ["many1", "many2", "many3", "many4", "many5", "one1", "other1"]) void shop.call(name);
    expect(shop.begun).to.deep.equal(["many1", "many2", "one1"]);
    await shop.end("many1");
    expect(shop.begun.at(-1)).to.equal("many3");
    await shop.end("many2");
    expect(shop.begun.at(-1)).to.equal("other1");
    await shop.end("one1");
    expect(shop.begun.at(-1)).to.equal("many4");
    await shop.end("other1");
    expect(shop.begun.at(-1)).to.equal("many4");
    await shop.end("many3");
    expect(shop.begun.at(-1)).to.equal("many5");
  });

  it("answers 429 only to the address with too many waiting calls", async () => {
    const shop = new Workshop();
    for (let index = 1; index <= 5; index++) void shop.call(`many${index}`);
    const failure = await shop.call("many6").catch((error: unknown) => error);
    expect(failure).to.be.instanceOf(HttpError).and.include({ status: 429 });
    expect((failure as HttpError).headers).to.deep.equal({ "Retry-After": "10" });
    void shop.call("one1");
    expect(shop.begun).to.deep.equal(["many1", "many2", "one1"]);
  });

  it("drops waiting calls whose client disconnected", async () => {
    const shop = new Workshop();
    const gone = new AbortController();
    const reason = new Error("gone");
    void shop.call("many1");
    void shop.call("many2");
    const leaving = shop.call("many3", gone.signal).catch((error: unknown) => error);
    void shop.call("many4");
    gone.abort(reason);
    expect(await leaving).to.equal(reason);
    await shop.end("many1");
    expect(shop.begun).to.deep.equal(["many1", "many2", "many4"]);
    const late = await shop.call("one1", gone.signal).catch((error: unknown) => error);
    expect(late).to.equal(reason);
  });
});
