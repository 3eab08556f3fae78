import { expect } from "chai";
import { moveBuilding, setBuildingActive } from "../../../src/city/commands/buildings.js";
import { bulldoze } from "../../../src/city/commands/bulldoze.js";
import { buildNetwork } from "../../../src/city/commands/roads.js";
import { requestServiceQuality } from "../../../src/city/simulation/life/services.js";
import type { World } from "../../../src/city/simulation/state/world.js";
import { advance, countProblem, newCity, place, road, smallTown } from "./towns.js";

const CYCLE = 256;

/** A town with one working fire house. */
function town(): { city: World; fireHouse: number } {
  const city = newCity();
  smallTown(city);
  const fireHouse = place(city, "Fire House", 420, 60);
  place(city, "Wind Turbine", 440, 90);
  advance(city, 3 * CYCLE);
  return { city, fireHouse };
}

/** Quality of the fire service at a building, 0 to 1. */
function fireCover(city: World, id: number): number {
  return requestServiceQuality(city, city.buildings.at(id), "fire", 1);
}

describe("public services in the embedded city", () => {
  it("services reach buildings along roads: fully nearby, less with distance, not at all without a connection", () => {
    const { city } = town();
    for (let x = 400; x < 4400; x += 80) buildNetwork.act(city, road(x, 80, x + 80, 80));
    buildNetwork.act(city, road(360, -200, 440, -200));
    const at = (x: number, z: number) => place(city, "Electricity Pole", x, z);
    const [near, far, beyond, elsewhere] = [at(1300, 95), at(2200, 95), at(4300, 95), at(420, -215)] as const;
    advance(city, CYCLE);
    expect(fireCover(city, near)).to.equal(1);
    expect(fireCover(city, far)).to.be.within(0.2, 0.9);
    expect(fireCover(city, beyond)).to.equal(0);
    expect(fireCover(city, elsewhere)).to.equal(0);
    buildNetwork.act(city, road(440, -200, 480, 80));
    advance(city, CYCLE);
    expect(fireCover(city, elsewhere)).to.equal(1);
  });

  it("a service loses quality if demand exceeds its capacity", () => {
    const { city } = town();
    const home = place(city, "Water Tower", 300, 60);
    for (let i = 0; i < 600; i++) fireCover(city, home);
    expect(fireCover(city, home)).to.equal(1);
    advance(city, CYCLE);
    expect(fireCover(city, home)).to.be.within(0.4, 0.6);
    advance(city, 2 * CYCLE);
    expect(fireCover(city, home)).to.equal(1);
  });

  it("people go to the next provider if the nearest one is full", () => {
    const { city, fireHouse } = town();
    for (let x = 400; x < 1600; x += 80) buildNetwork.act(city, road(x, 80, x + 80, 80));
    const second = place(city, "Fire House", 1400, 60);
    buildNetwork.act(city, road(400, 40, 1440, 40, "Water Pipe"));
    place(city, "Wind Turbine", 1420, 20);
    const homes = [600, 800].map((x) => city.buildings.at(place(city, "Electricity Pole", x, 95)));
    const { capacity } = city.buildings.at(second).prefab.civic?.coverage ?? { capacity: 0 };
    const qualities = () => homes.map((home) => requestServiceQuality(city, home, "fire", capacity));
    const loads = () =>
      [fireHouse, second].map((id) => Math.round(city.buildings.at(id).lastLoad / capacity));
    advance(city, CYCLE);
    qualities();
    advance(city, CYCLE);
    expect(loads()).to.deep.equal([2, 0]);
    for (let cycle = 0; cycle < 20; cycle++) {
      qualities();
      advance(city, CYCLE);
    }
    expect(loads()).to.deep.equal([1, 1]);
    for (const quality of qualities()) expect(quality).to.be.above(0.95);
  });

  it("homes report uncollected dead if there is no cemetery", () => {
    const { city } = town();
    advance(city, 32 * CYCLE);
    for (const citizen of city.citizens.all()) Object.assign(citizen, { bornFrame: -5_000_000 });
    advance(city, 2 * CYCLE);
    expect(countProblem(city, "Death")).to.be.greaterThan(3);
  });

  it("visitors are shared among all parks in walking distance", () => {
    const city = newCity("empty");
    const home = city.buildings.at(place(city, "Water Tower", 0, 0));
    for (const x of [0, 600]) place(city, "Wind Turbine", x, 40);
    const far = place(city, "Regular Park", 600, 0);
    const leisure = (visitors: number) => {
      requestServiceQuality(city, home, "leisure", visitors);
      advance(city, CYCLE);
      return requestServiceQuality(city, home, "leisure", 0);
    };
    expect(leisure(1)).to.equal(0);
    const parks = [40, -40].map((x) => place(city, "Regular Park", x, 0));
    expect(leisure(1_200)).to.equal(1);
    expect(parks.map((id) => city.buildings.at(id).lastLoad)).to.deep.equal([600, 600]);
    expect(leisure(2_400)).to.equal(0.5);
    expect(city.buildings.at(far).lastLoad).to.equal(0);
  });

  it("a service serves nobody if it is switched off, or has no power or no road", () => {
    const outcomes = [
      (city: World, id: number) => setBuildingActive.act(city, { id, active: false }),
      (city: World) => {
        for (const { id, prefab } of city.buildings.all()) {
          if (prefab.name !== "Wind Turbine") continue;
          bulldoze.act(city, { dryRun: false, entityType: "building", id, keepNodes: false });
        }
      },
      (city: World) => {
        for (const { id } of city.segments.all().filter(({ prefab }) => prefab.name === "Basic Road")) {
          bulldoze.act(city, { dryRun: false, entityType: "netSegment", id, keepNodes: false });
        }
      },
    ].map((spoil) => {
      const { city, fireHouse } = town();
      const home = place(city, "Electricity Pole", 200, 60);
      expect(fireCover(city, home)).to.equal(1);
      spoil(city, fireHouse);
      advance(city, 2 * CYCLE);
      return fireCover(city, home);
    });
    expect(outcomes).to.deep.equal([0, 0, 0]);
  });

  it("a service building costs its price once, a fifth of the price per move, and upkeep while it is switched on", () => {
    const city = newCity("empty");
    buildNetwork.act(city, road(0, 0, 80, 0));
    const { totals } = city.ledger;
    const built = totals.Construction as number;
    const id = place(city, "Fire House", 40, 30);
    expect((totals.Construction as number) - built).to.equal(12_000 * 100);
    advance(city, 4096);
    expect(totals.FireDepartment).to.equal(560 * 100);
    setBuildingActive.act(city, { id, active: false });
    advance(city, 4096);
    expect(totals.FireDepartment).to.equal(560 * 100);
    const move = { dryRun: false, id, position: { x: 40, z: -30 } };
    moveBuilding.act(city, { ...move, angleDegrees: null, strict: false });
    expect((totals.Construction as number) - built).to.equal((12_000 + 2_400) * 100);
  });
});
