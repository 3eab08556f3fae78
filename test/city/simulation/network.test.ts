import { expect } from "chai";
import { findConflictingRoads } from "../../../src/city/anomalies/road-network.js";
import { moveBuilding, placeBuilding } from "../../../src/city/commands/buildings.js";
import { bulldoze } from "../../../src/city/commands/bulldoze.js";
import { buildNetwork } from "../../../src/city/commands/roads.js";
import { lengthOf } from "../../../src/city/geometry.js";
import { RefusedError } from "../../../src/city/refusal.js";
import { usableCellMask } from "../../../src/city/simulation/fabric/zone-blocks.js";
import { shownDemand } from "../../../src/city/simulation/life/demand.js";
import type { World } from "../../../src/city/simulation/state/world.js";
import { tallyCells } from "../../../src/city/zone-tally.js";
import {
  advance,
  connectToHighway,
  findFaults,
  fingerprint,
  layLattice,
  newCity,
  place,
  road,
  STARTER_ZONES,
  zone,
} from "./towns.js";

describe("roads and buildings of the embedded city", () => {
  it("the first road creates two nodes, one segment and four zone blocks, and sets build index 4", () => {
    const city = newCity("empty");
    const built = buildNetwork.act(city, road(0, 0, 80, 0));
    expect(built).to.include({ segmentId: 1, startNodeId: 1, endNodeId: 2 });
    expect([city.nodes.all().length, city.segments.all().length, city.blocks.all().length]).to.deep.equal([
      2, 1, 4,
    ]);
    expect(city.buildIndex).to.equal(4);
    const positions = city.blocks
      .all()
      .map(({ position, rows }) => [position.x, position.z, rows].map(Math.round));
    expect(positions).to.deep.equal([
      [32, 40, 5],
      [8, -40, 5],
      [48, -40, 5],
      [72, 40, 5],
    ]);
  });

  it("a road reuses a compatible node within 2 m, otherwise adds one", () => {
    const city = newCity("empty");
    buildNetwork.act(city, road(0, 0, 80, 0));
    expect(buildNetwork.act(city, road(80.9, 1, 160, 0)).startNodeId).to.equal(2);
    expect(buildNetwork.act(city, road(80, 2.5, 80, 90)).startNodeId).to.equal(4);
    expect(buildNetwork.act(city, road(80, 0, 80, -90, "Water Pipe")).startNodeId).to.equal(6);
  });

  const usableCells = (city: World) =>
    city.blocks.all().reduce((sum, block) => {
      return sum + [...block.cells].filter((_, i) => (usableCellMask(city, block) >>> i) & 1).length;
    }, 0);

  it("a road is one segment, and with split it is laid in pieces of at most 96 m with zones all along", () => {
    const whole = newCity("empty");
    expect(buildNetwork.act(whole, road(0, 0, 700, 0))).to.not.have.property("segmentIds");
    expect(whole.segments.all()).to.have.length(1);
    const city = newCity("empty");
    const before = fingerprint(city);
    const split = { ...road(0, 0, 700, 0), split: true };
    const planned = buildNetwork.act(city, { ...split, dryRun: true });
    expect(planned).to.include({ plannedSegments: 8, plannedNodes: 9, message: "8 segments can be built." });
    expect(fingerprint(city)).to.equal(before);
    const built = buildNetwork.act(city, split);
    expect(built).to.deep.include({ startNodeId: 1, endNodeId: 9, cost: planned.cost });
    expect(built).to.have.property("segmentIds").with.lengthOf(8);
    const lengths = city.segments.all().map(lengthOf);
    expect(Math.max(...lengths)).to.be.at.most(96);
    expect(lengths.reduce((sum, length) => sum + length, 0)).to.be.closeTo(700, 0.001);
    expect(new Set(city.segments.all().map(({ name }) => name)).size).to.equal(1);
    // 87 cells fit beside the road, 4 deep on both sides.
    expect(usableCells(city)).to.be.at.least(86 * 8);
    expect(usableCells(whole)).to.equal(16 * 8);
  });

  it("a split road shares a node with the roads that it crosses, whose zones and buildings stay", () => {
    const city = newCity("empty");
    buildNetwork.act(city, { ...road(-100, 0, 100, 0), name: "Main Street" });
    buildNetwork.act(city, road(80, 100, 80, 5));
    zone(city, "Office", 0, 0, 200);
    const house = city.buildings.at(place(city, "H1 1x1 Office", -60, 12, 180));
    const zoned = () => tallyCells(city.blocks.all()).zonedCells;
    const before = zoned();
    const crossed = buildNetwork.act(city, { ...road(0, -90, 0, 90), split: true });
    expect(crossed).to.have.property("segmentIds").with.lengthOf(2);
    const crossing = city.nodes.all().find(({ position }) => Math.hypot(position.x, position.z) < 0.01);
    expect(crossing?.segmentIds).to.have.length(4);
    expect(city.segments.all().filter(({ name }) => name === "Main Street")).to.have.length(2);
    // The new blocks begin at other places, so that zones may move by half a cell.
    expect(zoned()).to.be.within(before - 40, before + 8);
    advance(city, 3 * 256);
    expect(city.buildings.get(house.id)).to.equal(house);
    expect(findFaults(city)).to.deep.equal([]);
    expect(findConflictingRoads(city)).to.deep.equal([]);
    const far = buildNetwork.act(city, { ...road(60, 60, 150, 60), split: true });
    expect(far).to.have.property("nodeIds").with.lengthOf(3);
    const atEnd = buildNetwork.act(city, { ...road(-98, -60, -98, 60), split: true });
    expect(atEnd).to.have.property("nodeIds").which.includes(1);
  });

  it("an unaffordable split road is refused as a whole", () => {
    const city = newCity("empty");
    city.unlimitedMoney = false;
    const before = fingerprint(city);
    const long = { ...road(-8000, 0, 8000, 0, "Large Road Tunnel"), split: true };
    expect(() => buildNetwork.act(city, long)).to.throw(RefusedError, /of 16000 m costs 800000\.00/);
    expect(fingerprint(city)).to.equal(before);
  });

  it("builds the published starter grid with the published numbers of nodes, segments and zone blocks", () => {
    const city = newCity("empty");
    layLattice(city, 160, -160, 4, 4);
    const cells = () => city.blocks.all().reduce((sum, { rows }) => sum + rows * 4, 0);
    expect([
      city.nodes.all().length,
      city.segments.all().length,
      city.blocks.all().length,
      cells(),
    ]).to.deep.equal([25, 40, 160, 3200]);
    const touched = STARTER_ZONES.map(([name, x, z, radius]) => zone(city, name, x, z, radius));
    expect(touched).to.deep.equal([200, 200, 240, 240, 200, 120]);
    buildNetwork.act(city, road(400, 160, 400, 300));
    connectToHighway(city, 400, 300);
    expect([
      city.nodes.all().length,
      city.segments.all().length,
      city.blocks.all().length,
      cells(),
    ]).to.deep.equal([28, 43, 172, 3584]);
  });

  it("a road can join the starter highway, whose two carriageways reach the map edge", () => {
    const city = newCity("highway");
    const nodes = city.nodes.all().length;
    connectToHighway(city, 400, 300);
    expect(city.nodes.all().length).to.equal(nodes + 1);
    const outside = city.nodes.all().filter((node) => node.outside);
    expect(outside.map(({ position }) => Math.abs(position.x))).to.deep.equal([8640, 8640, 8640, 8640]);
  });

  it("rejects invalid roads and changes nothing", () => {
    const city = newCity("empty");
    buildNetwork.act(city, road(0, 0, 80, 0));
    const before = fingerprint(city);
    const refusals: [() => unknown, RegExp][] = [
      [() => buildNetwork.act(city, road(0, 10, 3.9, 10)), /3\.90 m/],
      [() => buildNetwork.act(city, road(0, 10, 80, 10, "Rainbow Road")), /Rainbow Road/],
      [() => buildNetwork.act(city, road(Number.NaN, 0, 80, 0)), /NaN/],
      [() => buildNetwork.act(city, road(0, 0, 1e300, 0)), /1e\+300/],
      [() => buildNetwork.act(city, { ...road(79, 0, 81, 0), end: { x: 81, y: 50, z: 0 } }), /node 2/],
      [() => place(city, "Block Services - Utility Yard_Data", 0, 0), /Block Services/],
      [() => place(city, "Castle", 0, 0), /Castle/],
      [() => place(city, "Water Tower", 8641, 0), /8641 lies off the map/],
      [() => buildNetwork.act(city, road(8600, 0, 8700, 0)), /8700 lies off the map/],
    ];
    for (const [attempt, message] of refusals) expect(attempt).to.throw(RefusedError, message);
    expect(fingerprint(city)).to.equal(before);
    buildNetwork.act(city, road(0, 10, 4, 10));
  });

  it("rejects overlapping service buildings at any rotation if strict is true", () => {
    const city = newCity("empty");
    const first = place(city, "Elementary School", 0, 0, 30);
    const tower = (x: number, z: number, angleDegrees: number) => {
      const [buildingPrefab, position] = ["Water Tower", { x, z }];
      const fields = { dryRun: false, buildingPrefab, position, angleDegrees, suggest: false, strict: true };
      return () => placeBuilding.act(city, fields);
    };
    expect(tower(0, 0, 0)).to.throw(RefusedError, /on building 1, a Elementary School/);
    const before = fingerprint(city);
    for (let angle = 0; angle < 360; angle += 15) {
      const [dx, dz] = [Math.cos((angle * Math.PI) / 180), Math.sin((angle * Math.PI) / 180)];
      expect(tower(10 * dx, 10 * dz, angle), `${angle}`).to.throw(RefusedError, /on building 1/);
    }
    expect(fingerprint(city)).to.equal(before);
    // This tower stands flush against the school, at the same rotation. Circles around the two would overlap.
    const { width } = city.buildings.at(first).prefab;
    const away = width * 4 + 8;
    expect(tower(away * Math.cos(Math.PI / 6), away * Math.sin(Math.PI / 6), 30)).to.throw(
      /^(?!.*on building)/,
    );
    const move = { dryRun: false, id: first, position: { x: -3, z: 0 }, angleDegrees: null };
    expect(moveBuilding.act(city, { ...move, strict: false }).warnings.join()).to.not.include("on building");
  });

  it("a node has at most eight segments", () => {
    const city = newCity("empty");
    for (let i = 0; i < 8; i++) buildNetwork.act(city, road(0, 0, 80 * Math.cos(i), 80 * Math.sin(i)));
    expect(() => buildNetwork.act(city, road(0, 0, 80, 80))).to.throw(RefusedError, /already has 8/);
  });

  it("removes a segment with its zone blocks and orphaned nodes; on request, keeps the nodes", () => {
    const city = newCity("empty");
    buildNetwork.act(city, road(0, 0, 80, 0));
    buildNetwork.act(city, road(80, 0, 160, 0));
    const removal = { dryRun: false, entityType: "netSegment" } as const;
    bulldoze.act(city, { ...removal, id: 2, keepNodes: false });
    expect(city.nodes.all().map(({ id }) => id)).to.deep.equal([1, 2]);
    expect(city.blocks.all().every(({ segmentId }) => segmentId === 1)).to.equal(true);
    bulldoze.act(city, { ...removal, id: 1, keepNodes: true });
    expect([city.nodes.all().length, city.blocks.all().length]).to.deep.equal([2, 0]);
    expect(() => bulldoze.act(city, { ...removal, id: 1, keepNodes: false })).to.throw(RefusedError, /id 1/);
  });

  it("removes a node together with every segment that ends there", () => {
    const city = newCity("empty");
    layLattice(city, 0, 0, 2, 2);
    const middle = city.nodes.all().find(({ position }) => position.x === 80 && position.z === 80);
    bulldoze.act(city, { dryRun: false, entityType: "netNode", id: middle?.id as number, keepNodes: false });
    expect([city.nodes.all().length, city.segments.all().length]).to.deep.equal([8, 8]);
    expect(findFaults(city)).to.deep.equal([]);
  });

  it("new nodes and segments get the lowest free ids", () => {
    const city = newCity("empty");
    for (let i = 0; i < 4; i++) buildNetwork.act(city, road(i * 200, 0, i * 200 + 80, 0));
    bulldoze.act(city, { dryRun: false, entityType: "netSegment", id: 2, keepNodes: false });
    expect(buildNetwork.act(city, road(0, 500, 80, 500))).to.include({
      segmentId: 2,
      startNodeId: 3,
      endNodeId: 4,
    });
  });

  it("roads follow the ground; over the river they follow the water surface", () => {
    const city = newCity("empty");
    expect(city.terrain.surfaceHeight(0, 0)).to.equal(60);
    const wet = Array.from({ length: 60 }, (_, i) => 700 + i * 16).filter(
      (x) => city.terrain.groundHeight(x, 0) < 40,
    );
    expect(wet.length).to.be.greaterThan(5);
    const x = wet[0] as number;
    buildNetwork.act(city, road(x, 0, x + 40, 0));
    expect(city.nodes.all().map(({ position }) => position.y)).to.deep.equal([40, 40]);
    buildNetwork.act(city, road(0, 0, 40, 0));
    buildNetwork.act(city, road(x, 100, x + 40, 100, "Basic Road Bridge"));
    expect(city.segments.all().map(({ problems }) => problems.names)).to.deep.equal([["Flood"], [], []]);
  });

  it("the terrain has no cliffs", () => {
    const city = newCity("empty");
    const steepest = (meters: number) => {
      let most = 0;
      for (let x = -8600; x < 8300; x += 47) {
        for (let z = -8600; z < 8600; z += 211) {
          most = Math.max(
            most,
            Math.abs(city.terrain.surfaceHeight(x + meters, z) - city.terrain.surfaceHeight(x, z)),
          );
        }
      }
      return most;
    };
    expect(steepest(30)).to.be.within(2, 14);
    expect(steepest(192)).to.be.within(15, 28);
  });

  it("the network does not change without commands", () => {
    const city = newCity("highway");
    advance(city, 600);
    expect([city.buildings.all().length, city.citizens.size]).to.deep.equal([0, 0]);
    expect(shownDemand(city)).to.deep.equal({ residential: 100, commercial: 0, workplace: 0 });
  });
});
