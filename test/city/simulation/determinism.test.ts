import { expect } from "chai";
import { advance, fingerprint, newCity, place, smallTown, zone } from "./towns.js";

describe("the embedded city", () => {
  const play = (seed: number) => {
    const city = newCity("highway", seed);
    smallTown(city);
    advance(city, 4000);
    zone(city, "ResidentialHigh", 200, 40, 60);
    place(city, "Elementary School", 280, -50);
    advance(city, 8000);
    return city;
  };

  it("is the same for the same seed and commands, state for state", () => {
    expect(fingerprint(play(5))).to.equal(fingerprint(play(5)));
  });

  it("differs for another seed, in its land and its people", () => {
    const [one, other] = [play(5), play(6)];
    expect(one.groundHeight(-4000, -4000)).to.not.equal(other.groundHeight(-4000, -4000));
    expect(one.citizenCount).to.be.greaterThan(20);
    expect(other.citizenCount).to.be.greaterThan(20);
    expect(fingerprint(one)).to.not.equal(fingerprint(other));
  });
});
