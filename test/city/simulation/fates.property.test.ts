/** Tests that towns develop gradually over years, and differently for each household and owner. */

import { expect } from "chai";
import { setBuildingActive, setBuildingEmptying } from "../../../src/city/commands/buildings.js";
import { setTaxRate } from "../../../src/city/commands/set-tax-rate.js";
import { AGE_LIMITS, ageInUnits } from "../../../src/city/simulation/fabric/citizens.js";
import type { World } from "../../../src/city/simulation/state/world.js";
import { FLAG } from "../../../src/city/terms.js";
import {
  advance,
  bulldozeAll,
  countFlag,
  countProblem,
  findFaults,
  fingerprint,
  firstTown,
  homesOnly,
  newCity,
  restoreSnapshot,
  servedTown,
  settleByForce,
  smallTown,
  TOWN_SERVICES,
} from "./towns.js";

const WEEK = 4096;
/** Maximum share of the people that may leave within a week. */
const STEEPEST_WEEK = 0.15;

describe("changes of the population in a town with all services", () => {
  let grown: string;
  /** Number of citizens in each week of half a year without commands. */
  let untouched: number[];
  let untouchedHappiness: number;

  before(() => {
    const city = servedTown();
    advance(city, 26 * WEEK);
    grown = fingerprint(city);
    const same = grownCopy();
    untouched = course(same, 26);
    untouchedHappiness = happinessOf(same);
  });

  function grownCopy(): World {
    const city = restoreSnapshot(JSON.parse(grown));
    city.unlimitedMoney = true;
    return city;
  }

  it("the population grows gradually without commands", () => {
    expect(untouched[0]).to.be.greaterThan(500);
    expect(untouched.at(-1)).to.be.greaterThan(untouched[0] as number);
    expect(steepestLoss(untouched)).to.be.lessThan(0.05);
  });

  it("the population falls smoothly as the tax rate rises from 0 to 29 percent @slow", () => {
    const rates = [0, 9, 14, 19, 29];
    const ends = rates.map((rate) => {
      const city = grownCopy();
      const everything = { service: "", subService: "", level: "" };
      setTaxRate.act(city, { dryRun: false, rate, ...everything });
      const citizens = course(city, 30);
      expect(steepestLoss(citizens), `a week at ${rate} %`).to.be.lessThan(STEEPEST_WEEK);
      return mean(citizens.slice(-10));
    });
    ends.forEach((citizens, i) => {
      const before = ends[i - 1] ?? citizens;
      expect(citizens, `${rates[i]} % against ${rates[i - 1]} %: ${ends}`).to.be.at.most(1.05 * before);
      expect(citizens, `${rates[i]} % against ${rates[i - 1]} %: ${ends}`).to.be.at.least(0.5 * before);
    });
    const [, usual = 0, fair = 0, dear = 0, dearest = 0] = ends;
    expect(usual, `${ends}`).to.be.at.least(fair);
    expect(fair, `${ends}`).to.be.greaterThan(1.05 * dear);
    expect(dear, `${ends}`).to.be.greaterThan(1.05 * dearest);
    expect(dearest).to.be.greaterThan(0);
  });

  for (const prefab of new Set(TOWN_SERVICES.map(([name]) => name))) {
    it(`the loss of every ${prefab} lowers happiness or population, but people leave gradually @slow`, () => {
      const city = grownCopy();
      bulldozeAll(city, prefab);
      const citizens = course(city, 13);
      expect(citizens.at(-1), `${citizens}`).to.be.greaterThan(0.1 * (citizens[0] as number));
      const year = [...citizens, ...course(city, 13)];
      expect(steepestLoss(citizens), `${citizens}`).to.be.lessThan(STEEPEST_WEEK);
      const isFelt = happinessOf(city) < untouchedHappiness - 0.3;
      expect(isFelt || mean(year.slice(-10)) < 0.98 * mean(untouched.slice(-10)), `${year}`).to.equal(true);
    });
  }

  it("buildings are abandoned on different days after a power cut", () => {
    const city = grownCopy();
    bulldozeAll(city, "Wind Turbine");
    const fellDown = new Map<number, number>();
    const gaveUp = new Map<number, number>();
    for (let day = 0; day < 36 * 7; day++) {
      advance(city, Math.round(WEEK / 7));
      for (const { id, flags } of city.buildings.all()) {
        if ((flags & FLAG.Abandoned) !== 0 && !gaveUp.has(id)) gaveUp.set(id, day);
        if ((flags & FLAG.Collapsed) !== 0 && !fellDown.has(id)) fellDown.set(id, day);
      }
    }
    for (const dates of [gaveUp, fellDown]) {
      expect(dates.size).to.be.greaterThan(10);
      const perDay = [...dates.values()].map(
        (day) => [...dates.values()].filter((each) => each === day).length,
      );
      expect(Math.max(...perDay), `${[...dates.values()]}`).to.be.at.most(Math.max(4, dates.size / 15));
    }
  });

  it("the population recovers once the cause of its decline is gone @slow", () => {
    const city = grownCopy();
    const pump = city.buildings.all().find(({ prefab }) => prefab.name === "Water Tower");
    if (!pump) throw new Error("the town has no water");
    setBuildingActive.act(city, { id: pump.id, active: false });
    advance(city, 20 * WEEK);
    const low = city.citizens.size;
    const abandoned = countFlag(city, "Abandoned");
    expect(abandoned).to.be.greaterThan(5);
    setBuildingActive.act(city, { id: pump.id, active: true });
    advance(city, 20 * WEEK);
    expect(countFlag(city, "Abandoned")).to.be.lessThan(abandoned);
    expect(city.citizens.size).to.be.greaterThan(1.2 * low);
    expect(countProblem(city, "Water")).to.be.at.most(countFlag(city, "Abandoned"));
    expect(findFaults(city)).to.deep.equal([]);
  });
});

describe("growth of a first town", () => {
  for (const seed of [1, 2, 3]) {
    it(`a first town grows over a year without commands, for seed ${seed}`, () => {
      const city = firstTown(seed);
      advance(city, 7200);
      const early = city.citizens.size;
      expect(early).to.be.greaterThan(0);
      const citizens = course(city, 52);
      expect(Math.min(...citizens)).to.be.at.least(5);
      expect(mean(citizens.slice(-8)), `${early}: ${citizens}`).to.be.greaterThan(early);
      expect(countFlag(city, "Abandoned")).to.equal(0);
    });
  }
});

describe("how fast education and home levels rise in a town with all services", () => {
  for (const seed of [7, 8]) {
    it(`a town with all services educates citizens slowly, and few homes reach level 5, for seed ${seed} @slow`, () => {
      const city = servedTown(seed);
      advance(city, 104 * WEEK);
      const { citizens, graduates } = city.statistics.samples.at(-1) ?? { citizens: 0, graduates: 0 };
      expect(citizens).to.be.greaterThan(500);
      expect(graduates).to.be.within(5, 40);
      const levels = city.buildings
        .all()
        .filter(({ prefab }) => prefab.growable && prefab.service === "Residential")
        .map(({ prefab }) => prefab.level);
      expect(levels.filter((level) => level === 5).length, `${levels}`).to.be.lessThan(levels.length / 5);
      expect(new Set(levels).size, `${levels}`).to.be.greaterThan(2);
    });
  }

  it("a full cemetery takes the dead again once it is emptied @slow", () => {
    const city = servedTown();
    const [cemetery] = city.providers.get("death")?.items ?? [];
    if (!cemetery) throw new Error("the town has no cemetery");
    const liveAYear = () => {
      const year = { deaths: 0, weeksOfUnburied: 0 };
      for (let week = 0; week < 52; week++) {
        advance(city, WEEK);
        year.deaths += city.statistics.samples.at(-1)?.deaths ?? 0;
        if (countProblem(city, "Death") > 0) year.weeksOfUnburied++;
      }
      return year;
    };
    let dead = 0;
    for (let year = 1; year <= 2; year++) {
      const before = cemetery.stored;
      const { deaths, weeksOfUnburied } = liveAYear();
      dead += deaths;
      expect(cemetery.stored).to.be.greaterThan(before);
      expect(cemetery.stored, "one grave for each of the dead").to.be.within(0.8 * dead, dead);
      expect(weeksOfUnburied).to.be.lessThan(5);
    }
    const graves = 3000;
    cemetery.stored = graves;
    expect(liveAYear().weeksOfUnburied).to.be.greaterThan(10);
    expect(cemetery.stored).to.equal(graves);
    setBuildingEmptying.act(city, { id: cemetery.id, emptying: true });
    advance(city, 27 * WEEK);
    expect(cemetery.stored).to.equal(0);
    expect(cemetery.problems.names).to.include("EmptyingFinished");
    setBuildingEmptying.act(city, { id: cemetery.id, emptying: false });
    advance(city, 4 * WEEK);
    expect(cemetery.stored).to.be.greaterThan(0);
  });
});

describe("growth of families and housing demand", () => {
  it("grown children move into free homes in their street, each with a partner of the same age", () => {
    const city = newCity();
    homesOnly(city);
    settleByForce(city, 300);
    const { citizens, households, frame } = city;
    const children = citizens.all().filter((citizen) => ageInUnits(citizen, frame) < AGE_LIMITS.adult);
    const parentsOf = new Map(children.map(({ id, householdId }) => [id, householdId]));
    for (const citizen of citizens.all()) {
      Object.assign(citizen, { bornFrame: frame - (parentsOf.has(citizen.id) ? 80 : 200) * WEEK });
    }
    advance(city, 4 * WEEK);
    const couples = children
      .filter(({ id }) => citizens.get(id) && citizens.at(id).householdId !== parentsOf.get(id))
      .map(({ householdId }) => households.at(householdId).memberIds.map((id) => citizens.at(id)));
    expect(couples.length).to.be.greaterThan(5);
    for (const [child, partner] of couples)
      expect(partner?.bornFrame).to.be.closeTo(child?.bornFrame as number, 1);
    expect(findFaults(city)).to.deep.equal([]);
  });

  it("demand falls with each new house, so that homes do not outnumber new residents", () => {
    const city = newCity();
    smallTown(city);
    const before = { ...city.demand };
    advance(city, 255);
    const begun = city.buildings.all().filter(({ prefab }) => prefab.service === "Residential").length;
    expect(begun).to.be.greaterThan(1);
    expect(city.demand.residential).to.be.lessThan(before.residential - begun);
    const served = servedTown();
    let houses = 0;
    for (let week = 0; week < 12; week++) {
      advance(served, WEEK);
      const now = served.buildings.all().filter(({ prefab }) => prefab.service === "Residential").length;
      if (week > 0) expect(now - houses).to.be.lessThan(20);
      houses = now;
    }
    expect(houses).to.be.greaterThan(40);
    expect(countFlag(served, "Abandoned")).to.equal(0);
  });
});

function course(city: World, weeks: number): number[] {
  return Array.from({ length: weeks }, () => {
    advance(city, WEEK);
    return city.citizens.size;
  });
}

function happinessOf(city: World): number {
  return city.statistics.samples.at(-1)?.happiness ?? 0;
}

/** Largest share of the population that left within one week. */
function steepestLoss(citizens: readonly number[]): number {
  const losses = citizens.map((count, i) => {
    const before = citizens[i - 1] ?? count;
    return before < 40 ? 0 : (before - count) / before;
  });
  return Math.max(...losses);
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
