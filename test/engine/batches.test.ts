import { expect } from "chai";
import { runInBatches } from "../../src/engine/batches.js";
import { failureOf } from "../failures.js";

/** Doubles numbers in batches; more than `fitting` at once exceed the memory. */
async function doubled(numbers: readonly number[], atOnce: number, fitting: number) {
  const batches: number[][] = [];
  const messages: string[] = [];
  const results: number[] = [];
  const takeBatch = (rest: readonly number[]) => {
    const end = rest.findIndex((number) => number < 0);
    return end > 0 ? rest.slice(0, end) : rest;
  };
  const options = { atOnce, takeBatch, log: (message: string) => messages.push(message) };
  for await (const result of runInBatches(numbers, options, async (batch, begin) => {
    expect(batch[0]).to.equal(numbers[begin]);
    if (batch.length > fitting) throw Object.assign(new Error("out of memory"), { code: "OUT_OF_MEMORY" });
    batches.push([...batch]);
    return batch.map((number) => 2 * number);
  }))
    results.push(result);
  return { batches, messages, results };
}

describe("batches of songs", () => {
  it("have at most the given number of songs, and only songs that may share a batch", async () => {
    const { batches, results } = await doubled([1, 2, 3, -4, 5], 2, 9);
    expect(batches).to.deep.equal([[1, 2], [3], [-4, 5]]);
    expect(results).to.deep.equal([2, 4, 6, -8, 10]);
    expect((await doubled([1, 2, 3], Number.POSITIVE_INFINITY, 9)).batches).to.deep.equal([[1, 2, 3]]);
  });

  it("are halved for good if memory runs out, which loses and repeats no song", async () => {
    const { batches, messages, results } = await doubled([1, 2, 3, 4, 5, 6, 7], 6, 2);
    expect(batches).to.deep.equal([[1, 2], [3, 4], [5, 6], [7]]);
    expect(results).to.deep.equal([2, 4, 6, 8, 10, 12, 14]);
    expect(messages).to.deep.equal([
      "out of memory; running 3 songs at a time",
      "out of memory; running 2 songs at a time",
    ]);
  });

  it("fail if memory runs out for a single song", async () => {
    expect(await failureOf(doubled([1, 2], 2, 0))).to.include({ code: "OUT_OF_MEMORY" });
  });
});
