import { expect } from "chai";
import { type Answer, bridgeForEach } from "./bridge.js";
import { advance, findFaults, fingerprint, restoreSnapshot, smallTown } from "./simulation/towns.js";

const WEEK = 4096;

describe("command zone-rectangle", () => {
  const bridge = bridgeForEach();

  it("zone-rectangle paints only the cells between two corners", async () => {
    const { client, city } = bridge;
    await client.road(0, 0, 160, 0);
    const area = { zone: "Industrial", from: { x: 0, z: 0 }, to: { x: 80, z: 40 } };
    const tried = await client.run("zone-rectangle", { ...area, dryRun: true });
    expect(tried).to.include({ ok: true, dryRun: true, matchingCells: 32, changedCells: 32 });
    expect((await client.state("/state/zones")).zonedCells).to.equal(0);
    expect((await client.run("zone-rectangle", area)).changedCells).to.equal(32);
    const { zones } = await client.state("/state/zones");
    expect(zones.find(({ zone }: Answer) => zone === "Industrial").cells).to.equal(32);
    expect((await client.run("zone-rectangle", area)).changedCells).to.equal(0);
    expect(findFaults(city)).to.deep.equal([]);
  });

  it("zone-rectangle does not change cells under buildings by default", async () => {
    const { client } = bridge;
    await client.road(0, 0, 160, 0);
    await client.run("place-building", { buildingPrefab: "Fire House", position: { x: 40, z: 24 } });
    const area = { zone: "Office", from: { x: 0, z: 8 }, to: { x: 80, z: 40 } };
    const kept = await client.run("zone-rectangle", area);
    expect([kept.skippedOccupiedCells, kept.changedCells]).to.deep.equal([16, 16]);
    expect((await client.run("zone-rectangle", { ...area, preserveOccupied: false })).changedCells).to.equal(
      16,
    );
  });

  it("rejects unknown zones, and corners that are too far apart or off the map", async () => {
    const { client } = bridge;
    expect(await client.refusal("zone-rectangle", { zone: "Farm" })).to.include("Farm");
    expect(await client.refusal("zone-rectangle", { to: { x: 2049, z: 0 } })).to.include("2048");
    expect(await client.refusal("zone-rectangle", { to: { x: 0, z: 9999 } })).to.include("9999");
  });
});

describe("command build-road with split", () => {
  const bridge = bridgeForEach({ map: "empty" });

  for (const [end, snapDistance] of [
    [1.6, null],
    [-3.4, null],
    [12, 16],
  ] as const) {
    it(`a street that ends ${end} m from another's axis is joined to it, with a snap distance of ${snapDistance}`, async () => {
      const { client, city } = bridge;
      await client.road(0, 0, 300, 0, { split: true });
      const how = { split: true, snapDistance };
      const { endNodeId, warnings } = await client.road(130, 200, 130, end, how);
      expect(warnings).to.equal(undefined);
      const node = city.nodes.at(endNodeId);
      expect(node.position).to.include({ x: 130, z: 0 });
      expect(node.segmentIds).to.have.length(3);
      expect(findFaults(city)).to.deep.equal([]);
    });
  }

  it("refuses a street on another, but extends one that is drawn from its middle", async () => {
    const { client, city } = bridge;
    await client.road(0, 0, 192, 0, { split: true });
    const along = (z: number) => {
      const ends = { start: { x: 10, z }, end: { x: 180, z } };
      return client.refusal("build-road", { ...ends, split: true, snapDistance: 16 });
    };
    for (const z of [0, 3, -6])
      expect(await along(z)).to.match(/^A Two-Lane Road, segment \d+, lies there already$/);
    await client.road(96, 0, 300, 0, { split: true });
    expect(city.segments.all().map(({ start, end }) => Math.abs(end.x - start.x))).to.deep.equal([
      96, 96, 56, 52,
    ]);
  });

  it("says that a street runs over buildings", async () => {
    const { client } = bridge;
    await client.run("place-building", { buildingPrefab: "Water Tower", position: { x: 100, z: 50 } });
    const { warnings } = await client.road(0, 50, 200, 50, { split: true, dryRun: true });
    expect(warnings).to.deep.equal(["The road runs over a building, which stays"]);
  });

  it("a street beside another stays apart from it", async () => {
    const { client, city } = bridge;
    await client.road(0, 0, 300, 0, { split: true });
    const { endNodeId } = await client.road(130, 200, 130, 20, { split: true });
    expect(city.nodes.at(endNodeId).segmentIds).to.have.length(1);
  });
});

describe("command upgrade-road", () => {
  const bridge = bridgeForEach({ map: "highway" });

  it("upgrade-road changes the prefab and keeps id, name, zones and buildings", async () => {
    const { client, city } = bridge;
    smallTown(city);
    advance(city, 2 * WEEK);
    const [street] = city.segments.all().filter(({ prefab }) => prefab.name === "Basic Road");
    const id = street?.id as number;
    const row = async () =>
      (await client.state("/state/networks?service=Road&limit=5000")).segments.find(
        (each: Answer) => each.id === id,
      );
    const before = await row();
    const zonesBefore = await client.state("/state/zones");
    const buildings = city.buildings.all().map((building) => building.id);
    const tried = await client.run("upgrade-road", { id, roadPrefab: "Large Road", dryRun: true });
    expect(await row()).to.deep.equal(before);
    const { balance } = await client.state("/state/budget");
    const done = await client.run("upgrade-road", { id, roadPrefab: "Large Road" });
    expect(done).to.include({ ok: true, cost: tried.cost, skippedSegments: 0 });
    expect(done.segmentIds).to.deep.equal([id]);
    expect((await client.state("/state/budget")).balance).to.be.closeTo(balance - done.cost, 0.01);
    expect(await row()).to.deep.equal({ ...before, prefab: "Large Road", displayName: "Six-Lane Road" });
    expect((await client.state("/state/zones")).zones).to.have.deep.members(zonesBefore.zones);
    expect(city.buildings.all().map((building) => building.id)).to.deep.equal(buildings);
    expect(findFaults(city)).to.deep.equal([]);
    const { traffic } = await client.state(`/state/segments/${id}`);
    expect(traffic.capacityPerHour).to.be.greaterThan(3000);
    advance(city, WEEK);
    expect(findFaults(city)).to.deep.equal([]);
    expect((await client.run("upgrade-road", { id, roadPrefab: "Large Road" })).skippedSegments).to.equal(1);
  });

  it("lots that grow beside a narrowed road stay apart, and its city can be loaded", async () => {
    const { client, city } = bridge;
    smallTown(city);
    const ids = city.segments
      .all()
      .filter(({ prefab }) => prefab.name === "Basic Road")
      .map(({ id }) => id);
    await client.run("upgrade-road", { ids, roadPrefab: "Large Road" });
    const growWell = () => {
      for (let week = 0; week < 4; week++) {
        Object.assign(city.demand, { residential: 100, commercial: 100, workplace: 100 });
        advance(city, WEEK);
      }
      return city.buildings.all().length;
    };
    const before = growWell();
    await client.run("upgrade-road", { ids, roadPrefab: "Basic Road" });
    expect(growWell()).to.be.at.least(before);
    expect(findFaults(city)).to.deep.equal([]);
    restoreSnapshot(JSON.parse(fingerprint(city)));
  });

  it("upgrade-road upgrades all listed roads, or none if one is unknown", async () => {
    const { client, city } = bridge;
    const ids = [(await client.road(0, 0, 80, 0)).segmentId, (await client.road(80, 0, 160, 0)).segmentId];
    const before = fingerprint(city);
    expect(await client.refusal("upgrade-road", { ids: [...ids, 60_000] })).to.include("60000");
    expect(fingerprint(city)).to.equal(before);
    const done = await client.run("upgrade-road", { ids });
    expect(done.segmentIds).to.deep.equal(ids);
    expect(done.cost).to.equal(400);
  });

  it("rejects pipes, unknown prefabs and unaffordable upgrades", async () => {
    const { client, city } = bridge;
    const pipe = await client.road(0, 0, 80, 0, { roadPrefab: "Water Pipe" });
    expect(await client.refusal("upgrade-road", { id: pipe.segmentId })).to.include("Water Pipe");
    const { segmentId: id } = await client.road(0, 100, 80, 100);
    expect(await client.refusal("upgrade-road", { id, roadPrefab: "Water Pipe" })).to.include("only roads");
    expect(await client.refusal("upgrade-road", { id, roadPrefab: "Dream Road" })).to.include("Dream Road");
    expect(await client.refusal("upgrade-road", {})).to.include("id");
    const many = Array.from({ length: 201 }, (_, i) => i + 1);
    expect(await client.refusal("upgrade-road", { ids: many })).to.include("200");
    city.unlimitedMoney = false;
    city.ledger.book("Construction", 1e6);
    expect(await client.refusal("upgrade-road", { id })).to.include("costs 200");
  });
});

describe("sites that place-building suggests", () => {
  const bridge = bridgeForEach({ map: "highway" });

  it("suggested sites are free, buildable and beside a road; the nearest comes first", async () => {
    const { client, city } = bridge;
    smallTown(city);
    advance(city, 2 * WEEK);
    const before = fingerprint(city);
    const wanted = { buildingPrefab: "Medical Clinic", position: { x: 280, z: 40 } };
    const reply = await client.run("place-building", { ...wanted, suggest: true });
    expect(fingerprint(city)).to.equal(before);
    expect(reply).to.include({ ok: true, dryRun: true, constructionCost: 10_000 });
    expect(reply.suggestions).to.have.length(5);
    const standing = city.buildings.all().length;
    for (const { position, angleDegrees, roadSegmentId } of reply.suggestions) {
      const { buildingId } = await client.run("place-building", { ...wanted, position, angleDegrees });
      expect((await client.state(`/state/buildings/${buildingId}`)).roadSegmentId).to.be.greaterThan(0);
      expect(city.segments.get(roadSegmentId)?.prefab.service).to.equal("Road");
    }
    expect(city.buildings.all().length).to.equal(standing + 5);
    expect((await client.state("/state/building-anomalies")).total).to.equal(0);
  });

  it("suggested sites are on the shore for buildings that need water", async () => {
    const { client, city } = bridge;
    const land = await client.state("/state/terrain/grid");
    const wet = land.waterDepths.findIndex((depth: number) => depth > 1);
    const x = (wet % land.samplesPerRow) * land.spacingMeters - land.halfSizeMeters;
    const z = Math.floor(wet / land.samplesPerRow) * land.spacingMeters - land.halfSizeMeters;
    const intake = { buildingPrefab: "Water Intake", position: { x, z } };
    const { suggestions } = await client.run("place-building", { ...intake, suggest: true });
    expect(suggestions).to.not.have.length(0);
    await client.run("place-building", { ...intake, ...suggestions[0] });
    expect(city.buildings.all()).to.have.length(1);
    const { samples } = await client.state(
      `/state/terrain?x=${suggestions[0].position.x}&z=${suggestions[0].position.z}`,
    );
    expect(samples[0]).to.include({ hasWater: false });
    expect(samples[0].shoreDistance).to.be.lessThan(60);
  });

  it("the list of suggested sites is empty if no road is near; an unknown prefab is an error", async () => {
    const { client } = bridge;
    const far = { position: { x: -4000, z: 4000 }, suggest: true };
    expect(
      (await client.run("place-building", { ...far, buildingPrefab: "Fire House" })).suggestions,
    ).to.deep.equal([]);
    expect(await client.refusal("place-building", { ...far, buildingPrefab: "Castle" })).to.include("Castle");
  });
});

describe("state endpoints for planning buildings", () => {
  const bridge = bridgeForEach({ map: "highway" });

  it("lists cost, output and requirements of every building", async () => {
    const { buildings } = await bridge.client.state("/prefabs/buildings");
    const row = (name: string) => buildings.find((each: Answer) => each.name === name);
    expect(row("Coal Power Plant")).to.deep.include({
      constructionCost: 19_000,
      upkeepPerWeek: 560,
      jobs: 20,
      supply: { powerKw: 40_000, waterM3: 0, sewageM3: 0, heatKw: 0 },
      coverage: null,
    });
    expect(row("Coal Power Plant").needs).to.include.members(["road", "water"]).and.not.include("power");
    expect(row("Fire House").coverage).to.deep.equal({ service: "fire", rangeMeters: 900, capacity: 300 });
    expect(row("Fire House").needs).to.include.members(["road", "power", "water"]);
    expect(row("Water Intake").needs)
      .to.include.members(["shore", "power", "water pipe"])
      .and.not.include("road");
    const home = buildings.find((each: Answer) => each.subService === "ResidentialHigh");
    expect(home.growable).to.equal(true);
    expect(home.homes).to.be.greaterThan(0);
    expect(home.needs).to.include("zone ResidentialHigh");
  });

  it("lists cost and capacity of every network", async () => {
    const { networks } = await bridge.client.state("/prefabs/networks");
    const row = (name: string) => networks.find((each: Answer) => each.name === name);
    expect(row("Basic Road")).to.include({ costPerMeter: 5, lanes: 6, widthMeters: 16, zoning: true });
    expect(row("Basic Road").capacityPerHour).to.equal(1400);
    expect(row("Water Pipe")).to.include({ carries: "water", speedKmh: 0, zoning: false });
  });

  it("lists the factors of happiness and land value", async () => {
    const { client, city } = bridge;
    smallTown(city);
    advance(city, 3 * WEEK);
    const home = city.buildings.all().find(({ householdIds }) => householdIds.length > 0);
    const details = await client.state(`/state/buildings/${home?.id}`);
    const sum = (parts: Record<string, number>) =>
      Object.values(parts).reduce((all, points) => all + points, 0);
    expect(sum(details.happinessParts)).to.be.closeTo(details.happiness, 8);
    expect(details.happinessParts.leisure).to.equal(0);
    expect(details.landValueParts).to.include.keys("base", "leisure", "pollution");
    await client.run("place-building", { buildingPrefab: "Regular Park", position: { x: 240, z: 120 } });
    const after = await client.state(`/state/buildings/${home?.id}`);
    expect(after.happinessParts.leisure).to.be.greaterThan(details.happinessParts.leisure);
    const before = fingerprint(city);
    await client.state(`/state/buildings/${home?.id}`);
    expect(fingerprint(city)).to.equal(before);
    const turbine = city.buildings.all().find(({ prefab }) => prefab.name === "Wind Turbine");
    expect(await client.state(`/state/buildings/${turbine?.id}`)).to.include({
      happinessParts: null,
      landValueParts: null,
    });
  });
});
