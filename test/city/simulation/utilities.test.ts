import { expect } from "chai";
import { setBuildingActive } from "../../../src/city/commands/buildings.js";
import { bulldoze } from "../../../src/city/commands/bulldoze.js";
import { buildNetwork } from "../../../src/city/commands/roads.js";
import type { Building } from "../../../src/city/simulation/state/entities.js";
import type { World } from "../../../src/city/simulation/state/world.js";
import { powerNeedKw } from "../../../src/city/simulation/utilities/electricity.js";
import { waterNeedM3 } from "../../../src/city/simulation/utilities/pipes.js";
import {
  advance,
  connectToHighway,
  countProblem,
  layLattice,
  newCity,
  paintCells,
  place,
  road,
  zone,
} from "./towns.js";

const WEEK = 4096;

/** Homes along one street, connected to the outside, without any utility. */
function bareStreet(): World {
  const city = newCity();
  layLattice(city, 160, 0, 3, 1);
  buildNetwork.act(city, road(400, 80, 400, 300));
  connectToHighway(city, 400, 300);
  zone(city, "ResidentialLow", 200, 40, 60);
  return city;
}

function homes(city: World): number {
  return city.buildings.all().filter(({ prefab }) => prefab.service === "Residential").length;
}

describe("the embedded city's utilities", () => {
  it("homes get no power, water or drains while there are no plants", () => {
    const city = bareStreet();
    advance(city, WEEK);
    expect(homes(city)).to.be.greaterThan(3);
    expect(countProblem(city, "Electricity")).to.equal(homes(city));
    expect(countProblem(city, "Water")).to.equal(homes(city));
    expect(countProblem(city, "Sewage")).to.equal(homes(city));
  });

  it("power reaches homes over a power line until it is cut", () => {
    const city = bareStreet();
    place(city, "Wind Turbine", -300, 40);
    const line = buildNetwork.act(city, road(-290, 40, 150, 40, "Power Line"));
    advance(city, WEEK);
    expect(countProblem(city, "Electricity")).to.equal(0);
    bulldoze.act(city, {
      dryRun: false,
      entityType: "netSegment",
      id: line?.segmentId as number,
      keepNodes: false,
    });
    advance(city, 600);
    expect(countProblem(city, "Electricity")).to.equal(homes(city));
  });

  it("power spreads from building to building, but not across open land", () => {
    const city = bareStreet();
    place(city, "Wind Turbine", 140, 40);
    place(city, "Medical Clinic", 2000, -1500);
    advance(city, WEEK);
    const dark = city.buildings.all().filter(({ problems }) => problems.names.includes("Electricity"));
    expect(dark.map(({ prefab }) => prefab.name)).to.deep.equal(["Medical Clinic"]);
  });

  it("water flows only through joined pipes", () => {
    const city = bareStreet();
    place(city, "Wind Turbine", 140, 40);
    place(city, "Wind Turbine", -300, 0);
    place(city, "Water Tower", -300, 40);
    place(city, "Inland Water Treatment Plant 01", -300, 80);
    buildNetwork.act(city, road(-300, 40, -300, 84, "Basic Road"));
    buildNetwork.act(city, road(-300, 40, 0, 40, "Water Pipe"));
    buildNetwork.act(city, road(10, 40, 400, 40, "Water Pipe"));
    advance(city, WEEK);
    expect(countProblem(city, "Water")).to.be.greaterThan(3);
    const ends = city.nodes.all().filter(({ problems }) => problems.names.includes("WaterNotConnected"));
    expect(ends.map(({ position }) => position.x)).to.deep.equal([10, 400]);
    buildNetwork.act(city, road(0, 40, 10, 40, "Water Pipe"));
    advance(city, 600);
    expect(countProblem(city, "Water")).to.equal(0);
    expect(countProblem(city, "Sewage")).to.equal(0);
  });

  it("water use is proportional to households, workers and visitors; empty buildings use a little", () => {
    const city = bareStreet();
    advance(city, WEEK);
    const [building] = city.buildings.all() as [Building];
    const need = (households: number, workers: number, visitors: number) => {
      const [householdIds, workerIds] = [Array(households).fill(1), Array(workers).fill(1)];
      return waterNeedM3({ ...building, householdIds, workerIds, visitors });
    };
    expect([need(0, 0, 0), need(2, 0, 0), need(0, 3, 0), need(0, 0, 5)]).to.deep.equal([1, 90, 24, 10]);
    expect(need(2, 3, 5)).to.equal(90 + 24 + 10);
  });

  it("a water intake works at the river, not on dry land", () => {
    const dryHomes = (pumpX: number) => {
      const city = bareStreet();
      place(city, "Wind Turbine", 140, 40);
      place(city, "Wind Turbine", pumpX, 40);
      place(city, "Water Intake", pumpX, 0);
      buildNetwork.act(city, road(160, 0, pumpX, 0, "Water Pipe"));
      advance(city, WEEK);
      return countProblem(city, "Water") / homes(city);
    };
    const world = newCity();
    let bank = 640;
    while (!world.terrain.isWater(bank, 0)) bank += 4;
    expect(dryHomes(bank - 8)).to.equal(0);
    expect(dryHomes(bank - 200)).to.equal(1);
  });

  it("a shortage leaves the farthest homes unserved", () => {
    const city = newCity();
    layLattice(city, 0, 0, 12, 4);
    connectToHighway(city, 400, 320);
    for (const block of city.blocks.all()) paintCells(city, block, Array(32).fill(3));
    place(city, "Wind Turbine", -20, 40);
    advance(city, 2 * WEEK);
    const all = city.buildings.all().filter(({ prefab }) => prefab.service === "Residential");
    const dark = all.filter(({ problems }) => problems.names.includes("Electricity"));
    expect(dark.length).to.be.greaterThan(0);
    expect(dark.length).to.be.lessThan(all.length);
    const mean = (list: typeof all) => list.reduce((sum, { position }) => sum + position.x, 0) / list.length;
    expect(mean(dark)).to.be.greaterThan(mean(all));
  });

  it("a plant that is not connected and a building that is switched off show a problem", () => {
    const city = newCity();
    const tower = place(city, "Water Tower", 0, 0);
    place(city, "Boiler Station", 200, 0);
    advance(city, 600);
    expect(countProblem(city, "WaterNotConnected")).to.equal(1);
    expect(countProblem(city, "HeatingNotConnected")).to.equal(1);
    const off = setBuildingActive.act(city, { id: tower, active: false });
    expect(off.beforeFlags).to.equal("Created, Completed, Active");
    expect(off.afterFlags).to.equal("Created, Completed");
    advance(city, 600);
    expect(countProblem(city, "TurnedOff")).to.equal(1);
    expect(setBuildingActive.act(city, { id: tower, active: true }).afterFlags).to.include("Active");
    advance(city, 600);
    expect(countProblem(city, "TurnedOff")).to.equal(0);
  });

  it("homes are heated in winter by a boiler, or with more electricity", () => {
    const city = bareStreet();
    advance(city, WEEK);
    const home = city.buildings.all().find(({ homes: places }) => places > 0) as Building;
    const electricHeating = powerNeedKw(city, home);
    buildNetwork.act(city, road(160, 40, 400, 40, "Heating Pipe"));
    expect(powerNeedKw(city, home)).to.be.lessThan(electricHeating);
    advance(city, 600);
    expect(countProblem(city, "Heating")).to.equal(homes(city));
    place(city, "Wind Turbine", 140, 80);
    place(city, "Boiler Station", 140, 40);
    buildNetwork.act(city, road(160, 0, 160, -40, "Water Pipe"));
    buildNetwork.act(city, road(160, 40, 160, 0, "Water Pipe"));
    place(city, "Water Tower", 140, -20);
    place(city, "Inland Water Treatment Plant 01", 140, -60);
    advance(city, 900);
    expect(countProblem(city, "Heating")).to.equal(0);
  });
});
