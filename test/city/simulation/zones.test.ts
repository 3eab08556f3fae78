import { expect } from "chai";
import { buildNetwork } from "../../../src/city/commands/roads.js";
import { paintCircle, repairZoneClusters, repairZonesToGrowables } from "../../../src/city/commands/zones.js";
import { distanceToLine } from "../../../src/city/geometry.js";
import { RefusedError } from "../../../src/city/refusal.js";
import { ZONES } from "../../../src/city/terms.js";
import {
  advance,
  fingerprint,
  growByForce,
  layLattice,
  newCity,
  paintCells,
  place,
  road,
  smallTown,
  zone,
} from "./towns.js";

const paint = {
  dryRun: false,
  preserveOccupied: true,
  zone: "Office",
  center: { x: 0, z: 0 },
  radius: 256,
};

const repair = {
  dryRun: false,
  includePatchy: true,
  fillUnzoned: true,
  preferGrowableZone: true,
  gridSize: 80,
  minMinorityCells: 3,
  minUnzonedCells: 6,
};

describe("painting and repair of zones in the embedded city", () => {
  it("set-zone paints whole blocks and counts only changed cells", () => {
    const city = newCity("empty");
    buildNetwork.act(city, road(0, 0, 80, 0));
    const command = { ...paint, center: { x: 20, z: 24 }, radius: 1 };
    expect(paintCircle(city, command)).to.deep.equal({
      matchingBlocks: 1,
      skippedOccupiedBlocks: 0,
      changedCells: 20,
    });
    expect(paintCircle(city, command).changedCells).to.equal(0);
    expect(city.blocks.get(1)?.cells.every((cell) => ZONES[cell] === "Office")).to.equal(true);
    expect(paintCircle(city, { ...paint, center: { x: 5000, z: 0 } }).matchingBlocks).to.equal(0);
  });

  it("set-zone rejects unknown zones, and a radius outside 0 to 256 m", () => {
    const city = newCity("empty");
    for (const radius of [0, -1, 257, Number.NaN]) {
      expect(() => paintCircle(city, { ...paint, radius })).to.throw(RefusedError, `not ${radius}`);
    }
    for (const name of ["Commercial", "office", "Distant", ""]) {
      expect(() => paintCircle(city, { ...paint, zone: name })).to.throw(RefusedError, `"${name}"`);
    }
    expect(() => paintCircle(city, { ...paint, radius: 0, zone: "x" })).to.throw(RefusedError, /radius/);
  });

  it("with preserveOccupied, set-zone keeps zones near buildings", () => {
    const city = newCity("empty");
    buildNetwork.act(city, road(0, 0, 80, 0));
    place(city, "Water Tower", 32, 80);
    const reach = { ...paint, center: { x: 32, z: 40 }, radius: 1 };
    expect(paintCircle(city, reach)).to.include({
      matchingBlocks: 1,
      skippedOccupiedBlocks: 1,
      changedCells: 0,
    });
    expect(paintCircle(city, { ...reach, preserveOccupied: false }).changedCells).to.equal(20);
  });

  it("set-zone does not keep zones near pipe junctions and bus depots, or far from buildings", () => {
    const city = newCity("empty");
    buildNetwork.act(city, road(0, 0, 80, 0));
    place(city, "Water Pipe Junction", 32, 40);
    place(city, "Bus Depot", 32, 40);
    place(city, "Water Tower", 32, 40 + 38 + 8 + 0.1);
    const reach = { ...paint, center: { x: 32, z: 40 }, radius: 1 };
    expect(paintCircle(city, reach)).to.include({ skippedOccupiedBlocks: 0, changedCells: 20 });
  });

  it("a repaired block gets the zone of its nearest growable, except in a tie", () => {
    const city = newCity("empty");
    buildNetwork.act(city, road(0, 0, 40, 0));
    zone(city, "Industrial", 20, 0, 60);
    place(city, "L1 2x2 Shop02", 32, 24);
    const preview = { dryRun: true };
    const before = fingerprint(city);
    expect(repairZonesToGrowables.act(city, preview)).to.include({
      inspectedBlocks: 2,
      repairableBlocks: 1,
      skippedMixedUseBlocks: 0,
      changedCells: 0,
    });
    expect(fingerprint(city)).to.equal(before);
    expect(repairZonesToGrowables.act(city, { dryRun: false }).changedCells).to.equal(20);
    expect([...(city.blocks.get(1)?.cells ?? [])].every((cell) => ZONES[cell] === "CommercialLow")).to.equal(
      true,
    );
    place(city, "L1 2x2 Detached01", 32, 56);
    expect(repairZonesToGrowables.act(city, preview).skippedMixedUseBlocks).to.equal(1);
  });

  it("a repaired cluster has its main zone in all blocks", () => {
    const city = newCity("empty");
    buildNetwork.act(city, road(0, 0, 80, 0));
    zone(city, "ResidentialLow", 40, 0, 100);
    paintCells(city, city.blocks.at(1), [7, 7, 7, 0, 0, 0]);
    const before = fingerprint(city);
    const preview = repairZoneClusters.act(city, { ...repair, gridSize: 999, dryRun: true });
    expect(preview).to.include({ gridSize: 160, clusterCount: 1, repairableClusters: 1, changedCells: 0 });
    expect(fingerprint(city)).to.equal(before);
    const done = repairZoneClusters.act(city, { ...repair, gridSize: 160, fillUnzoned: false });
    expect(done).to.include({ repairedBlocks: 1, changedCells: 3 });
    expect(repairZoneClusters.act(city, { ...repair, gridSize: 160, minUnzonedCells: 3 })).to.include({
      changedCells: 3,
    });
    expect(repairZoneClusters.act(city, { ...repair, gridSize: 160 }).repairableClusters).to.equal(0);
  });

  it("growables overlap neither each other nor a road", () => {
    const city = newCity("empty");
    layLattice(city, 0, 0, 3, 3);
    for (const block of city.blocks.all()) paintCells(city, block, Array(32).fill(2));
    growByForce(city);
    const growables = city.buildings.all();
    expect(growables.length).to.be.greaterThan(15);
    for (const a of growables) {
      for (const b of growables) {
        if (a.id >= b.id) continue;
        const apart = Math.hypot(a.position.x - b.position.x, a.position.z - b.position.z);
        const shortSide = Math.min(a.prefab.width, a.prefab.length, b.prefab.width, b.prefab.length) * 8;
        expect(apart, `${a.id} and ${b.id}`).to.be.at.least(shortSide - 0.01);
      }
      const toRoads = city.segments.all().map((segment) => distanceToLine(a.position, segment));
      expect(Math.min(...toRoads), `building ${a.id}`).to.be.at.least(8 + 4 - 0.01);
    }
  });

  it("growables that were built for another zone are removed", () => {
    const city = newCity();
    smallTown(city);
    advance(city, 4096);
    const homes = () => city.buildings.all().filter(({ prefab }) => prefab.service === "Residential").length;
    expect(homes()).to.be.greaterThan(3);
    zone(city, "Unzoned", 240, 40, 200);
    advance(city, 600);
    expect(homes()).to.equal(0);
  });
});
