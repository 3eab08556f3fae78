import { expect } from "chai";
import { bulldoze } from "../../../src/city/commands/bulldoze.js";
import { setTaxRate } from "../../../src/city/commands/set-tax-rate.js";
import type { World } from "../../../src/city/simulation/state/world.js";
import { FLAG, GROWABLE_SERVICES, type Service } from "../../../src/city/terms.js";
import {
  advance,
  bulldozeAll,
  countFlag,
  countProblem,
  findFaults,
  newCity,
  place,
  smallTown,
  zone,
} from "./towns.js";

const WEEK = 4096;

function grownTown(): World {
  const city = newCity();
  smallTown(city);
  place(city, "Cemetery", 450, 120);
  place(city, "Landfill Site", 470, 20);
  advance(city, 4 * WEEK);
  return city;
}

function messageIds(city: World): string[] {
  return city.board.messages.map(({ messageId }) => messageId);
}

describe("growth in the embedded city", () => {
  it("a connected town with all supplies fills with people who work and shop", () => {
    const city = grownTown();
    expect(city.citizens.size).to.be.greaterThan(40);
    const shops = city.buildings.all().filter(({ prefab }) => prefab.service === "Commercial");
    expect(city.citizens.all().filter(({ workId }) => workId !== 0).length).to.be.greaterThan(15);
    expect(shops.reduce((sum, { visitors }) => sum + visitors, 0)).to.be.greaterThan(0);
    expect(countFlag(city, "Abandoned")).to.equal(0);
  });

  it("a town does not grow without demand", () => {
    const city = newCity();
    smallTown(city);
    Object.assign(city.demand, { residential: 0, commercial: 0, workplace: 0 });
    advance(city, 255);
    expect(city.buildings.all().filter(({ prefab }) => prefab.service === "Residential")).to.have.length(0);
  });

  it("a town does not grow without a road to the map edge", () => {
    const city = newCity("empty");
    smallTown(city);
    advance(city, 2 * WEEK);
    expect(city.buildings.all().length).to.be.greaterThan(8);
    expect(city.citizens.size).to.equal(0);
    expect(city.board.messages.some(({ text }) => text.includes("no road leads here"))).to.equal(true);
  });

  it("only homes near schools, parks and clinics level up @slow", () => {
    const levels = (city: World) =>
      city.buildings
        .all()
        .reduce((best, { prefab }) => Math.max(best, isGrowable(prefab.service) ? prefab.level : 0), 0);
    const poor = grownTown();
    const rich = grownTown();
    for (const [i, prefab] of [
      "Elementary School",
      "High School",
      "University",
      "Medical Clinic",
      "Police Station",
      "Fire House",
    ].entries()) {
      place(rich, prefab, 190 + (i % 3) * 80, i < 3 ? -40 : 115);
    }
    place(rich, "Regular Park", 425, 170);
    place(rich, "Wind Turbine", 270, -105);
    advance(poor, 156 * WEEK);
    advance(rich, 156 * WEEK);
    expect(levels(rich)).to.be.greaterThan(levels(poor));
    expect(levels(rich)).to.be.at.least(3);
    expect(findFaults(rich)).to.deep.equal([]);
  });
});

describe("decline in the embedded city", () => {
  it("without power, buildings get a problem, then a major problem, are abandoned, and collapse", () => {
    const city = grownTown();
    bulldozeAll(city, "Wind Turbine");
    advance(city, WEEK);
    const dark = city.buildings.all().filter(({ problems }) => problems.names.includes("Electricity"));
    expect(dark.length).to.be.greaterThan(5);
    expect(dark.every(({ problems }) => problems.severity === "warning")).to.equal(true);
    advance(city, 8 * WEEK);
    expect(dark.filter(({ problems }) => problems.severity === "major").length).to.be.greaterThan(5);
    advance(city, 24 * WEEK);
    expect(countFlag(city, "Abandoned")).to.be.greaterThan(2);
    expect(
      dark.filter(({ flags }) => (flags & FLAG.Abandoned) !== 0 && (flags & FLAG.Active) !== 0),
    ).to.deep.equal([]);
    expect(messageIds(city)).to.include.members(["CHIRP_NO_ELECTRICITY", "CHIRP_ABANDONED_BUILDINGS"]);
    let collapsed = 0;
    for (let week = 0; week < 60; week++) {
      advance(city, WEEK);
      collapsed = Math.max(collapsed, countFlag(city, "Collapsed"));
    }
    expect(collapsed).to.be.greaterThan(0);
    expect(dark.filter((building) => city.buildings.get(building.id) === building)).to.have.length.below(6);
  });

  it("a lack of water makes a town decline", () => {
    const city = grownTown();
    bulldozeAll(city, "Water Tower");
    const abandoned = new Set<number>();
    for (let week = 0; week < 36; week++) {
      advance(city, WEEK);
      for (const { id, flags } of city.buildings.all()) if ((flags & FLAG.Abandoned) !== 0) abandoned.add(id);
    }
    expect(abandoned.size).to.be.greaterThan(5);
    expect(messageIds(city)).to.include("CHIRP_NO_WATER");
  });

  it("the loss of its road makes a town decline", () => {
    const city = grownTown();
    const active = countFlag(city, "Active");
    for (const { id, prefab } of city.segments.all()) {
      if (prefab.name !== "Basic Road") continue;
      bulldoze.act(city, { dryRun: false, entityType: "netSegment", id, keepNodes: false });
    }
    advance(city, 600);
    expect(countProblem(city, "RoadNotConnected")).to.be.greaterThan(8);
    expect(countFlag(city, "RoadAccessFailed")).to.equal(countProblem(city, "RoadNotConnected"));
    // Owners abandon their buildings after at most 52 weeks.
    advance(city, 54 * WEEK);
    expect(countFlag(city, "Active")).to.be.lessThan(active / 2);
  });

  it("high taxes make a town decline, moderate ones do not", () => {
    const abandonedAt = (rate: number) => {
      const city = grownTown();
      const filters = { service: "", subService: "", level: "" };
      setTaxRate.act(city, { dryRun: false, rate, ...filters });
      advance(city, 2 * WEEK);
      const protests = countProblem(city, "TaxesTooHigh");
      advance(city, 30 * WEEK);
      return { protests, citizens: city.citizens.size };
    };
    const fair = abandonedAt(10);
    expect(fair.protests).to.equal(0);
    expect(fair.citizens).to.be.greaterThan(25);
    const dear = abandonedAt(25);
    expect(dear.protests).to.be.greaterThan(5);
    expect(dear.citizens).to.be.within(1, fair.citizens / 2);
  });

  it("homes are abandoned if nobody wants to move in", () => {
    const city = newCity("empty");
    smallTown(city);
    zone(city, "Unzoned", 360, 40, 30);
    place(city, "Landfill Site", 470, 20);
    place(city, "Wind Turbine", 400, -20);
    advance(city, 9 * WEEK);
    expect(countFlag(city, "Abandoned")).to.equal(0);
    advance(city, 28 * WEEK);
    expect(countFlag(city, "Abandoned")).to.be.greaterThan(1);
    expect(city.board.messages.some(({ text }) => text.includes("nobody wanted to move in"))).to.equal(true);
  });

  it("fires make a town without a fire house decline", () => {
    const burn = (withEngines: boolean) => {
      const city = grownTown();
      if (withEngines) place(city, "Fire House", 370, -30);
      const homes = city.buildings
        .all()
        .filter(({ prefab, flags }) => prefab.growable && (flags & FLAG.Active) !== 0);
      for (const home of homes) home.burning = 1;
      advance(city, 8 * 256);
      return countFlag(city, "BurnedDown") / homes.length;
    };
    expect(burn(false)).to.equal(1);
    expect(burn(true)).to.be.lessThan(0.5);
  });
});

function isGrowable(service: Service): boolean {
  return (GROWABLE_SERVICES as readonly Service[]).includes(service);
}
