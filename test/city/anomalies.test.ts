import { expect } from "chai";
import fc from "fast-check";
import { findConflictingRoads } from "../../src/city/anomalies/road-network.js";
import { findTerrainMismatches } from "../../src/city/anomalies/road-terrain.js";
import { buildNetwork } from "../../src/city/commands/roads.js";
import { type Answer, bridgeForEach } from "./bridge.js";
import { newCity, paintCells, road } from "./simulation/towns.js";

/** Types of the anomalies in a response, in the order of the response. */
const kinds = ({ anomalies }: Answer) => anomalies.map(({ type }: { type: string }) => type);

describe("GET /state/road-anomalies", () => {
  const bridge = bridgeForEach();
  const inspect = (query = "") => bridge.client.state(`/state/road-anomalies${query}`);

  it("finds stubs and dead ends near another road", async () => {
    await bridge.client.road(0, 0, 80, 0);
    await bridge.client.road(80, 0, 160, 0);
    await bridge.client.road(80, 0, 80, 14, { name: "Stub" });
    const found = await inspect();
    expect(found).to.deep.include({
      total: 4,
      returned: 4,
      limit: 200,
      nearMissDistance: 16,
      shortSegmentLength: 28,
      includeDeadEnds: true,
      counts: { shortRoadStub: 1, deadEndRoad: 2, deadEndNearRoad: 1 },
    });
    expect(found.anomalies[0]).to.deep.equal({
      type: "shortRoadStub",
      segmentId: 3,
      prefab: "Basic Road",
      length: 14,
      startConnections: 3,
      endConnections: 1,
      start: { x: 80, y: 60, z: 0 },
      end: { x: 80, y: 60, z: 14 },
    });
    expect(found.anomalies[3]).to.deep.equal({
      type: "deadEndNearRoad",
      nodeId: 4,
      ownSegmentId: 3,
      nearestSegmentId: 1,
      distance: 14,
      position: { x: 80, y: 60, z: 14 },
    });
    expect(kinds(await inspect("?includeDeadEnds=false"))).to.deep.equal([
      "shortRoadStub",
      "deadEndNearRoad",
    ]);
    expect(
      kinds(await inspect("?includeDeadEnds=True&nearMissDistance=13&shortSegmentLength=13")),
    ).to.deep.equal([]);
    expect(await inspect("?nearMissDistance=-5&shortSegmentLength=0")).to.include({
      nearMissDistance: 1,
      shortSegmentLength: 1,
    });
  });

  it("searches for the nearest road within the requested distance", async () => {
    await bridge.client.road(0, 0, 80, 0);
    await bridge.client.road(0, 500, 80, 500);
    await bridge.client.road(0, 2000, 80, 2000);
    const { anomalies } = await inspect("?nearMissDistance=1501");
    const nearest = anomalies.map((row: Answer) => [row.nodeId, row.nearestSegmentId, row.distance]);
    expect(nearest).to.deep.equal([
      [1, 2, 500],
      [2, 2, 500],
      [3, 1, 500],
      [4, 1, 500],
      [5, 2, 1500],
      [6, 2, 1500],
    ]);
    expect((await inspect("?nearMissDistance=499")).counts).to.deep.equal({ deadEndRoad: 6 });
  });

  it("does not report outside connections as dead ends", async () => {
    const edge = bridge.game.startCity({ seed: 7, map: "highway", paused: true });
    expect(edge.nodes.all().filter(({ outside }) => outside)).to.have.length(4);
    expect((await inspect()).counts).to.deep.equal({});
  });

  it("finds crossings without a node, and reports each once", async () => {
    await bridge.client.road(0, 0, 80, 0);
    await bridge.client.road(40, -40, 40, 40);
    const found = await inspect("?includeDeadEnds=false");
    expect(found.counts).to.deep.equal({ roadCrossingWithoutNode: 1 });
    expect(found.anomalies[0]).to.deep.equal({
      type: "roadCrossingWithoutNode",
      segmentAId: 1,
      segmentBId: 2,
      prefabA: "Basic Road",
      prefabB: "Basic Road",
      heightDifference: 0,
      position: { x: 40, y: 60, z: 0 },
      segmentA: { startNodeId: 1, endNodeId: 2, start: { x: 0, y: 60, z: 0 }, end: { x: 80, y: 60, z: 0 } },
      segmentB: {
        startNodeId: 3,
        endNodeId: 4,
        start: { x: 40, y: 60, z: -40 },
        end: { x: 40, y: 60, z: 40 },
      },
    });
  });

  it("finds new anomalies after a road change, and drops those that are gone", async () => {
    await bridge.client.road(0, 0, 80, 0);
    expect((await inspect("?includeDeadEnds=false")).total).to.equal(0);
    const { segmentId: id } = await bridge.client.road(40, -40, 40, 40);
    for (let i = 0; i < 2; i++) expect((await inspect("?includeDeadEnds=false")).total).to.equal(1);
    await bridge.client.run("bulldoze", { entityType: "netSegment", id });
    expect((await inspect("?includeDeadEnds=false")).total).to.equal(0);
  });

  it("treats a crossing at a segment's end as a junction", async () => {
    await bridge.client.road(0, 0, 80, 0);
    await bridge.client.road(77.5, -40, 77.5, 40);
    expect((await inspect("?includeDeadEnds=false")).counts).to.deep.equal({ deadEndNearRoad: 1 });
  });

  it("finds duplicate roads in either direction, and overlapping roads", async () => {
    await bridge.client.road(0, 0, 80, 0);
    await bridge.client.road(80, 0, 0, 0);
    await bridge.client.road(20, 2, 60, 2);
    const { anomalies } = await inspect("?includeDeadEnds=false&nearMissDistance=1");
    expect(anomalies.map((row: Answer) => [row.type, row.segmentAId, row.segmentBId])).to.deep.equal([
      ["duplicateRoadSegments", 1, 2],
      ["overlappingRoadSegments", 1, 3],
      ["overlappingRoadSegments", 2, 3],
    ]);
    expect(anomalies[1]).to.include({ distance: 2, overlapLength: 40 });
    await bridge.client.run("bulldoze", { entityType: "netSegment", id: 3 });
    await bridge.client.road(70, 2.5, 110, 2.5, { name: "overlaps for 10 m only" });
    expect((await inspect()).counts).to.not.have.property("overlappingRoadSegments");
  });

  it("reports no anomalies of pipes", async () => {
    for (const [z, toZ] of [
      [0, 0],
      [-40, 40],
    ] as const) {
      await bridge.client.road(0, z, 80, toZ, { roadPrefab: "Water Pipe" });
    }
    expect((await inspect()).total).to.equal(0);
  });

  it("finds cliffs beside roads and beside outside connections", async () => {
    await bridge.client.road(0, 0, 80, 0, { name: "Agent Flat" });
    await bridge.client.road(80, 0, 80, 150, { name: "agent outside link" });
    await bridge.client.road(80, 0, 80, -139, { name: "Agent Outside, but short" });
    const flat = await inspect("?includeDeadEnds=false");
    expect(flat.anomalies.map((row: Answer) => [row.type, row.segmentId])).to.deep.equal([
      ["roadTerrainCliff", 2],
    ]);
    expect(flat.anomalies[0]).to.include({ maxRoadToTerrainDelta: 18, maxSideToSideDelta: 0 });
    for (const row of flat.anomalies) {
      expect(row).to.have.all.keys(
        "type",
        "segmentId",
        "name",
        "prefab",
        "maxRoadToTerrainDelta",
        "maxSideToSideDelta",
        "maxAdjacentTerrainDelta",
        "samplePosition",
        "segment",
      );
    }
  });

  it("measures cliffs on both sides of a road", async () => {
    await bridge.client.road(0, 0, 80, 0);
    const cliff = bridge.city;
    cliff.terrain.surfaceHeight = (x, z) => (z > 50 && x > 30 ? 90 : 60);
    expect(findTerrainMismatches(cliff)).to.deep.equal([
      {
        type: "roadTerrainCliff",
        segmentId: 1,
        name: bridge.city.segments.get(1)?.name,
        prefab: "Basic Road",
        maxRoadToTerrainDelta: 30,
        maxSideToSideDelta: 30,
        maxAdjacentTerrainDelta: 30,
        samplePosition: { x: 40, y: 60, z: 0 },
        segment: { startNodeId: 1, endNodeId: 2, start: { x: 0, y: 60, z: 0 }, end: { x: 80, y: 60, z: 0 } },
      },
    ]);
  });

  it("finds roads far below their surroundings", async () => {
    await bridge.client.road(0, 0, 80, 0, { name: "Agent Low" });
    expect(bridge.city.terrain.surfaceHeight(-8600, 520)).to.be.greaterThan(90);
    for (let i = 0; i < 5; i++)
      await bridge.client.road(-8600, 520 + i * 30, -8580, 520 + i * 30, { name: "Agent High" });
    const { anomalies } = await inspect("?includeDeadEnds=false");
    const below = anomalies.find(({ type }: Answer) => type === "roadBelowLocalGrade");
    expect(below).to.include({ segmentId: 1, name: "Agent Low", prefab: "Basic Road", roadY: 60 });
    expect(below.localGradeY - below.roadY).to.be.closeTo(below.belowBy, 0.002);
  });

  it("finds the same pairs of conflicting roads as a brute-force search", () => {
    const coordinate = fc.integer({ min: 0, max: 24 }).map((i) => i * 10);
    const segment = fc.tuple(coordinate, coordinate, coordinate, coordinate);
    fc.assert(
      fc.property(fc.array(segment, { maxLength: 14 }), (segments) => {
        const city = newCity("empty");
        for (const [x, z, toX, toZ] of segments) {
          if (Math.hypot(toX - x, toZ - z) > 0) {
            try {
              buildNetwork.act(city, road(x, z, toX, toZ));
            } catch {}
          }
        }
        const found = findConflictingRoads(city);
        city.segments.near = () => [...city.segments.all()];
        expect(found).to.deep.equal(findConflictingRoads(city));
      }),
      { numRuns: 60 },
    );
  });
});

describe("GET /state/building-anomalies", () => {
  const bridge = bridgeForEach();
  const place = (buildingPrefab: string, x: number, z: number, angleDegrees = 0) =>
    bridge.client.run("place-building", { buildingPrefab, position: { x, z }, angleDegrees });

  it("finds service buildings on roads by their rotated footprint", async () => {
    await bridge.client.road(0, 0, 200, 0);
    await bridge.client.road(0, 0, 200, 1);
    await place("Water Tower", 40, 0);
    await place("Water Tower", 40, 30);
    await place("Elementary School", 100, 20);
    await place("Elementary School", 150, 20, 90);
    await place("Regular Park", 195, 0);
    await place("Water Pipe Junction", 60, 0);
    const { anomalies, ...envelope } = await bridge.client.state("/state/building-anomalies");
    expect(envelope).to.deep.equal({
      ok: true,
      total: 2,
      returned: 2,
      limit: 200,
      counts: { buildingRoadOverlap: 2 },
    });
    expect(anomalies[0]).to.deep.equal({
      type: "buildingRoadOverlap",
      buildingId: 1,
      segmentId: 1,
      prefab: "Water Tower",
      displayName: "Water Tower",
      service: "Water",
      position: { x: 40, y: 60, z: 0 },
    });
    expect(anomalies[1]).to.include({ buildingId: 4, segmentId: 1 });
  });
});

describe("GET /state/zone-anomalies", () => {
  const bridge = bridgeForEach();
  const inspect = (query = "") => bridge.client.state(`/state/zone-anomalies${query}`);

  beforeEach(async () => {
    await bridge.client.road(0, 0, 80, 0);
  });

  it("finds nothing if no cell or every cell is zoned", async () => {
    expect((await inspect()).total).to.equal(0);
    await bridge.client.run("set-zone", { zone: "Office", center: { x: 40, z: 0 }, radius: 200 });
    expect((await inspect()).total).to.equal(0);
  });

  it("finds blocks and clusters with mixed zones or unzoned holes", async () => {
    const { city } = bridge;
    paintCells(city, city.blocks.at(1), [2, 2, 2, 2, 4, 4, 4]);
    paintCells(city, city.blocks.at(2), [2, 2, 2]);
    const found = await inspect();
    expect(found).to.deep.include({ minMinorityCells: 3, minUnzonedCells: 6, includeUnzonedHoles: true });
    const [mixed, patchy, cluster] = found.anomalies;
    expect(mixed).to.deep.equal({
      type: "mixedZoneBlock",
      blockId: 1,
      rowCount: 5,
      cellCount: 20,
      zonedCells: 7,
      unzonedCells: 13,
      dominantZone: "ResidentialLow",
      suspiciousCells: 3,
      zoneCounts: { ResidentialLow: 4, CommercialLow: 3, Unzoned: 13 },
      position: { x: 32, y: 60, z: 40 },
    });
    expect(patchy).to.include({ type: "patchyUnzonedHoles", blockId: 2, zonedCells: 3, suspiciousCells: 17 });
    expect(cluster).to.have.all.keys(
      "type",
      "clusterKey",
      "blockCount",
      "cellCount",
      "zonedCells",
      "unzonedCells",
      "dominantZone",
      "dominantCells",
      "minorityCells",
      "distinctZoned",
      "suspiciousCells",
      "zoneCounts",
      "position",
      "bounds",
    );
    expect(kinds(await inspect("?includeUnzonedHoles=false&minMinorityCells=4"))).to.deep.equal([]);
    expect(kinds(await inspect("?minMinorityCells=-9"))).to.include("patchyUnzonedHoles");
    const clusters = found.anomalies.filter(({ type }: Answer) => type.endsWith("Cluster"));
    expect(clusters[0]).to.include({ clusterKey: "0:1", blockCount: 1, dominantZone: "ResidentialLow" });
  });
});
