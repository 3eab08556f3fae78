/** Traffic of people and goods, and its effect on a town. */

import { expect } from "chai";
import { setBuildingEmptying } from "../../../src/city/commands/buildings.js";
import { bulldoze } from "../../../src/city/commands/bulldoze.js";
import { buildNetwork } from "../../../src/city/commands/roads.js";
import { RefusedError } from "../../../src/city/refusal.js";
import { trafficOf } from "../../../src/city/simulation/life/traffic.js";
import type { World } from "../../../src/city/simulation/state/world.js";
import {
  advance,
  connectToHighway,
  findFaults,
  layLattice,
  newCity,
  place,
  road,
  supply,
  zone,
} from "./towns.js";

const WEEK = 4096;

/** Homes in the west, jobs and shops in the east, joined by one road of the given prefab. */
function twoTowns(between: string): { city: World; bridgeId: number } {
  const city = newCity();
  layLattice(city, -640, 0, 4, 2);
  layLattice(city, 160, 0, 3, 2);
  const bridgeId = buildNetwork.act(city, road(-320, 80, 160, 80, between)).segmentId as number;
  buildNetwork.act(city, road(400, 160, 400, 300));
  connectToHighway(city, 400, 300);
  supply(city, -640, 40, 400);
  buildNetwork.act(city, road(-660, 60, -660, 120, "Power Line"));
  for (const z of [50, 80, 110]) place(city, "Wind Turbine", -700, z);
  place(city, "Fusion Power Plant", -760, 200);
  for (const x of [-320, 160]) buildNetwork.act(city, road(x, 60, x + 480, 60, "Power Line"));
  buildNetwork.act(city, road(-660, 60, -320, 60, "Power Line"));
  for (let x = -600; x < -320; x += 80) {
    for (const z of [40, 120]) zone(city, "ResidentialHigh", x, z, 44);
  }
  for (const z of [40, 120]) zone(city, "CommercialLow", 200, z, 30);
  for (const x of [280, 360]) for (const z of [40, 120]) zone(city, "Industrial", x, z, 44);
  return { city, bridgeId };
}

function meanCommute(city: World): number {
  const homes = city.buildings.all().filter(({ commute }) => commute > 0);
  return homes.reduce((sum, { commute }) => sum + commute, 0) / homes.length;
}

describe("traffic in the embedded city", () => {
  it("traffic slows down on the only road to work, and flows better on a wider one @slow", () => {
    const [narrow, wide] = ["Gravel Road", "Large Road"].map((prefab) => {
      const { city, bridgeId } = twoTowns(prefab);
      advance(city, 26 * WEEK);
      const traffic = trafficOf(city.segments.at(bridgeId));
      if (!traffic) throw new Error("the road has no traffic data");
      expect(city.citizens.all().filter(({ workId }) => workId !== 0).length).to.be.greaterThan(20);
      expect(findFaults(city)).to.deep.equal([]);
      return { city, traffic };
    });
    if (!narrow || !wide) throw new Error("expected two towns");
    expect(narrow.traffic.volumePerHour).to.be.greaterThan(10);
    expect(narrow.traffic.freeSpeedKmh).to.be.lessThan(wide.traffic.freeSpeedKmh);
    expect(narrow.traffic.capacityPerHour).to.be.lessThan(wide.traffic.capacityPerHour);
    expect(narrow.traffic.densityPercent).to.be.greaterThan(wide.traffic.densityPercent);
    expect(meanCommute(narrow.city)).to.be.greaterThan(meanCommute(wide.city));
  });

  it("an overloaded road lowers speed, happiness and land value", () => {
    const [calm, jammed] = [twoTowns("Basic Road"), twoTowns("Basic Road")];
    for (const { city } of [calm, jammed]) advance(city, 20 * WEEK);
    for (let cycle = 0; cycle < 6 * 16; cycle++) {
      jammed.city.segments.at(jammed.bridgeId).traffic.volume = 8 * 1_400;
      advance(jammed.city, 256);
    }
    advance(calm.city, 6 * WEEK);
    expect(meanCommute(jammed.city)).to.be.greaterThan(1.5 * meanCommute(calm.city));
    const happiness = ({ city }: typeof calm) => city.statistics.samples.at(-1)?.happiness ?? 0;
    expect(happiness(jammed)).to.be.lessThan(happiness(calm));
    advance(jammed.city, 4 * WEEK);
    const speed = ({ city, bridgeId }: typeof calm) => trafficOf(city.segments.at(bridgeId))?.speedKmh ?? 0;
    expect(speed(jammed)).to.be.closeTo(speed(calm), 0.3 * speed(calm));
  });

  it("people lose their jobs when the road to work is removed, until it is rebuilt", () => {
    const { city, bridgeId } = twoTowns("Basic Road");
    advance(city, 20 * WEEK);
    const workers = () => city.citizens.all().filter(({ workId }) => workId !== 0).length;
    const employed = workers();
    bulldoze.act(city, { dryRun: false, entityType: "netSegment", id: bridgeId, keepNodes: true });
    advance(city, WEEK);
    expect(workers()).to.be.lessThan(employed / 4);
    buildNetwork.act(city, road(-320, 80, 160, 80));
    advance(city, 2 * WEEK);
    expect(workers()).to.be.greaterThan(employed / 2);
  });

  it("pipes have no traffic", () => {
    const city = newCity("empty");
    const { segmentId } = buildNetwork.act(city, road(0, 0, 80, 0, "Water Pipe"));
    expect(trafficOf(city.segments.at(segmentId as number))).to.equal(undefined);
  });
});

describe("transport of goods by road", () => {
  it("a power plant cut off from the map edge runs out of fuel after weeks, and restarts when reconnected", () => {
    const city = newCity();
    const cut = buildNetwork.act(city, road(400, 220, 400, 300)).segmentId as number;
    buildNetwork.act(city, road(320, 220, 400, 220));
    connectToHighway(city, 400, 300);
    const plant = city.buildings.at(place(city, "Coal Power Plant", 350, 180));
    const noFuel = () => plant.problems.names.includes("NoFuel");
    advance(city, 6 * WEEK);
    expect(noFuel()).to.equal(false);
    bulldoze.act(city, { dryRun: false, entityType: "netSegment", id: cut, keepNodes: true });
    advance(city, WEEK);
    expect(noFuel()).to.equal(false);
    advance(city, 5 * WEEK);
    expect(noFuel()).to.equal(true);
    buildNetwork.act(city, road(400, 220, 400, 300));
    advance(city, WEEK);
    expect(noFuel()).to.equal(false);
  });

  it("a full landfill serves nobody until it is emptied by road", () => {
    const city = newCity();
    buildNetwork.act(city, road(320, 220, 400, 220));
    buildNetwork.act(city, road(400, 220, 400, 300));
    connectToHighway(city, 400, 300);
    place(city, "Wind Turbine", 300, 180);
    const site = city.buildings.at(place(city, "Landfill Site", 360, 160));
    advance(city, WEEK);
    site.stored = 200_000;
    advance(city, 256);
    expect(site.problems.names).to.include("LandfillFull");
    setBuildingEmptying.act(city, { id: site.id, emptying: true });
    advance(city, 13 * WEEK);
    expect(site.stored).to.be.within(80_000, 120_000);
    expect(site.problems.names).to.include("Emptying").and.not.include("LandfillFull");
    advance(city, 14 * WEEK);
    expect(site.stored).to.equal(0);
    const turbine = { id: site.id - 1, emptying: true };
    expect(() => setBuildingEmptying.act(city, turbine)).to.throw(RefusedError, /has no storage to empty/);
  });

  it("a town whose shops are cut off from the map edge declines gradually, and recovers when reconnected @slow", () => {
    const { city } = twoTowns("Medium Road");
    advance(city, 30 * WEEK);
    const citizens = city.citizens.size;
    const links = city.segments.all().filter(({ prefab, start, end }) => {
      return prefab.name === "Basic Road" && Math.min(start.z, end.z) === 300;
    });
    expect(links).to.have.length(2);
    for (const { id } of links) {
      bulldoze.act(city, { dryRun: false, entityType: "netSegment", id, keepNodes: true });
    }
    advance(city, 13 * WEEK);
    expect(city.citizens.size).to.be.greaterThan(citizens / 3);
    advance(city, 13 * WEEK);
    const low = city.citizens.size;
    expect(low).to.be.within(1, 0.9 * citizens);
    connectToHighway(city, 400, 300);
    advance(city, 20 * WEEK);
    expect(city.citizens.size).to.be.greaterThan(low);
  });
});
