import { expect } from "chai";
import fc from "fast-check";
import { FRAMES_PER_WEEK } from "../../../src/city/simulation/state/calendar.js";
import { advance, fingerprint, newCity, place, restoreSnapshot, smallTown, zone } from "./towns.js";

const TEN_YEARS_WEEKS = 522;

describe("determinism of the embedded city", () => {
  const play = (seed: number) => {
    const city = newCity("highway", seed);
    smallTown(city);
    advance(city, 4000);
    zone(city, "ResidentialHigh", 200, 40, 60);
    place(city, "Elementary School", 280, -50);
    advance(city, 8000);
    return city;
  };

  it("the same seed and commands give the same states", () => {
    expect(fingerprint(play(5))).to.equal(fingerprint(play(5)));
  });

  it("a seed gives the same city after ten years, with or without saves in between @slow", () => {
    const seeds = fc.integer({ min: 0, max: 0x7fff_ffff });
    const weeks = fc.integer({ min: 1, max: TEN_YEARS_WEEKS });
    const property = fc.property(seeds, weeks, (seed, savedAfter) => {
      const town = newCity("highway", seed);
      smallTown(town);
      advance(town, TEN_YEARS_WEEKS * FRAMES_PER_WEEK);
      const saved = newCity("highway", seed);
      smallTown(saved);
      advance(saved, savedAfter * FRAMES_PER_WEEK);
      const loaded = restoreSnapshot(JSON.parse(fingerprint(saved)));
      loaded.unlimitedMoney = true;
      advance(loaded, (TEN_YEARS_WEEKS - savedAfter) * FRAMES_PER_WEEK);
      expect(Math.max(...loaded.statistics.samples.map(({ citizens }) => citizens))).to.be.greaterThan(10);
      expect(fingerprint(loaded)).to.equal(fingerprint(town));
    });
    fc.assert(property, { numRuns: 2 });
  }).timeout(300_000);

  it("a different seed gives different land and people", () => {
    const [one, other] = [play(5), play(6)];
    expect(one.terrain.groundHeight(-4000, -4000)).to.not.equal(other.terrain.groundHeight(-4000, -4000));
    expect(one.citizens.size).to.be.greaterThan(20);
    expect(other.citizens.size).to.be.greaterThan(20);
    expect(fingerprint(one)).to.not.equal(fingerprint(other));
  });
});
