import { expect } from "chai";
import { budgetOf } from "../../src/city/simulation/life/finance.js";
import { bridgeForEach } from "./bridge.js";
import { fingerprint } from "./simulation/towns.js";

const near = { x: 320, z: 200 };

function shopBlocks({ blocks }: { blocks: { zone: string; index: number }[] }): number[] {
  return blocks.filter(({ zone }) => zone === "CommercialLow").map(({ index }) => index);
}

describe("effect of snapDistance on new roads", () => {
  const bridge = bridgeForEach();

  it("a road starts at the nearest node within snapDistance; by default at the lowest id within 2 m", async () => {
    const { client } = bridge;
    await client.road(0, 0, 80, 0);
    await client.road(86, 0, 160, 0);
    const plain = await client.road(84, 0, 84, 80, { dryRun: true });
    expect(plain).to.include({ reusedStartNode: true, reusedEndNode: false });
    expect((await client.road(83.5, 0, 84, 80)).startNodeId).to.equal(5);
    expect((await client.road(82.5, 0, 84, -80, { snapDistance: 8 })).startNodeId).to.equal(5);
    expect((await client.road(81, 0, 84, -160, { snapDistance: 8 })).startNodeId).to.equal(2);
    expect((await client.road(80.5, 0, 84, 160, { snapDistance: 0 })).startNodeId).to.be.above(5);
    expect(await client.refusal("build-road", { end: { x: 80 }, snapDistance: 65 })).to.include("65");
    const onOneNode = { start: { x: -20 }, end: { x: -10 }, snapDistance: 64 };
    expect(await client.refusal("build-road", onOneNode)).to.include("node 1");
  });

  it("a dry run with snapDistance returns the exact cost of the build", async () => {
    const { client, city } = bridge;
    await client.road(0, 0, 80, 0);
    const body = { start: { x: 100, z: 0 }, end: { x: 180, z: 0 }, snapDistance: 30 };
    const dry = await client.run("build-road", { ...body, dryRun: true });
    const before = budgetOf(city).balance;
    const built = await client.run("build-road", body);
    expect(built.cost).to.equal(dry.cost).and.equal(500);
    expect(before - budgetOf(city).balance).to.equal(500);
  });
});

describe("warnings about roads that cross without a node", () => {
  const bridge = bridgeForEach();

  it("crossings of new roads or pipes without a node are reported, but not crossings at shared nodes", async () => {
    const { client } = bridge;
    const pipe = (x: number, z: number, toX: number, toZ: number) =>
      client.road(x, z, toX, toZ, { roadPrefab: "Water Pipe" });
    const first = await pipe(0, 0, 100, 0);
    expect(await client.road(40, -40, 40, 40)).to.not.have.property("warnings");
    const { warnings, segmentId } = await pipe(50, -50, 50, 50);
    expect(warnings).to.have.length(1);
    expect(warnings[0]).to.include(`segment ${first.segmentId} `);
    expect(await pipe(100, 0, 100, 80)).to.not.have.property("warnings");
    for (const [id, other] of [
      [first.segmentId, segmentId],
      [segmentId, first.segmentId],
    ]) {
      expect((await client.state(`/state/segments/${id}`)).crossesWithoutNode).to.deep.equal([other]);
    }
  });
});

describe("commands that build several things at once", () => {
  const bridge = bridgeForEach();

  it("build-grid reuses existing roads", async () => {
    const { client } = bridge;
    await client.road(0, 0, 80, 0);
    await client.road(163, 243, 300, 300);
    const body = { cols: 2, rows: 3, name: "Agent Grid" };
    const dry = await client.run("build-grid", { ...body, dryRun: true });
    expect(dry).to.deep.include({ plannedNodes: 9, plannedSegments: 16, reusedNodes: 3, skippedSegments: 1 });
    const grid = await client.run("build-grid", body);
    expect(grid).to.deep.include({ reusedNodes: 3, skippedSegments: 1, cost: dry.cost, cols: 2, rows: 3 });
    expect([grid.nodeIds.length, grid.createdNodeIds.length, grid.segmentIds.length]).to.deep.equal([
      12, 9, 16,
    ]);
    expect(grid.bbox).to.deep.equal({ minX: 0, maxX: 160, minZ: 0, maxZ: 240 });
    expect(grid.blockCenters).to.have.length(6);
    expect(grid.blockCenters.slice(0, 3)).to.deep.equal([
      { x: 40, z: 40 },
      { x: 120, z: 40 },
      { x: 40, z: 120 },
    ]);
    const { countsByService, segments } = await client.state("/state/networks");
    expect(countsByService).to.deep.equal({ Road: 18 });
    expect(segments.filter(({ name }: { name: string }) => name === "Agent Grid")).to.have.length(16);
    const { counts } = await client.state("/state/road-anomalies?includeDeadEnds=false");
    expect(counts).to.not.have.any.keys("duplicateRoadSegments", "roadCrossingWithoutNode");
    const again = await client.run("build-grid", body);
    expect(again).to.deep.include({ segmentIds: [], createdNodeIds: [], skippedSegments: 17, cost: 0 });
  });

  it("build-grid rotates in the same direction as the game's bridge", async () => {
    const { blockCenters } = await bridge.client.run("build-grid", {
      origin: { x: 100, z: 200 },
      cols: 1,
      rows: 1,
      spacing: 40,
      rotationDegrees: 90,
    });
    expect(blockCenters).to.deep.equal([{ x: 120, z: 180 }]);
  });

  it("connect joins a place to the nearest node that it is not connected to yet", async () => {
    const { client } = bridge;
    await client.road(0, 0, 80, 0);
    const joined = await client.run("connect", { from: { x: 80, z: 120 } });
    expect(joined).to.deep.include({
      alreadyConnected: false,
      targetNodeId: 2,
      targetPosition: { x: 80, z: 0 },
      distance: 120,
    });
    expect(joined.segmentIds).to.have.length(1);
    expect(joined.createdNodeIds).to.deep.equal([joined.nodeId]);
    const again = await client.run("connect", { from: { x: 82, z: 118 } });
    expect(again).to.deep.include({ alreadyConnected: true, nodeId: joined.nodeId, segmentIds: [], cost: 0 });
    expect(await client.refusal("connect", { from: { x: 0, z: 500 } })).to.match(/No Road node .* 200 m/);
    expect(await client.refusal("connect", { from: { x: 0, z: 50 }, toService: "Water" })).to.include(
      "Water",
    );
    const apart = await client.road(300, 0, 380, 0);
    const bridged = await client.run("connect", { from: { x: 300, z: 0 }, maxDistance: 300 });
    expect(bridged).to.include({ nodeId: apart.startNodeId, targetNodeId: 2 });
  });

  it("build-neighborhood builds streets, a connection to the town, and weighted zones", async () => {
    const { client } = bridge;
    await client.road(0, 0, 80, 0);
    const body = {
      center: { x: 400, z: 0 },
      cols: 4,
      rows: 3,
      connectTo: "Road",
      zoneMix: { ResidentialLow: 2, CommercialLow: 1 },
      commercialPlacement: "corners",
    };
    const dry = await client.run("build-neighborhood", { ...body, dryRun: true });
    const { connection, zoning, cost } = await client.run("build-neighborhood", body);
    expect(cost).to.equal(dry.cost);
    expect(connection).to.deep.include({ alreadyConnected: false, targetNodeId: 2 });
    expect(connection.segmentIds).to.have.length(1);
    expect(shopBlocks(zoning)).to.deep.equal([0, 3, 8, 11]);
    expect(zoning.zoneRadius).to.equal(40);
    expect(zoning.changedCells).to.be.above(200);
    const zones = await client.state("/state/zones");
    expect(zones.zonedCells).to.equal(zoning.changedCells);
    expect((await client.state("/state/external-connections")).roadComponents).to.equal(1);
  });

  for (const [commercialPlacement, blocks] of [
    ["perimeter", [1, 2, 4, 7]],
    ["core", [1, 2, 5, 6]],
  ] as const) {
    it(`build-neighborhood places shops with commercialPlacement=${commercialPlacement}`, async () => {
      const mix = { zoneMix: { ResidentialLow: 2, CommercialLow: 1 }, commercialPlacement };
      const shape = { center: { x: 400, z: 0 }, cols: 4, rows: 3 };
      const { zoning } = await bridge.client.run("build-neighborhood", { ...shape, ...mix });
      expect(shopBlocks(zoning)).to.deep.equal(blocks);
    });
  }

  it("bulldoze-area clears only the given circle", async () => {
    const { client, city } = bridge;
    await client.run("build-grid", { cols: 4, rows: 1 });
    await client.run("place-building", { buildingPrefab: "Water Tower", position: { x: 40, z: 40 } });
    await client.run("place-building", { buildingPrefab: "Water Tower", position: { x: 280, z: 40 } });
    const circle = { center: { x: 40, z: 40 }, radius: 60 };
    expect(await client.refusal("bulldoze-area", { center: { x: 0, z: 0 } })).to.include("radius");
    const dry = await client.run("bulldoze-area", { ...circle, dryRun: true });
    expect(dry.buildingIds).to.have.length(1);
    expect(dry.segmentIds).to.have.length(4);
    const towers = await client.run("bulldoze-area", { ...circle, service: "Water" });
    expect([towers.buildingIds, towers.segmentIds]).to.deep.equal([dry.buildingIds, []]);
    const roads = await client.run("bulldoze-area", circle);
    expect(roads.segmentIds).to.deep.equal(dry.segmentIds);
    expect([city.buildings.all().length, city.segments.all().length, city.nodes.all().length]).to.deep.equal([
      1, 9, 8,
    ]);
  });

  it("composite commands run once per opId", async () => {
    const { client, city } = bridge;
    const body = { cols: 1, rows: 1, opId: "one" };
    expect((await client.run("build-grid", { ...body, dryRun: true })).plannedSegments).to.equal(4);
    const first = await client.run("build-grid", body);
    expect(await client.run("build-grid", { ...body, origin: near })).to.deep.equal(first);
    expect(city.segments.all()).to.have.length(4);
    expect(await client.refusal("connect", { from: { x: 9, z: 800 }, opId: "two" })).to.include("No Road");
    await client.road(0, 600, 0, 700);
    expect((await client.run("connect", { from: { x: 9, z: 800 }, opId: "two" })).ok).to.equal(true);
  });

  it("composite commands change nothing if any part is rejected", async () => {
    const { client, city } = bridge;
    city.unlimitedMoney = false;
    await client.road(160, 80, 200, 80);
    await client.road(160, 90, 200, 90);
    for (let i = 0; i < 6; i++) await client.road(160, 80, 300 + i * 20, 500 + i);
    const before = fingerprint(city);
    const mix = { zoneMix: { Office: 1 } };
    for (const [command, body, error] of [
      ["build-grid", { cols: 20, rows: 21 }, /cols \* rows must be 1 to 400, not 420/],
      ["build-grid", { cols: 1.5 }, /whole number/],
      ["build-grid", { spacing: 20 }, /spacing must be 32 to 256/],
      ["build-grid", { roadPrefab: "Sky Road" }, /Sky Road/],
      ["build-grid", { origin: { x: 8600, z: 0 } }, /off the map/],
      ["build-grid", { cols: 3, rows: 2 }, /more than 8 segments/],
      ["build-grid", { cols: 20, rows: 20, spacing: 200, origin: near }, /The grid costs .* balance is/],
      ["build-neighborhood", {}, /zoneMix/],
      ["build-neighborhood", { zoneMix: {} }, /zoneMix/],
      ["build-neighborhood", { zoneMix: { Office: 1, Castle: 2 } }, /Castle/],
      ["build-neighborhood", { zoneMix: { Office: -1 } }, /zoneMix.Office must be above 0/],
      ["build-neighborhood", { ...mix, cols: 13, rows: 12 }, /144/],
      [
        "build-neighborhood",
        { ...mix, center: { x: -900, z: 0 }, connectTo: "Road" },
        /No Road node .* 400 m/,
      ],
      ["build-neighborhood", { ...mix, zoneRadius: 300 }, /zoneRadius/],
      [
        "build-neighborhood",
        { ...mix, commercialPlacement: "anywhere" },
        /commercialPlacement must be perimeter/,
      ],
      ["bulldoze-area", { radius: 257 }, /radius/],
      ["bulldoze-area", { radius: 20, entityTypes: ["tree"] }, /entityTypes.*building or netSegment/],
    ] as const) {
      expect(await client.refusal(command, body), JSON.stringify(body)).to.match(error);
      expect(await client.refusal(command, { ...body, dryRun: true }), JSON.stringify(body)).to.match(error);
    }
    expect(fingerprint(city)).to.equal(before);
  });
});
