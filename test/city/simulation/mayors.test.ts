import { expect } from "chai";
import { budgetOf } from "../../../src/city/simulation/life/finance.js";
import { lastYear, MAYORS, type Mayor, NEGLECT_WEEKS, play } from "./mayors.js";
import { findFaults } from "./towns.js";

describe("towns built by scripted mayors", () => {
  for (const seed of [1, 2, 3]) {
    it(`a town with utilities alone has 400 citizens and a surplus within a year, for seed ${seed}`, () => {
      const city = play(MAYORS.starter as Mayor, seed, 1, () => undefined);
      expect(city.citizens.size).to.be.at.least(400);
      const { income, expenses } = city.statistics.samples.at(-1) ?? { income: 0, expenses: 0 };
      expect(income).to.be.greaterThan(expenses);
    });

    it(`a town with utilities alone keeps 340 citizens and its money for ten years, for seed ${seed} @slow`, () => {
      const city = play(MAYORS.starter as Mayor, seed, 10, () => undefined);
      const later = city.statistics.samples.slice(52);
      expect(Math.min(...later.map(({ citizens }) => citizens))).to.be.at.least(340);
      expect(budgetOf(city).balance).to.be.greaterThan(later[0]?.balance as number);
    });
  }

  it("a town that borrows to start with most services reaches 4,000 citizens in 15 months without overdraft @slow", () => {
    const city = play(MAYORS.loans as Mayor, 1, 1.25, () => undefined);
    expect(city.citizens.size).to.be.at.least(4_000);
    expect(Math.min(...city.statistics.samples.map(({ balance }) => balance))).to.be.greaterThan(0);
  }).timeout(900_000);

  for (const [name, way] of [
    ["bars", "following demand and missing services"],
    ["oneByOne", "building one service at a time"],
  ] as const) {
    it(`a town grows steadily to 5,000 citizens in two and a half years by ${way} @slow`, () => {
      const city = play(MAYORS[name] as Mayor, 1, 2.5, () => undefined);
      const year = lastYear(city);
      const shown = JSON.stringify(year);
      expect(year.citizens, shown).to.be.at.least(5_000);
      expect(year.marginPercent, shown).to.be.within(5, 20);
      expect(year.vacancyPercent, shown).to.be.within(3, 15);
      expect(year.departuresPercent, shown).to.be.at.most(20);
      expect(year.educatedPercent, shown).to.be.at.least(50);
      const weeks = city.statistics.samples;
      expect(Math.min(...weeks.map(({ balance }) => balance))).to.be.greaterThan(0);
      expect(year.citizens, shown).to.be.below(1.5 * (weeks.at(-27)?.citizens as number));
      expect(findFaults(city)).to.deep.equal([]);
    }).timeout(900_000);
  }

  it("a town without services loses half its citizens; with services it doubles within a year @slow", () => {
    const city = play(MAYORS.neglectful as Mayor, 1, 7.5, () => undefined);
    const citizens = city.statistics.samples.map((week) => week.citizens);
    const mended = NEGLECT_WEEKS - 1;
    expect(Math.min(...citizens.slice(52, mended)), `${citizens}`).to.be.below(
      Math.max(...citizens.slice(0, 78)) / 2,
    );
    expect(citizens[mended + 52], `${citizens}`).to.be.above(2 * (citizens[mended] as number));
    expect(lastYear(city).vacancyPercent).to.be.within(3, 15);
    expect(lastYear(city).marginPercent).to.be.above(-10);
  }).timeout(900_000);
});
