import { expect } from "chai";
import { BUILDING_PREFABS } from "../../src/city/simulation/catalogue/building-prefabs.js";
import { problemMasks } from "../../src/city/terms.js";
import { bridgeForEach } from "./bridge.js";
import { advance, smallTown } from "./simulation/towns.js";

const ids = (rows: { id: number }[]) => rows.map(({ id }) => id);
const ascending = (numbers: readonly number[]) => [...numbers].sort((a, b) => a - b);

describe("state endpoints for an empty city", () => {
  const bridge = bridgeForEach();

  it("a response with an empty list still has all its fields", async () => {
    const { client } = bridge;
    const empty = { ok: true, total: 0, returned: 0 };
    expect(await client.state("/state/chirps")).to.deep.equal({ ...empty, limit: 50, chirps: [] });
    expect(await client.state("/state/growables")).to.deep.equal({
      ...empty,
      limit: 500,
      serviceFilter: "",
      countsByService: {},
      countsBySubService: {},
      growables: [],
    });
    expect(await client.state("/state/facilities")).to.deep.equal({
      ...empty,
      limit: 500,
      serviceFilter: "",
      includeMapObjects: false,
      countsByService: {},
      countsBySubService: {},
      facilities: [],
    });
    expect(await client.state("/state/networks")).to.deep.equal({
      ...empty,
      limit: 500,
      serviceFilter: "",
      countsByService: {},
      segments: [],
    });
    expect(await client.state("/state/problems")).to.deep.equal({
      ...empty,
      limit: 200,
      counts: {},
      countsByProblem: {},
      problems: [],
      closedForDebt: [],
      wishes: [],
    });
    expect(await client.state("/state/zones")).to.deep.equal({
      ok: true,
      zoneBlockCount: 0,
      cellSizeMeters: 8,
      cellAreaSquareMeters: 64,
      totalCells: 0,
      zonedCells: 0,
      zonedAreaSquareMeters: 0,
      zones: [],
    });
    expect(await client.state("/state/external-connections")).to.deep.equal({
      ok: true,
      total: 0,
      roadComponents: 0,
      returned: 0,
      limit: 50,
      outsideRoadNodes: 0,
      outsideRoadSegments: 0,
      localRoadComponents: 0,
      disconnectedLocalRoadComponents: 0,
      cityComponentId: -1,
      cityConnectedToOutside: false,
      components: [],
    });
    expect(await client.state("/state/saves")).to.deep.equal({
      ok: true,
      total: 0,
      returned: 0,
      limit: 65_535,
      directory: bridge.savesDirectory,
      saves: [],
    });
  });

  it("/state/summary describes the empty city", async () => {
    const summary = await bridge.client.state("/state/summary");
    expect(summary.gameTime).to.match(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d$/);
    expect(summary).to.deep.equal({
      ok: true,
      gameTime: summary.gameTime,
      buildIndex: 0,
      simulation: { paused: true, selectedSpeed: 1, finalSpeed: 0 },
      network: { nodes: 0, segments: 0, lanes: 0 },
      citizens: { count: 0 },
      demand: { residential: 100, commercial: 0, workplace: 0 },
    });
    const demand = await bridge.client.state("/state/demand");
    expect(demand).to.include({ ok: true, ...summary.demand });
    expect(demand.bars).to.deep.equal([
      { type: "Residential", key: "residential", value: 100, max: 100, color: "#7fff00" },
      { type: "Commercial", key: "commercial", value: 0, max: 100, color: "#30c8ff" },
      { type: "Workplace", key: "workplace", value: 0, max: 100, color: "#ffd21a" },
    ]);
  });

  it("omits broken assets from the lists of prefabs", async () => {
    const { roads } = await bridge.client.state("/prefabs/roads");
    expect(roads).to.deep.include({ name: "Basic Road", displayName: "Two-Lane Road" });
    const { networks } = await bridge.client.state("/prefabs/networks?service=Water");
    expect(networks.map(({ name }: { name: string }) => name)).to.have.members([
      "Water Pipe",
      "Heating Pipe",
    ]);
    expect(networks[0]).to.include.all.keys("name", "displayName", "service", "subService");
    expect((await bridge.client.state("/prefabs/networks")).networks.length).to.be.greaterThan(roads.length);
    const { buildings } = await bridge.client.state("/prefabs/buildings");
    expect(JSON.stringify(buildings)).to.not.include("Block Services");
    expect(BUILDING_PREFABS.some(({ name }) => name.includes("Block Services -"))).to.equal(true);
    const school = buildings.find(({ name }: { name: string }) => name === "Elementary School");
    expect(school).to.deep.include({
      name: "Elementary School",
      displayName: "Elementary School",
      service: "Education",
      subService: "None",
      level: "Level1",
      width: 6,
      length: 4,
    });
    expect((await bridge.client.state("/prefabs/buildings?service=education")).buildings).to.deep.equal([]);
  });

  it("shows the whole tax table", async () => {
    const { aggregateTaxRates, taxRates } = await bridge.client.state("/state/economy");
    expect(aggregateTaxRates.map(({ subService }: { subService: string }) => subService)).to.deep.equal([
      "ResidentialLow",
      "ResidentialHigh",
      "CommercialLow",
      "CommercialHigh",
      "IndustrialGeneric",
      "OfficeGeneric",
    ]);
    expect(aggregateTaxRates[0]).to.deep.equal({
      service: "Residential",
      serviceValue: 1,
      subService: "ResidentialLow",
      subServiceValue: 1,
      level: "None",
      levelValue: -1,
      source: "uiTaxSlider",
      rate: 9,
    });
    expect(taxRates).to.have.length(100);
    expect(taxRates[4]).to.deep.equal({
      service: "Residential",
      serviceValue: 1,
      subService: "ResidentialLow",
      subServiceValue: 1,
      level: "Level5",
      levelValue: 4,
      rate: 9,
    });
  });
});

describe("state endpoints for a small town", () => {
  const bridge = bridgeForEach({ map: "highway" });

  beforeEach(() => {
    smallTown(bridge.city);
    advance(bridge.city, 6000);
  });

  it("lists growables by id", async () => {
    const { total, returned, countsByService, countsBySubService, growables } =
      await bridge.client.state("/state/growables");
    expect(total).to.equal(returned).and.to.equal(growables.length).and.to.be.greaterThan(5);
    expect(ids(growables)).to.deep.equal(ascending(ids(growables)));
    expect(countsBySubService["Residential/ResidentialLow"]).to.equal(countsByService.Residential);
    expect(growables[0]).to.have.all.keys(
      "id",
      "prefab",
      "displayName",
      "active",
      "abandoned",
      "flags",
      "service",
      "subService",
      "level",
      "width",
      "length",
      "angleDegrees",
      "problems",
      "position",
    );
    expect(growables[0].level).to.match(/^Level[1-5]$/);
    const homes = await bridge.client.state("/state/growables?service=Residential&limit=2");
    expect(homes).to.include({
      total: countsByService.Residential,
      returned: 2,
      serviceFilter: "Residential",
    });
    expect(homes.growables.every(({ service }: { service: string }) => service === "Residential")).to.equal(
      true,
    );
  });

  it("lists the current growables, not a cached list", async () => {
    const { client } = bridge;
    const before = await client.state("/state/growables");
    const { id } = before.growables[0];
    expect((await client.state("/state/growables")).growables).to.deep.equal(before.growables);
    await client.run("set-building-active", { id, active: false });
    const [off, ...others] = (await client.state("/state/growables")).growables;
    expect(off).to.deep.include({ id, active: false });
    expect(off.flags).to.not.include("Active");
    expect(off.problems).to.include("TurnedOff");
    expect(others).to.deep.equal(before.growables.slice(1));
    await client.run("bulldoze", { entityType: "building", id });
    expect((await client.state("/state/growables")).growables).to.deep.equal(others);
  });

  it("lists facilities by service, without map objects", async () => {
    const { client } = bridge;
    const { countsByService, countsBySubService, facilities } = await client.state("/state/facilities");
    expect(countsByService).to.deep.equal({ Electricity: 2, Water: 2 });
    expect(countsBySubService).to.deep.equal({ "Electricity/None": 2, "Water/None": 2 });
    expect(facilities[0]).to.have.all.keys(
      "id",
      "prefab",
      "displayName",
      "blockedAsset",
      "active",
      "flags",
      "service",
      "subService",
      "level",
      "levelName",
      "width",
      "length",
      "angleDegrees",
      "problems",
      "position",
    );
    expect(facilities[0]).to.include({ level: 1, levelName: "Level1" });
    const everything = await client.state("/state/facilities?includeMapObjects=true");
    expect(everything.total).to.equal(bridge.city.buildings.all().length);
    const homes = await client.state("/state/facilities?service=Residential");
    expect(homes.countsByService).to.have.all.keys("Residential");
    const junction = { buildingPrefab: "Water Pipe Junction", position: { x: 0, z: -300 } };
    await client.run("place-building", junction);
    expect((await client.state("/state/facilities?service=Water")).total).to.equal(2);
    expect((await client.state("/state/facilities?service=Water&includeMapObjects=true")).total).to.equal(3);
    expect((await client.state("/state/facilities")).countsByService.Water).to.equal(2);
  });

  it("lists networks with the positions of their ends", async () => {
    const { total, countsByService, segments } = await bridge.client.state("/state/networks?limit=5000");
    expect(total).to.equal(segments.length);
    expect(countsByService.Road + countsByService.Water).to.equal(total);
    expect(ids(segments)).to.deep.equal(ascending(ids(segments)));
    for (const { start, end, middle, startNodeId, endNodeId } of segments) {
      expect(startNodeId * endNodeId).to.be.greaterThan(0);
      expect(middle.x).to.be.closeTo((start.x + end.x) / 2, 0.002);
    }
    const [pipe] = (await bridge.client.state("/state/networks?service=Water")).segments;
    expect(pipe).to.include({ prefab: "Water Pipe", name: "", service: "Water", subService: "None" });
    expect((await bridge.client.state("/state/networks?service=road")).total).to.equal(0);
  });

  it("limits the number of rows, but `total` counts all rows", async () => {
    for (const [path, rows, fallback, max] of [
      ["/state/chirps", "chirps", 50, 200],
      ["/state/growables", "growables", 500, 5000],
      ["/state/facilities", "facilities", 500, 5000],
      ["/state/networks", "segments", 500, 5000],
      ["/state/problems", "problems", 200, 1000],
      ["/state/road-anomalies", "anomalies", 200, 1000],
      ["/state/building-anomalies", "anomalies", 200, 1000],
      ["/state/zone-anomalies", "anomalies", 200, 1000],
      ["/state/external-connections", "components", 50, 200],
    ] as const) {
      const whole = await bridge.client.state(path);
      expect([path, whole.limit]).to.deep.equal([path, fallback]);
      expect((await bridge.client.state(`${path}?limit=999999`)).limit).to.equal(max);
      const none = await bridge.client.state(`${path}?limit=-3`);
      expect(none).to.deep.equal({ ...whole, limit: 0, returned: 0, [rows]: [] });
      const one = await bridge.client.state(`${path}?limit=1`);
      expect(one[rows]).to.deep.equal(whole[rows].slice(0, 1));
    }
  });

  it("pages that begin at successive offsets contain all rows", async () => {
    const { client } = bridge;
    const whole = await client.state("/state/networks");
    const rows: number[] = [];
    for (let offset = 0; offset < whole.total; offset += 100) {
      const page = await client.state(`/state/networks?limit=100&offset=${offset}`);
      expect(page.total).to.equal(whole.total);
      rows.push(...ids(page.segments));
    }
    expect(rows).to.deep.equal(ids(whole.segments));
    expect(await client.state("/state/networks?offset=99999")).to.include({
      total: whole.total,
      returned: 0,
    });
    expect((await client.state("/state/networks?offset=-5")).segments).to.deep.equal(whole.segments);
  });

  it("pages every list in the same way", async () => {
    const { client } = bridge;
    await client.save("One");
    for (const [path, key] of [
      ["/state/chirps", "chirps"],
      ["/state/growables", "growables"],
      ["/state/facilities", "facilities"],
      ["/state/networks", "segments"],
      ["/state/problems", "problems"],
      ["/state/zone-blocks", "blocks"],
      ["/state/utilities", "networks"],
      ["/state/statistics", "samples"],
      ["/state/traffic", "segments"],
      ["/state/external-connections", "components"],
      ["/state/road-anomalies", "anomalies"],
      ["/state/building-anomalies", "anomalies"],
      ["/state/zone-anomalies", "anomalies"],
      ["/state/saves", "saves"],
      ["/prefabs/roads", "roads"],
      ["/prefabs/networks", "networks"],
      ["/prefabs/buildings", "buildings"],
    ] as const) {
      const whole = await client.state(path);
      const page = await client.state(`${path}?limit=2&offset=1`);
      expect([path, page.total, page.limit]).to.deep.equal([path, whole.total, 2]);
      expect(page[key], path).to.deep.equal(whole[key].slice(1, 3));
      expect([path, page.returned]).to.deep.equal([path, page[key].length]);
    }
  });

  it("/state/map-tiles returns only changed tiles", async () => {
    const { client, city } = bridge;
    const count = (tiles: { buildings: unknown[] }[]) => tiles.flatMap(({ buildings }) => buildings).length;
    const first = await client.state("/state/map-tiles");
    expect(first.complete).to.equal(true);
    expect(count(first.tiles)).to.equal(city.buildings.all().length);
    const seen = `key=${first.key}&since=${first.revision}`;
    const same = await client.state(`/state/map-tiles?${seen}`);
    expect(same).to.deep.include({ revision: first.revision, tiles: [] });
    const tower = { buildingPrefab: "Water Tower", position: { x: 2000, z: 2000 } };
    const { buildingId } = await client.run("place-building", tower);
    const more = await client.state(`/state/map-tiles?${seen}`);
    expect(more.tiles).to.have.length(1);
    expect(more.tiles[0]).to.deep.include({ column: 7, row: 7 });
    expect(more.tiles[0].buildings[0].slice(0, 3)).to.deep.equal([buildingId, 2000, 2000]);
    expect([more.networkRevision, more.zoneRevision]).to.deep.equal([
      first.networkRevision,
      first.zoneRevision,
    ]);
    await client.run("bulldoze", { entityType: "building", id: buildingId });
    await client.run("set-zone", { zone: "Office", center: { x: 200, z: 40 }, preserveOccupied: false });
    const less = await client.state(`/state/map-tiles?key=${first.key}&since=${more.revision}`);
    expect(less.tiles).to.deep.equal([{ column: 7, row: 7, buildings: [] }]);
    expect(less.zoneRevision).to.not.equal(first.zoneRevision);
    expect(count((await client.state(`/state/map-tiles?key=another&since=${less.revision}`)).tiles)).to.equal(
      city.buildings.all().length,
    );
  });

  it("lists messages newest first", async () => {
    const { chirps } = await bridge.client.state("/state/chirps?limit=200");
    const latest = bridge.city.board.messages.at(-1);
    expect(chirps[0]).to.include({ index: chirps.length - 1, text: latest?.text, type: latest?.type });
    expect(chirps.map(({ index }: { index: number }) => index)).to.deep.equal([...chirps.keys()].reverse());
    for (const chirp of chirps) {
      const own = chirp.type === "CitizenMessage" ? ["keyId", "tag"] : ["senderKey", "randomId"];
      expect(chirp).to.have.all.keys("index", "type", "senderName", "senderId", "text", "messageId", ...own);
    }
  });

  it("counts the cells of each zone", async () => {
    const zones = await bridge.client.state("/state/zones");
    const counts = zones.zones.map(({ cells }: { cells: number }) => cells);
    expect(counts.reduce((a: number, b: number) => a + b)).to.equal(zones.totalCells);
    const homes = zones.zones.find(({ zone }: { zone: string }) => zone === "ResidentialLow");
    expect(homes.areaSquareMeters).to.equal(homes.cells * 64);
    expect(homes.areaHectares).to.be.closeTo((homes.cells * 64) / 10_000, 0.001);
    const unzoned = zones.zones.find(({ zone }: { zone: string }) => zone === "Unzoned");
    expect(zones.zonedCells).to.equal(zones.totalCells - unzoned.cells);
  });

  it("reports problems as names and as the game's exact bit mask", async () => {
    for (const { id } of bridge.city.buildings
      .all()
      .filter(({ prefab }) => prefab.service === "Electricity")) {
      await bridge.client.run("bulldoze", { entityType: "building", id });
    }
    // By now, the least patient owners have abandoned their buildings.
    advance(bridge.city, 24_000);
    const text = await (await fetch(`${bridge.client.url}/state/problems?limit=1000`)).text();
    const { total, counts, countsByProblem, problems } = JSON.parse(text);
    expect(problems).to.have.length(total);
    expect(countsByProblem.Electricity).to.be.greaterThan(0);
    expect(countsByProblem.MajorProblem).to.be.greaterThan(0);
    const sum = (map: Record<string, number>) => Object.values(map).reduce((a, b) => a + b, 0);
    expect(sum(counts)).to.equal(total);
    const order = ["building", "netNode", "netSegment"];
    const types = problems.map(({ entityType }: { entityType: string }) => order.indexOf(entityType));
    expect(types).to.deep.equal(ascending(types));
    for (const row of problems) {
      expect(row.problems).to.equal(row.problemNames.join(", ")).and.not.equal("");
      expect("buildingFlags" in row).to.equal(row.entityType === "building");
    }
    const major = problems.find(({ isMajor }: { isMajor: boolean }) => isMajor);
    const building = bridge.city.buildings.get(major.id);
    const [first] = problemMasks(building?.problems.names ?? [], "major");
    expect(first >= 1n << 62n).to.equal(true);
    expect(text)
      .to.include(`"id":${major.id},"problems":"${major.problems}"`)
      .and.include(`"problem1Raw":${first},`);
    expect(major.problemNames).to.include("Electricity").and.include("MajorProblem");
  });

  it("reports whether roads connect the city to the outside", async () => {
    const joined = await bridge.client.state("/state/external-connections");
    expect(joined).to.include({ cityConnectedToOutside: true, disconnectedLocalRoadComponents: 0 });
    expect(joined).to.include({ outsideRoadNodes: 4, outsideRoadSegments: 4 });
    expect(joined.components[0]).to.have.all.keys(
      "componentId",
      "segmentCount",
      "agentNamedSegments",
      "nonHighwaySegments",
      "outsideNodes",
      "outsideConnected",
      "isLocalRoadComponent",
      "sampleSegmentId",
      "sampleName",
      "center",
    );
    const { segments } = await bridge.client.state("/state/networks?service=Road&limit=5000");
    const link = segments.find(({ end }: { end: { z: number } }) => end.z === 300);
    await bridge.client.run("bulldoze", { entityType: "netSegment", id: link.id });
    const cut = await bridge.client.state("/state/external-connections");
    expect(cut).to.include({ cityConnectedToOutside: false, disconnectedLocalRoadComponents: 1 });
    expect(cut.localRoadComponents).to.equal(2);
  });
});
