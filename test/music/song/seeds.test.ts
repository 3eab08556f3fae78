import { expect } from "chai";
import fc from "fast-check";
import { assignSeeds, drawSeed, MAX_SEED, parseSeed } from "../../../src/music/song/seeds.js";

describe("seeds", () => {
  it("are whole numbers up to the core's largest", () => {
    expect(parseSeed(42)).to.equal(42);
    expect(parseSeed("42.9")).to.equal(42);
    expect(parseSeed(MAX_SEED)).to.equal(MAX_SEED);
    expect(parseSeed(MAX_SEED * 2)).to.equal(undefined);
    expect(Object.is(parseSeed("-0"), 0)).to.equal(true);
  });

  it("are random when negative or blank, unreadable otherwise", () => {
    expect([-1, "-1", "", " ", "-7.5"].map(parseSeed)).to.deep.equal([null, null, null, null, null]);
    expect(["abc", "1e", "0x1", "nan", Number.NaN].map(parseSeed)).to.deep.equal(Array(5).fill(undefined));
  });

  it("are drawn from 0 to 2^32 - 1, not all alike", () => {
    const drawn = Array.from({ length: 100 }, drawSeed);
    for (const seed of drawn) expect(seed).to.be.within(0, 2 ** 32 - 1);
    expect(new Set(drawn).size).to.be.above(90);
  });

  it("fill a batch, the given ones in their places", () => {
    const position = fc.option(fc.nat());
    fc.assert(
      fc.property(
        fc.array(position, { maxLength: 10 }),
        fc.integer({ min: 1, max: 8 }),
        (positions, size) => {
          let next = 1_000_000_000_000;
          const seeds = assignSeeds(positions, size, () => next++);
          expect(seeds).to.have.length(size);
          expect(new Set(seeds.filter((seed) => seed >= 1_000_000_000_000)).size).to.equal(
            next - 1_000_000_000_000,
          );
          for (const [i, seed] of seeds.entries()) {
            const given = positions[i] ?? null;
            if (given !== null) expect(seed).to.equal(given);
          }
        },
      ),
    );
  });
});
