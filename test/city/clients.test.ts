/**
 * Sends the requests of public clients of the bridge, and checks the results published for the public starter script.
 */
import { expect } from "chai";
import { type Answer, bridgeForEach } from "./bridge.js";

const LATTICE_X = [160, 240, 320, 400, 480];
const LATTICE_Z = [-160, -80, 0, 80, 160];

/** The forty streets of the starter script: first those from west to east, then those from south to north. */
function latticeRoads() {
  const rows = LATTICE_Z.flatMap((z) =>
    LATTICE_X.slice(1).map((x) => ({
      start: { x: x - 80, z },
      end: { x, z },
      name: `Agent Block E-W ${x - 80} ${z}`,
    })),
  );
  const columns = LATTICE_X.flatMap((x) =>
    LATTICE_Z.slice(1).map((z) => ({
      start: { x, z: z - 80 },
      end: { x, z },
      name: `Agent Block N-S ${x} ${z - 80}`,
    })),
  );
  return [...rows, ...columns];
}

const LINKS = [
  { start: { x: 400, z: 160 }, end: { x: 400, z: 300 }, name: "Agent Outside Approach" },
  { start: { x: 400, z: 300 }, end: { x: 422.737, z: 522.957 }, name: "Agent Outside South" },
  { start: { x: 400, z: 300 }, end: { x: 423.614, z: 554.945 }, name: "Agent Outside North" },
];

const ZONES = [
  { zone: "ResidentialLow", center: { x: 200, z: -120 }, radius: 48, touchedBlocks: 10 },
  { zone: "ResidentialLow", center: { x: 200, z: 120 }, radius: 48, touchedBlocks: 10 },
  { zone: "ResidentialLow", center: { x: 320, z: 40 }, radius: 48, touchedBlocks: 12 },
  { zone: "CommercialLow", center: { x: 400, z: -80 }, radius: 42, touchedBlocks: 12 },
  { zone: "Office", center: { x: 440, z: 80 }, radius: 42, touchedBlocks: 10 },
  { zone: "Industrial", center: { x: 480, z: 0 }, radius: 36, touchedBlocks: 6 },
];

describe("a client's starter script, run on empty land", () => {
  const bridge = bridgeForEach();

  it("the script gets the published numbers of nodes, zone blocks and anomalies", async () => {
    const { client } = bridge;
    for (const road of latticeRoads())
      await client.run("build-road", { dryRun: false, roadPrefab: "Basic Road", ...road });
    expect((await client.state("/state/summary")).network).to.include({ nodes: 25, segments: 40 });
    expect(await client.state("/state/zones")).to.include({ zoneBlockCount: 160, totalCells: 3200 });
    for (const { touchedBlocks, ...body } of ZONES) {
      const reply = await client.run("set-zone", { dryRun: false, preserveOccupied: true, ...body });
      expect([body.zone, reply.touchedBlocks]).to.deep.equal([body.zone, touchedBlocks]);
      expect(reply.changedCells).to.equal(touchedBlocks * 20);
    }
    for (const link of LINKS) await client.run("build-road", link);
    expect((await client.state("/state/summary")).network).to.include({ nodes: 28, segments: 43 });
    expect(await client.state("/state/zones")).to.include({ zoneBlockCount: 172, totalCells: 3584 });
    const { anomalies, counts } = await client.state("/state/road-anomalies");
    expect(counts).to.deep.equal({ roadTerrainCliff: 3, deadEndNearRoad: 1, deadEndRoad: 1 });
    const lengths = anomalies
      .slice(0, 3)
      .map(({ segment: { start, end } }: Answer) => Math.hypot(end.x - start.x, end.z - start.z));
    expect(lengths[1]).to.be.closeTo(224.113, 0.01);
    expect(anomalies[3]).to.include({ type: "deadEndNearRoad", distance: 2.077 });
    expect(anomalies[3].position).to.include({ x: 422.737, z: 522.957 });
    expect(anomalies[4].position).to.include({ x: 423.614, z: 554.945 });
  });
});

describe("requests of public clients on the starter map", () => {
  const bridge = bridgeForEach({ map: "highway" });

  it("connects the town of the starter script to the highway", async () => {
    const { client } = bridge;
    const { nodes } = (await client.state("/state/summary")).network;
    for (const road of [...latticeRoads(), ...LINKS]) await client.run("build-road", road);
    expect((await client.state("/state/summary")).network.nodes).to.equal(nodes + 26);
    expect((await client.state("/state/road-anomalies")).counts).to.deep.equal({ roadTerrainCliff: 3 });
    const outside = await client.state("/state/external-connections");
    expect(outside).to.include({ cityConnectedToOutside: true, disconnectedLocalRoadComponents: 0 });
    const town = outside.components.find(
      ({ componentId }: Answer) => componentId === outside.cityComponentId,
    );
    expect(town).to.include({ agentNamedSegments: 43, nonHighwaySegments: 43, outsideNodes: 4 });
  });

  it("the bridge passes the smoke test of a public client", async () => {
    const { client } = bridge;
    expect(await client.state("/health")).to.include.all.keys("ok", "mod", "levelLoaded", "port");
    await client.state("/state/summary");
    await client.state("/state/problems?limit=20");
    const { roads } = await client.state("/prefabs/roads");
    expect(roads.map(({ name }: Answer) => name)).to.include("Basic Road");
    const road = (from: number, to: number) => ({ start: { x: from, z: 0 }, end: { x: to, z: 0 } });
    await client.run("build-road", { dryRun: true, roadPrefab: "Basic Road", ...road(0, 80) });
    const commands = [
      { type: "build-road", roadPrefab: "Basic Road", ...road(120, 200) },
      { type: "set-zone", zone: "ResidentialLow", center: { x: 160, z: 0 }, radius: 48 },
    ];
    const batch = await client.run("batch", { dryRun: true, stopOnError: true, commands });
    expect(batch).to.include({ ok: true, executed: 2 });
    expect((await client.state("/state/summary")).network.segments).to.equal(218);
  });

  it("builds each type of building and network that the public client's script uses", async () => {
    const { client } = bridge;
    for (const roadPrefab of ["Basic Road", "Water Pipe", "Heating Pipe", "Power Line"]) {
      await client.run("build-road", { roadPrefab, start: { x: 0, z: 0 }, end: { x: 0, z: 80 } });
    }
    const places = [
      "Wind Turbine",
      "Water Tower",
      "Inland Water Treatment Plant 01",
      "711884134.Koban Police Box_Data",
      "Fire House",
      "Medical Clinic",
      "Elementary School",
      "Cemetery",
      "Landfill Site",
      "Boiler Station",
    ];
    for (const [i, buildingPrefab] of places.entries()) {
      await client.run("place-building", {
        buildingPrefab,
        position: { x: -300, z: i * 120 },
        angleDegrees: 0,
      });
    }
    await client.run("set-zone", { zone: "ResidentialLow", center: { x: 0, z: 40 }, radius: 48 });
    await client.run("set-simulation-speed", { paused: false, speed: 3 });
    await client.run("set-simulation-speed", { paused: true, speed: 3 });
    await client.state("/state/problems?limit=100");
    const { facilities } = await client.state("/state/facilities?limit=300");
    const prefabs = facilities.map(({ prefab }: Answer) => prefab);
    expect(prefabs).to.include.members(places);
    for (const { position } of facilities)
      expect([typeof position.x, typeof position.z]).to.deep.equal(["number", "number"]);
    await client.save("AgentAutoSave-20310514-0722");
  });

  it("repairs a road stub with the requests of the public client's script", async () => {
    const { client } = bridge;
    await client.road(0, 0, 80, 0);
    await client.road(80, 0, 80, 14);
    const { anomalies } = await client.state(
      "/state/road-anomalies?limit=500&nearMissDistance=18&shortSegmentLength=32&includeDeadEnds=false",
    );
    const stub = anomalies.find(({ type }: Answer) => type === "shortRoadStub");
    const removal = { entityType: "netSegment", id: stub.segmentId, keepNodes: false };
    await client.run("bulldoze", { dryRun: true, ...removal });
    await client.run("bulldoze", { dryRun: false, ...removal });
    expect((await client.state("/state/road-anomalies?includeDeadEnds=false")).total).to.equal(0);
  });

  it("serves a client that logs the city's parameters", async () => {
    const { client } = bridge;
    const { simulation, citizens, ...summary } = await client.state("/state/summary");
    expect([typeof summary.gameTime, typeof summary.buildIndex]).to.deep.equal(["string", "number"]);
    expect(simulation).to.have.all.keys("paused", "selectedSpeed", "finalSpeed");
    expect(citizens.count).to.equal(0);
    const demand = await client.state("/state/demand");
    for (const bar of ["residential", "commercial", "workplace"]) expect(demand[bar]).to.be.within(0, 100);
    const { aggregateTaxRates } = await client.state("/state/economy");
    const keys = aggregateTaxRates.map(({ service, subService }: Answer) => `${service}.${subService}`);
    expect(keys).to.deep.equal([
      "Residential.ResidentialLow",
      "Residential.ResidentialHigh",
      "Commercial.CommercialLow",
      "Commercial.CommercialHigh",
      "Industrial.IndustrialGeneric",
      "Office.OfficeGeneric",
    ]);
    const problems = await client.state("/state/problems?limit=80");
    expect(problems.total).to.be.a("number");
    expect(problems.countsByProblem).to.be.an("object");
  });
});
