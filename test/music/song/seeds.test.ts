import { expect } from "chai";
import fc from "fast-check";
import { assignSeeds, drawSeed, MAX_SEED, parseSeed } from "../../../src/music/song/seeds.js";

describe("parsing and drawing of seeds", () => {
  it("seeds are integers from 0 to 2^64 - 1", () => {
    expect(parseSeed(42)).to.equal(42);
    expect(parseSeed("42.9")).to.equal(42);
    for (const digits of ["9007199254740991", "+9007199254740991"])
      expect(parseSeed(digits)).to.equal(2 ** 53 - 1);
    for (const digits of ["9007199254740993", "18446744073709551615"]) {
      expect(parseSeed(digits)).to.equal(digits);
      expect(parseSeed(`000000000${digits}`)).to.equal(digits);
    }
    expect(parseSeed(2 ** 60)).to.equal("1152921504606846976");
    for (const beyond of [String(MAX_SEED + 1n), 2 ** 64, "1e20", "9".repeat(900_000), "1e999"]) {
      expect(parseSeed(beyond)).to.equal(undefined);
    }
    expect(Object.is(parseSeed("-0"), 0)).to.equal(true);
  });

  it("a negative or blank seed means a random seed; text that is not a number gives none", () => {
    expect([-1, "-1", "", " ", "-7.5"].map(parseSeed)).to.deep.equal([null, null, null, null, null]);
    expect(["abc", "1e", "0x1", "nan", Number.NaN].map(parseSeed)).to.deep.equal(Array(5).fill(undefined));
  });

  it("random seeds are from 0 to 2^32 - 1", () => {
    const drawn = Array.from({ length: 100 }, drawSeed);
    for (const seed of drawn) expect(seed).to.be.within(0, 2 ** 32 - 1);
    expect(new Set(drawn).size).to.be.above(90);
  });

  it("random seeds fill the missing positions of a batch", () => {
    const position = fc.option(fc.nat());
    fc.assert(
      fc.property(
        fc.array(position, { maxLength: 10 }),
        fc.integer({ min: 1, max: 8 }),
        (positions, size) => {
          let next = 1_000_000_000_000;
          const seeds = assignSeeds(positions, size, () => next++);
          expect(seeds).to.have.length(size);
          expect(new Set(seeds.filter((seed) => Number(seed) >= 1_000_000_000_000)).size).to.equal(
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
